import type {
  ServiceCaller,
  ServiceFailure,
  ServiceItems,
  ServiceRequest,
  ServiceResponse,
} from "../podcasts/read/service.ts";
import { type Address, addressOf, serverOf, writeAddress } from "./address.ts";
import { ImportFailed, serverFailed, tooLarge } from "./failures.ts";

/** Limits of one import. */
export interface ImportLimits {
  /** From the sign-in to the result. */
  readonly totalMs: number;
  readonly responseMs: number;
  readonly responseBytes: number;
  readonly bytes: number;
  readonly requests: number;
  /** Of lists in all responses: each costs time, however short it is. */
  readonly items: number;
  readonly subscriptions: number;
  readonly actions: number;
  /** For a person to allow a login, unless the client waits longer. */
  readonly waitMs: number;
}

const MIB = 1024 * 1024;

export const IMPORT_LIMITS: ImportLimits = {
  totalMs: 10 * 60_000,
  responseMs: 60_000,
  responseBytes: 64 * MIB,
  bytes: 256 * MIB,
  requests: 1_000,
  items: 1_000_000,
  subscriptions: 50_000,
  actions: 200_000,
  waitMs: 50_000,
};

/** For short requests that are not aborted. */
const SHORT_MS = 10_000;

export interface Credentials {
  readonly userName: string;
  readonly password: string;
}

export interface OtherServerOptions {
  readonly service: ServiceCaller;
  readonly limits: ImportLimits;
  /** Its reason is thrown. */
  readonly signal: AbortSignal;
  /** Called before each request; throws if the user has lost access. */
  readonly requireAccess: () => void | Promise<void>;
}

interface RequestOptions {
  readonly method?: ServiceRequest["method"] | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Which members of objects in lists to read. */
  readonly members?: readonly string[];
  /** What it throws ends the import. */
  readonly onItems?: (items: ServiceItems) => void;
}

/** What a probe without a password says about the API at a path. */
export type Probe =
  | { readonly kind: "open"; readonly response: ServiceResponse }
  | { readonly kind: "sign-in-needed" }
  | { readonly kind: "absent"; readonly problem: ImportFailed | undefined };

/** The server that an account is imported from. Counts what is read from it. */
export class OtherServer {
  readonly #options: OtherServerOptions;
  #address: Address;
  #credentials: Credentials | undefined;
  #session: string | undefined;
  #requests = 0;
  #bytes = 0;
  #items = 0;

  constructor(address: Address, options: OtherServerOptions) {
    this.#address = address;
    this.#options = options;
  }

