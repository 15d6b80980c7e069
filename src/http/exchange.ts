import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { Admission, Owner, Reservation } from "./budget.ts";

export type { Logger };
export type Response = ServerResponse;

/** A request, and what it is charged for while it is handled. */
export class Request {
  readonly raw: IncomingMessage;
  readonly log: Logger;
  /** The URL as the client sent it; `raw.url` is without the base path. */
  readonly originalUrl: string;
  /** The response is a stream of events, which lasts as long as the client wants. */
  isStream = false;
  readonly #admission: Admission;
  readonly #charges: Partial<Record<keyof Admission, Reservation>> = {};
  readonly #ownerOf: (raw: IncomingMessage) => Owner;
  #owner: Owner | undefined;
  #isHandled = false;
  #isClosed = false;
  #id: string | undefined;

  constructor(raw: IncomingMessage, log: Logger, admission: Admission, ownerOf: (raw: IncomingMessage) => Owner) {
    this.raw = raw;
    this.log = log;
    this.originalUrl = raw.url ?? "/";
    this.#admission = admission;
    this.#ownerOf = ownerOf;
  }

  /** The owner it is charged to: its network, until its account is known. */
  get owner(): Owner {
    this.#owner ??= this.#ownerOf(this.raw);
    return this.#owner;
  }

  set owner(owner: Owner) {
    this.#owner = owner;
  }

  /** Sets the total that this request is charged for a resource. False, without a change, if that is too much. */
  charge(resource: keyof Admission, amount: number): boolean {
    return this.#reservation(resource).resize(amount);
  }

  /** Whether it could be charged `amount` now. */
  fits(resource: keyof Admission, amount: number): boolean {
    return this.#reservation(resource).fits(amount);
  }

  /** To be called when the handler is done: its operations are written. */
  markHandled(): void {
    this.#isHandled = true;
    this.#charges.operations?.release();
    this.#releaseIfFinished();
  }

  /** To be called when the response is sent or the client has disconnected. */
  markClosed(): void {
    this.#isClosed = true;
    this.#releaseIfFinished();
  }

  #releaseIfFinished(): void {
    if (!this.#isHandled || !this.#isClosed) return;
    this.#charges.memory?.release();
    this.#charges.transfers?.release();
    this.#charges.searches?.release();
  }

  #reservation(resource: keyof Admission): Reservation {
    this.#charges[resource] ??= this.#admission[resource].reserve(this);
    return this.#charges[resource];
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
