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
  /** What stands in the path for the part of it that varies: an id or a name. */
  parameter = "";
  /** Who pays for the resources it uses. */
  owner: () => Owner;
  /** The memory it holds, from the first byte of its body to the last byte of its response. */
  readonly memory: Reservation;
  readonly #held: Reservation[] = [];
  #id: string | undefined;

  constructor(raw: IncomingMessage, log: Logger, memory: Budget, owner: () => Owner) {
    this.raw = raw;
    this.log = log;
    this.originalUrl = raw.url ?? "/";
    this.owner = owner;
    this.memory = memory.reserve(() => this.owner());
  }

  /** Keeps a reservation until the request has ended. */
  hold(reservation: Reservation): void {
    this.#held.push(reservation);
  }

  release(): void {
    this.memory.release();
    for (const reservation of this.#held) reservation.release();
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