  get address(): Address {
    return this.#address;
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  signIn(credentials: Credentials): void {
    this.#credentials = credentials;
  }

  /**
   * Asks without a password whether there is an API at a path of a server. Follows redirects within the host; if the path is
   * still the same below another one, that is where the server is.
   */
  async probe(address: Address, path: string, method: "GET" | "POST" = "GET"): Promise<Probe> {
    const response = await this.#send(writeAddress(address) + path, { method });
    const found = serverOf(new URL(response.url), path);
    if (response.redirect !== undefined) return { kind: "absent", problem: redirected(response.redirect, path) };
    if (found === undefined) return { kind: "absent", problem: undefined };
    const { status } = response;
    const isOpen = status === 200 && response.document !== undefined;
    if (!isOpen && status !== 401) return { kind: "absent", problem: toProblem(status) };
    this.#address = found;
    return isOpen ? { kind: "open", response } : { kind: "sign-in-needed" };
  }

  /** Sends a request with the name and password. */
  async request(path: string, options: RequestOptions = {}): Promise<ServiceResponse> {
    const headers = { ...this.#authorization(), ...options.headers };
    const response = await this.#send(writeAddress(this.#address) + path, { ...options, headers });
    if (response.redirect !== undefined) throw redirected(response.redirect, path);
    this.#session ??= this.#credentials && response.session;
    return response;
  }

  /** The JSON document at a path. */
  async read(path: string, options: RequestOptions = {}): Promise<unknown> {
    return requireDocument(await this.request(path, options));
  }

  /**
   * Sends a request without a name and password to a path below the server's origin. It does not count, and is not aborted,
   * so that a password in the response is not lost.
   */
  async sendToOrigin(path: string, options: RequestOptions): Promise<ServiceResponse> {
    this.#options.signal.throwIfAborted();
    const { responseBytes: bytes, responseMs } = this.#options.limits;
    const limits = { bytes, timeoutMs: Math.min(SHORT_MS, responseMs) };
    return this.#call(this.#address.origin + path, options, limits, new AbortController().signal);
  }

  /** Tidies up; whether that works makes no difference. */
  async tidy(path: string, method: "POST" | "DELETE", headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const url = writeAddress(this.#address) + path;
    const own = { ...this.#authorization(), ...headers };
    const request = { url, method, headers: own, members: [], maxBytes: MIB, timeoutMs: SHORT_MS };
    await this.#options.service.call(request, async () => undefined, new AbortController().signal);
  }

  #authorization(): Readonly<Record<string, string>> {
    if (this.#credentials === undefined) return {};
    const { userName, password } = this.#credentials;
    const authorization = `Basic ${Buffer.from(`${userName}:${password}`).toString("base64")}`;
    return { authorization, ...(this.#session === undefined ? {} : { cookie: `sessionid=${this.#session}` }) };
  }

  async #send(url: string, options: RequestOptions): Promise<ServiceResponse> {
    const { limits, signal } = this.#options;
    signal.throwIfAborted();
    this.#requests += 1;
    if (this.#requests > limits.requests) throw tooLarge("requests");
    const left = limits.bytes - this.#bytes;
    if (left <= 0) throw tooLarge("bytes");
    const own = { bytes: Math.min(limits.responseBytes, left), timeoutMs: limits.responseMs };
    const response = await this.#call(url, options, own, signal);
    this.#bytes += response.bytes;
    return response;
  }

  async #call(
    url: string,
    { members = [], onItems, ...request }: RequestOptions,
    { bytes: maxBytes, timeoutMs }: { readonly bytes: number; readonly timeoutMs: number },
    signal: AbortSignal,
  ): Promise<ServiceResponse> {
    const { service, limits, requireAccess } = this.#options;
    await requireAccess();
    const stop = new AbortController();
    const take = async (items: ServiceItems) => {
      try {
        this.#items += items.items.length;
        if (this.#items > limits.items) throw tooLarge("items");
        onItems?.(items);
      } catch (error) {
        stop.abort(error);
      }
    };
    const ended = AbortSignal.any([signal, stop.signal]);
    const outcome = await service.call({ ...request, url, members, maxBytes, timeoutMs }, take, ended);
    ended.throwIfAborted();
    if (outcome.kind === "response") return outcome;
    this.#options.signal.throwIfAborted();
    throw toFailure(outcome.reason, maxBytes < limits.responseBytes);
  }
}

/** Throws unless the response is a JSON document. */
export function requireDocument({ status, document }: ServiceResponse): unknown {
  if (status === 401 || status === 403) throw new ImportFailed({ code: "import-sign-in-failed" });
  if (status !== 200) throw serverFailed({ kind: "status", status });
  if (document === undefined) throw serverFailed({ kind: "malformed" });
  return document;
}

/** Statuses that do not simply mean that there is nothing at the path. */
function toProblem(status: number): ImportFailed | undefined {
  const isProblem = status >= 500 ? status !== 501 : status === 403 || status === 429;
  return isProblem ? serverFailed({ kind: "status", status }) : undefined;
}

function redirected(target: string, path: string): ImportFailed {
  const url = new URL(target);
  return serverFailed({ kind: "redirect", address: writeAddress(serverOf(url, path) ?? addressOf(url)) });
}

function toFailure(reason: ServiceFailure["reason"], isLast: boolean): ImportFailed {
  switch (reason) {
    case "not-public":
      return new ImportFailed({ code: "import-address-private" });
    case "bad-url":
      return new ImportFailed({ code: "import-url-invalid" });
    case "too-large":
      return tooLarge(isLast ? "bytes" : "response");
    case "tls":
      return serverFailed({ kind: "certificate" });
    case "bad-redirect":
    case "redirect-loop":
      return serverFailed({ kind: "malformed" });
    default:
      return serverFailed({ kind: "no-response" });
  }
}
