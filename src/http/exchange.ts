import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { Budget, Owner, Reservation } from "./budget.ts";

export type { Logger };
export type Response = ServerResponse;

/** A request as its handler sees it. */
export class Request {
  readonly raw: IncomingMessage;
  readonly log: Logger;
  /** What was asked for, as it came; `raw.url` is the same below the base path. */
  readonly originalUrl: string;
  /** The memory it holds, from the first byte of its body to the last byte of its response. */
  readonly memory: Reservation;
  #held: Reservation[] | undefined;
  readonly #ownerOf: (raw: IncomingMessage) => Owner;
  #owner: Owner | undefined;
  #hasEnded = false;
  #id: string | undefined;

  constructor(raw: IncomingMessage, log: Logger, memory: Budget, ownerOf: (raw: IncomingMessage) => Owner) {
    this.raw = raw;
    this.log = log;
    this.originalUrl = raw.url ?? "/";
    this.#ownerOf = ownerOf;
    this.memory = memory.reserve(this);
  }

  /** Who pays for the resources it uses: the network it comes from, until its account is known. */
  get owner(): Owner {
    this.#owner ??= this.#ownerOf(this.raw);
    return this.#owner;
  }

  set owner(owner: Owner) {
    this.#owner = owner;
  }

  /** Keeps a reservation until the request has ended. */
  hold(reservation: Reservation): void {
    this.#held ??= [];
    this.#held.push(reservation);
  }

  /** To be called when its response is sent and when its work is done: the second time, what it holds is released. */
  end(): void {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      return;
    }
    this.memory.release();
    for (const reservation of this.#held ?? []) reservation.release();
  }

  get method(): string {
    return this.raw.method ?? "";
  }

  get headers(): IncomingHttpHeaders {
    return this.raw.headers;
  }

  /** Made when somebody asks for it: few requests have anything to log. */
  get id(): string {
    this.#id ??= nextId();
    return this.#id;
  }
}

/** Short, and unlike those of any other process: a 500 shows it to the client, and the log line bears it. */
const PROCESS = randomBytes(6).toString("hex");
let count = 0;

function nextId(): string {
  return `${PROCESS}-${(count++).toString(36)}`;
}
