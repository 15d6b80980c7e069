import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { Bodies, HeldBody } from "./bodies.ts";
import { HeldBytes, maxHeldBytes } from "./held-bytes.ts";
import { type Lane, type Owner, RunQueue } from "./run-queue.ts";

export type { Logger };
export type Response = ServerResponse;

/** What all requests share. */
export interface Shared {
  readonly queue: RunQueue;
  readonly bodies: Bodies;
  /** Bytes of responses that clients have not read. */
  readonly unread: HeldBytes;
  readonly log: Logger;
  /** Whom a request belongs to until its account is known. */
  readonly ownerOf: (raw: IncomingMessage) => Owner;
}

export function createShared(log: Logger, ownerOf: Shared["ownerOf"]): Shared {
  const max = maxHeldBytes();
  return { queue: new RunQueue(), bodies: new Bodies(max), unread: new HeldBytes(max), log, ownerOf };
}

/** A request, its turns, and the memory it holds. */
export class Request {
  readonly raw: IncomingMessage;
  /** The URL as the client sent it; `raw.url` is without the base path. */
  readonly originalUrl: string;
  /** The response is a stream of events, which lasts as long as the client wants. */
  isStream = false;
  readonly #shared: Shared;
  #owner: Owner | undefined;
  /** What this is if it is a dear read, or has a long body. */
  #dear: { readonly lane: Lane; readonly owner: Owner } | undefined;
  #body: HeldBody | undefined;
  #unread = 0;
  #unreadOwner: Owner | undefined;
  #isClosed = false;
  #id: string | undefined;

  constructor(raw: IncomingMessage, shared: Shared) {
    this.raw = raw;
    this.originalUrl = raw.url ?? "/";
    this.#shared = shared;
  }

  get log(): Logger {
    return this.#shared.log;
  }

  /** The account, or the client's address until it is known. */
  get owner(): Owner {
    this.#owner ??= this.#shared.ownerOf(this.raw);
    return this.#owner;
  }

  set owner(owner: Owner) {
    this.#owner = owner;
  }

  /** Waits until it may be looked at; undefined if it need not wait. */
  arrive(): Promise<void> | undefined {
    const { queue } = this.#shared;
    return queue.start(queue.arrivals, this.owner);
  }

  /** The same for its work. */
  turn(): Promise<void> | undefined {
    const { queue } = this.#shared;
    return queue.start(queue.light, this.owner);
  }

  /** The same for a read that takes long or needs much memory. */
  readTurn(): Promise<void> | undefined {
    return this.#dearTurn(this.#shared.queue.reads);
  }

  /** The same when a long body has been received. */
  bodyTurn(): Promise<void> | undefined {
    return this.#dearTurn(this.#shared.queue.bodies);
  }

  #dearTurn(lane: Lane): Promise<void> | undefined {
    if (this.#dear !== undefined) return this.step();
    const dear = { lane, owner: this.owner };
    const turn = this.#shared.queue.start(lane, this.owner);
    if (turn === undefined) this.#dear = dear;
    return turn?.then(() => {
      this.#dear = dear;
    });
  }

  /** The same for the next piece of a long response. */
  step(): Promise<void> | undefined {
    const { queue } = this.#shared;
    return queue.start(queue.steps, this.owner);
  }

  /** Counts the bytes that are allocated for the body. */
  holdBody(bytes: number): HeldBody {
    this.#body ??= new HeldBody(this.#shared.bodies, this.raw, this.owner);
    this.#body.resize(bytes);
    return this.#body;
  }

  /** Ends the limit on the body. Returns its length. */
  releaseBody(): number {
    return this.#body?.release() ?? 0;
  }

  /** Counts bytes of the response until the client has read it. Returns false if its owner then holds too much. */
  holdUnread(bytes: number): boolean {
    if (this.#isClosed) return true;
    const { unread } = this.#shared;
    this.#unreadOwner ??= this.owner;
    unread.add(this.#unreadOwner, bytes - this.#unread);
    this.#unread = bytes;
    return !unread.isOver(this.#unreadOwner);
  }

  /** To be called when the handler is done. */
  markHandled(): void {
    this.releaseBody();
    if (this.#dear !== undefined) this.#shared.queue.finish(this.#dear.lane, this.#dear.owner);
    this.#dear = undefined;
  }

  /** To be called when the response is sent or the client has disconnected. */
  markClosed(): void {
    if (this.#unread > 0) this.holdUnread(0);
    this.#isClosed = true;
  }

  get method(): string {
    return this.raw.method ?? "";
  }

  get headers(): IncomingHttpHeaders {
    return this.raw.headers;
  }

  /** Created on first use: few requests have anything to log. */
  get id(): string {
    this.#id ??= nextId();
    return this.#id;
  }
}

/** Makes ids unique among processes. A 500 response and its log line both have the id. */
const PROCESS_PREFIX = randomBytes(6).toString("hex");
let count = 0;

function nextId(): string {
  return `${PROCESS_PREFIX}-${(count++).toString(36)}`;
}
