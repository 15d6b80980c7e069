import type { MonotonicClock } from "../../accounts/rate-limits.ts";
import type { ServiceCaller, ServiceItem, ServiceOutcome } from "../read/service.ts";
import { type DirectoryEntry, ENTRY_MEMBERS, readEntry } from "./read-entry.ts";

/** Results that are asked for, and used. */
export const MAX_RESULTS = 25;
/** Longest text that is searched for. */
export const MAX_QUERY = 200;
/** A result of Apple's directory has about 2 KB. */
const MAX_BYTES = 512 * 1024;
/** A person is waiting. */
const TIMEOUT_MS = 10_000;
/** Long enough for a person who goes back and forth. */
const CACHE_MS = 10 * 60_000;
const MAX_CACHED = 100;

export type DirectoryFailureReason =
  /** Its address is not public, and not in the allowed networks. */
  | "not-public"
  | "no-response"
  /** Any status other than 200, redirects to another host included. */
  | "rejected"
  /** The response is not a list of podcasts. */
  | "malformed";

export class DirectoryFailed extends Error {
  readonly reason: DirectoryFailureReason;

  constructor(reason: DirectoryFailureReason) {
    super(reason);
    this.reason = reason;
  }
}

export interface DirectoryOptions {
  /** The URL that searches are sent to. */
  readonly url: string;
  readonly createService: () => Promise<ServiceCaller>;
  readonly clock?: MonotonicClock | undefined;
}

/** Searches a directory that has the API of Apple's. Throws `DirectoryFailed`. */
export class Directory {
  readonly #url: URL;
  readonly #createService: DirectoryOptions["createService"];
  readonly #clock: MonotonicClock;
  readonly #stop = new AbortController();
  #service: Promise<ServiceCaller> | undefined;
  /** By request, the oldest first. */
  readonly #cache = new Map<string, { readonly entries: readonly DirectoryEntry[]; readonly until: number }>();

  constructor({ url, createService, clock = () => performance.now() }: DirectoryOptions) {
    this.#url = new URL(url);
    this.#createService = createService;
    this.#clock = clock;
  }

  /** Shown to people, so that they know where their words go. */
  get host(): string {
    return this.#url.host;
  }

  /** Podcasts that match the words, the best first. No two have the same feed. */
  search(query: string, signal: AbortSignal): Promise<readonly DirectoryEntry[]> {
    const url = new URL(this.#url);
    url.searchParams.set("media", "podcast");
    url.searchParams.set("term", query.toLowerCase().replaceAll(/\s+/g, " ").trim());
    url.searchParams.set("limit", String(MAX_RESULTS));
    return this.#ask(url.href, signal);
  }

  /** The podcast with this id in Apple's directory; undefined if this is another directory, or the podcast has no open feed. */
  async lookUp(id: string, signal: AbortSignal): Promise<DirectoryEntry | undefined> {
    if (!/\/search\/?$/.test(this.#url.pathname)) return undefined;
    const url = new URL(this.#url);
    url.pathname = url.pathname.replace(/\/search\/?$/, "/lookup");
    url.searchParams.set("entity", "podcast");
    url.searchParams.set("id", id);
    return (await this.#ask(url.href, signal))[0];
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await (await this.#service)?.close();
  }

  async #ask(url: string, signal: AbortSignal): Promise<readonly DirectoryEntry[]> {
    const cached = this.#cache.get(url);
    if (cached !== undefined && cached.until > this.#clock()) return cached.entries;
    const entries = await this.#fetch(url, AbortSignal.any([signal, this.#stop.signal]));
    this.#cache.delete(url);
    this.#cache.set(url, { entries, until: this.#clock() + CACHE_MS });
    for (const oldest of this.#cache.keys()) if (this.#cache.size > MAX_CACHED) this.#cache.delete(oldest);
    return entries;
  }

  async #fetch(url: string, signal: AbortSignal): Promise<readonly DirectoryEntry[]> {
    const items: ServiceItem[] = [];
    this.#service ??= this.#createService();
    const outcome = await (await this.#service).call(
      { url, members: ENTRY_MEMBERS, maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS },
      async (found) => {
        if (found.list === "results") items.push(...found.items.slice(0, MAX_RESULTS - items.length));
      },
      signal,
    );
    requireList(outcome);
    const entries = new Map<string, DirectoryEntry>();
    for (const entry of items.map(readEntry))
      if (entry !== undefined && !entries.has(entry.normalizedUrl)) entries.set(entry.normalizedUrl, entry);
    return [...entries.values()];
  }
}

function requireList(outcome: ServiceOutcome): void {
  if (outcome.kind === "failed") {
    if (outcome.reason === "not-public") throw new DirectoryFailed("not-public");
    throw new DirectoryFailed(
      ["too-large", "malformed-response"].includes(outcome.reason) ? "malformed" : "no-response",
    );
  }
  if (outcome.status !== 200) throw new DirectoryFailed("rejected");
  const { document } = outcome;
  const hasResults = typeof document === "object" && document !== null && "results" in document;
  if (!hasResults || !Array.isArray(document.results)) throw new DirectoryFailed("malformed");
}
