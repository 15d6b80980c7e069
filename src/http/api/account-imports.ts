import type { ImportProgress } from "../../account-imports/account-imports.ts";
import { ImportFailed } from "../../account-imports/failures.ts";
import { namesEvents } from "../../jsonapi/negotiation.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import type { Request, Response } from "../wire/exchange.ts";
import { respond, writeFailureOf } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import {
  readAccountImport,
  readAccountImportLogin,
  toRequestFailure,
  writeAccountImport,
  writeAccountImportLogin,
  writeCounts,
} from "./documents/account-imports.ts";
import { streamHeaders } from "./events.ts";
import { interrupted, waitLong } from "./imports.ts";
import type { Services } from "./services.ts";

/** Shortest and longest time between two events. */
const EVENT_MS = 250;
const REPEAT_MS = 1_500;
/** A client with more unread data than this is disconnected. */
const MAX_UNREAD_BYTES = 16 * 1024;

/** Handlers of `/v1/account-imports`. */
export function createAccountImportHandlers({ accountImports }: Services) {
  return {
    async startLogin(call: Call): Promise<void> {
      const { request, response, caller, maxBytes } = call;
      const url = readAccountImportLogin(await readJson(request, response, maxBytes));
      await caller.requireAccess();
      const signal = signalOf(response);
      const { requireAccess } = caller;
      const started = await accountImports.startLogin(caller, url, { requireAccess, signal }).catch(rethrow);
      if (!response.destroyed) respond(response, 201, JSON_API, writeAccountImportLogin(started));
    },

    async import(call: Call<{ readonly dryRun: boolean }>): Promise<void> {
      const { request, response, caller, maxBytes, query } = call;
      const wanted = readAccountImport(await readJson(request, response, maxBytes));
      await caller.requireAccess();
      const events = namesEvents(request.headers.accept) ? new ProgressStream(request, response) : undefined;
      let latest: ImportProgress | undefined;
      const run = accountImports.run(caller, wanted, {
        dryRun: query.dryRun,
        waitsLong: events !== undefined,
        onProgress(progress) {
          latest = progress;
          events?.report(progress);
        },
        requireAccess: caller.requireAccess,
        signal: signalOf(response),
      });
      if (events === undefined) waitLong(request);
      const toFailure = (error: unknown): never => rethrow(error, query.dryRun ? undefined : latest, request);
      const document = run.then((result) => writeAccountImport(wanted, result, query.dryRun)).catch(toFailure);
      if (events !== undefined) return events.end(document);
      const text = await document;
      if (!response.destroyed) respond(response, 200, JSON_API, text);
    },
  };
}

/** Aborts when the client disconnects. */
function signalOf(response: Response): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort(new ImportFailed({ code: "aborted" })));
  return controller.signal;
}

function rethrow(error: unknown, latest?: ImportProgress, request?: Request): never {
  const isOver = error instanceof ImportFailed && error.failure.code === "shutting-down";
  // Unlike other requests, an import may already have changed something.
  if (latest?.stage === "writing" && request !== undefined && (isOver || error instanceof StoreUnavailable))
    throw interrupted(latest.subscriptions.added + latest.episode_actions.added, request, error);
  throw error instanceof ImportFailed ? toRequestFailure(error.failure) : error;
}

/** The progress of an import as server-sent events. It starts with the first progress: until then, errors are responses. */
class ProgressStream {
  readonly #request: Request;
  readonly #response: Response;
  #latest = "";
  #sentAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #stage: ImportProgress["stage"] | undefined;
  /** Whether the latest progress has not been sent. */
  #isBehind = false;

  constructor(request: Request, response: Response) {
    this.#request = request;
    this.#response = response;
  }

  report(progress: ImportProgress): void {
    const { stage } = progress;
    this.#latest = JSON.stringify({ stage, ...writeCounts(progress) });
    if (this.#timer === undefined) this.#start();
    const isDue = stage !== this.#stage || performance.now() - this.#sentAt >= EVENT_MS;
    this.#stage = stage;
    this.#isBehind = !isDue;
    if (isDue) this.#send("progress", this.#latest);
  }

  #start(): void {
    this.#request.isStream = true;
    this.#response.writeHead(200, streamHeaders(this.#response));
    this.#response.flushHeaders();
    this.#timer = setInterval(() => this.#send("progress", this.#latest), REPEAT_MS);
    this.#response.once("close", () => clearInterval(this.#timer));
  }

  #send(event: string, data: string): void {
    this.#sentAt = performance.now();
    if (this.#response.writableEnded || this.#response.destroyed) return;
    this.#response.write(`event: ${event}\ndata: ${data}\n\n`);
    if (this.#response.writableLength > MAX_UNREAD_BYTES) this.#response.destroy();
  }

  /** Sends the document, or the error. */
  async end(document: Promise<string>): Promise<void> {
    try {
      this.#finish("result", await document);
    } catch (error) {
      if (this.#timer === undefined) throw error;
      this.#finish("error", writeFailureOf(error, this.#request, JSON_API));
    }
  }

  #finish(event: string, data: string): void {
    clearInterval(this.#timer);
    if (this.#isBehind) this.#send("progress", this.#latest);
    this.#send(event, data);
    this.#response.end();
  }
}
