/** Where the server is, and how to speak to it. */
export interface ClientOptions {
  /** Address of the server, with its base path if it has one. */
  readonly url: string;
  /** A token (`emk_…`) or a JWT; a server without accounts needs none. */
  readonly token?: string | undefined;
  /** What is called in place of the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** How often a request is sent again when the server is busy or cannot be reached: 5 times unless told. */
  readonly retries?: number | undefined;
  /** Called before each wait for another try. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Timeout of one request in milliseconds: 60,000 by default, 300,000 for imports and exports. */
  readonly timeoutMs?: number | undefined;
  /** Maximum size of one response in bytes: 8 MiB by default, 64 MiB for imports and exports. */
  readonly maxResponseBytes?: number | undefined;
}

export interface Retry {
  /** How many tries have failed. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: EarmarkError | NetworkError;
}

export interface CallOptions {
  /** Stops between requests and within one; the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface Subscription {
  readonly id: string;
  /** The address, exactly as it was sent. */
  readonly feedUrl: string;
  readonly subscribedAt: Date;
}

/** A feed to subscribe to. Without an id it gets `guid(url)`. */
export type Feed = string | { readonly url: string; readonly id?: string | undefined };

/** What became of one feed. */
export type SubscribeResult = {
  /** The address, as it was given. */
  readonly feed: string;
  /** The id it was sent with, in lower case. What was there already may be there under another. */
  readonly id: string;
} & (
  | { readonly outcome: "added"; readonly subscription: Subscription }
  | { readonly outcome: "already-subscribed" | "refused"; readonly error: ErrorObject }
);

export interface Progress {
  /** How many of `total` feeds have been answered. */
  readonly done: number;
  readonly total: number;
  readonly added: number;
  readonly alreadySubscribed: number;
  readonly refused: number;
  /** What the last request brought. Kept by the caller, nothing is lost if a later one fails. */
  readonly results: readonly SubscribeResult[];
}

export interface SubscribeOptions extends CallOptions {
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** At most so many feeds in one request: 1,000 unless told, and never more than the server takes. */
  readonly batchSize?: number | undefined;
}

export interface Page {
  readonly items: readonly Subscription[];
  /** How many subscriptions the list has. */
  readonly total: number;
  readonly number: number;
  readonly size: number;
  readonly hasNext: boolean;
}

export interface PageOptions extends CallOptions {
  /** From 1 on. */
  readonly number?: number | undefined;
  /** 1 to 100; 100 unless told. */
  readonly size?: number | undefined;
}

export interface ImportReport {
  readonly dryRun: boolean;
  readonly counts: {
    readonly found: number;
    readonly added: number;
    readonly alreadySubscribed: number;
    readonly refused: number;
  };
  readonly entries: readonly ImportEntry[];
}

export interface ImportEntry {
  readonly feedUrl: string;
  readonly title: string | null;
  readonly outcome: "added" | "already-subscribed" | "refused";
  /** Why it was refused. */
  readonly detail: string | null;
  readonly subscriptionId: string | null;
}

export interface Me {
  /** `local` on a server without accounts. */
  readonly name: string;
  readonly issuer: string | null;
  readonly createdAt: Date | null;
  /** Null on a server without accounts, and for a JWT. */
  readonly credential: { readonly kind: string; readonly id: string; readonly scope: "read" | "write" } | null;
  readonly counts: { readonly subscriptions: number; readonly tokens: number; readonly sessions: number };
  readonly limits: {
    readonly operationsPerRequest: number;
    readonly bodyBytes: number;
    readonly pageSize: number;
    readonly requestsPerMinute: number | null;
    readonly operationsPerMinute: number | null;
    readonly subscriptions: number | null;
  };
}

export interface Credentials {
  readonly name: string;
  readonly password: string;
}

/** What lets someone in: a token of an app, or a session of a browser that is signed in. */
export interface Access {
  readonly id: string;
  readonly kind: "token" | "session";
  /** Of a session, what the browser calls itself. */
  readonly label: string;
  /** Always `write` for a session. */
  readonly scope: "read" | "write";
  readonly createdAt: Date;
  /** To five minutes; null when it was never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  /** The one that asks. */
  readonly isCurrent: boolean;
}

export interface ErrorObject {
  readonly status: number;
  readonly title: string;
  readonly detail?: string | undefined;
  readonly id?: string | undefined;
  readonly source?: { readonly pointer?: string; readonly parameter?: string; readonly header?: string } | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

export interface Client {
  /**
   * Subscribes to any number of feeds, and tells what became of each, in their order. "added" means: it was not in the
   * list before this call and is now, under this id.
   */
  subscribe(feeds: Iterable<Feed>, options?: SubscribeOptions): Promise<SubscribeResult[]>;
  /** Every subscription, oldest first. What is read may be removed on the way. */
  subscriptions(
    options?: CallOptions & { readonly pageSize?: number | undefined },
  ): AsyncIterableIterator<Subscription>;
  page(options?: PageOptions): Promise<Page>;
  /** Undefined when there is none with this id. */
  get(id: string, options?: CallOptions): Promise<Subscription | undefined>;
  /** False when there is none with this id; after a lost answer that may be because the first try has removed it. */
  remove(id: string, options?: CallOptions): Promise<boolean>;
  /**
   * Subscribes to the feeds of an OPML file; with `dryRun`, only tells what would become of each. After a failure send it
   * again: what was added stays.
   */
  importOpml(
    opml: string | Blob | Uint8Array,
    options?: CallOptions & { readonly dryRun?: boolean | undefined },
  ): Promise<ImportReport>;
  /** The list as an OPML file. */
  exportOpml(options?: CallOptions): Promise<string>;
  /** Who is asking, with counts and limits. */
  me(options?: CallOptions): Promise<Me>;

  /** Makes an account and signs in. It needs an invitation unless the server lets anyone in. */
  signUp(person: Credentials & { readonly invitation?: string | undefined }, options?: CallOptions): Promise<void>;
  /** The server sets a cookie, which browsers keep and send by themselves. */
  signIn(person: Credentials, options?: CallOptions): Promise<void>;
  /** Ends the session that asks. One that has ended already is signed out too. */
  signOut(options?: CallOptions): Promise<void>;
  /** Ends all sessions but the one that asks. */
  changePassword(change: { readonly current: string; readonly wanted: string }, options?: CallOptions): Promise<void>;
  tokens(options?: CallOptions): Promise<Access[]>;
  sessions(options?: CallOptions): Promise<Access[]>;
  /** The scope is `write` unless told. The `secret` is what an app gives as its token; it cannot be had again. */
  createToken(
    wish: {
      readonly label: string;
      readonly scope?: Access["scope"] | undefined;
      readonly expiresAt?: Date | undefined;
    },
    options?: CallOptions,
  ): Promise<Access & { readonly secret: string }>;
  /** False when it was gone already. For the session that asks there is `signOut`. */
  revoke(access: Pick<Access, "kind" | "id">, options?: CallOptions): Promise<boolean>;
  /** All that the server has of the user, as the text of a JSON document. */
  exportAccount(options?: CallOptions): Promise<string>;
  /** Deletes the account with everything. The sign-in must not be older than ten minutes. */
  deleteAccount(options?: CallOptions): Promise<void>;
}

/** The server has refused a request, or its answer cannot be understood. */
export class EarmarkError extends Error {
  override readonly name = "EarmarkError";
  declare readonly status: number;
  declare readonly title: string;
  declare readonly detail: string | undefined;
  /** All that the server said; empty when it was not Earmark that answered. */
  declare readonly errors: readonly ErrorObject[];
  /** Seconds after which to come again, if the server said so. */
  declare readonly retryAfter: number | undefined;

  constructor({ status, title, detail }: ErrorObject, errors: readonly ErrorObject[] = [], retryAfter?: number) {
    super(`${status} ${title}${detail ? `: ${detail}` : ""}`);
    Object.assign(this, { status, title, detail, errors, retryAfter });
  }
}

/** The server could not be reached, or was lost before its answer was whole. `cause` is what `fetch` said. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  constructor(cause: unknown) {
    super("The server cannot be reached, or its answer was lost.", { cause });
  }
}

const PLAIN = "application/vnd.api+json";
/** In one request, so that progress is seen. */
const MAX_OPERATIONS = 1_000;
/** What most proxies let through. */
const MAX_BODY_BYTES = 1_000_000;
const MAX_PAGE_SIZE = 100;
/** Whoever is told to wait for longer decides that better themselves. */
const MAX_WAIT_MS = 120_000;
/** Of one list: a server that sends more never ends. */
const MAX_ITEMS = 1_000_000;

// What comes over the wire, as far as it is read here.
interface Resource {
  readonly id: string;
  readonly attributes: { readonly feed_url: string; readonly user_subscribed_at: string };
}
interface AccessResource {
  readonly type: Access["kind"];
  readonly id: string;
  readonly attributes: {
    readonly label: string;
    readonly scope?: Access["scope"];
    readonly created_at: string;
    readonly last_used_at: string | null;
    readonly expires_at: string | null;
    readonly current?: boolean;
    readonly token: string;
  };
}
interface ListDocument<Data> {
  readonly data: readonly Data[];
  readonly links: { readonly prev: string | null; readonly next: string | null };
  readonly meta: { readonly total: number };
}
interface WireError extends Omit<ErrorObject, "status"> {
  readonly status: string;
}
interface OperationsDocument {
  readonly "atomic:results": readonly { readonly data?: Resource; readonly errors?: readonly WireError[] }[];
}
interface ImportDocument {
  readonly data: readonly { readonly attributes: object }[];
  readonly meta: { readonly dry_run: boolean; readonly counts: object };
}
interface MeDocument {
  readonly data: { readonly attributes: Pick<Me, "name" | "issuer"> & { readonly created_at: string | null } };
  readonly meta: Pick<Me, "credential" | "counts"> & { readonly limits: object };
}

interface Call extends CallOptions {
  readonly method?: string;
  readonly type?: string;
  readonly body?: string | Blob;
  /** Not sent again unless it is certain that nothing was done. */
  readonly once?: boolean;
  /** A status that is an answer too, and no failure. */
  readonly expected?: number;
  /** An import or an export, which may be large and take long. */
  readonly isFile?: boolean;
}

interface Answer {
  readonly text: string;
  /** Which try brought it, from 1 on. */
  readonly attempt: number;
  /** Of an answer that was expected though it is no success. */
  readonly error?: EarmarkError;
}

/** A part of a list; the links are queries. */
interface Part<Item = Subscription> {
  readonly items: readonly Item[];
  readonly total: number;
  readonly prev: string | undefined;
  readonly next: string | undefined;
}

/** A feed on its way. */
type Draft = Pick<SubscribeResult, "feed" | "id">;

export function createClient(options: ClientOptions): Client {
  const { url, token, fetch: request = fetch, retries = 5, onRetry, timeoutMs, maxResponseBytes } = options;
  const base = withoutSlashes(new URL(url).href);

  async function send(path: string, call: Call): Promise<Answer> {
    const { method = "GET", type, body = null, once, expected, isFile, signal } = call;
    // An OPML file is welcome too.
    const headers: Record<string, string> = { Accept: `${PLAIN}, */*;q=0.1` };
    if (type) headers["Content-Type"] = type;
    if (token) headers["Authorization"] = `Bearer ${token}`;
    // A redirect would turn POST into GET and lose the token. So it is reported, not followed.
    const init: RequestInit = { method, headers, body, redirect: "manual" };
    for (let attempt = 1; ; attempt += 1) {
      signal?.throwIfAborted();
      let error: EarmarkError | NetworkError;
      let mayPass = !once;
      let delayMs = 125 * 2 ** attempt * (1 + Math.random());
      try {
        const timeout = AbortSignal.timeout(timeoutMs ?? (isFile ? 300_000 : 60_000));
        init.signal = AbortSignal.any(signal ? [signal, timeout] : [timeout]);
        const response = await request(base + path, init);
        const { status } = response;
        const text = await readText(response, maxResponseBytes ?? (isFile ? 64 : 8) * 1_048_576);
        if (response.ok) return { text, attempt };
        error = readFailure(response, text);
        if (status === expected) return { text, attempt, error };
        // A proxy says 502 or 504 when it has lost the server, which may have done some of it, as with 503.
        mayPass = status === 429 || (mayPass && status >= 502 && status <= 504);
        if (error.retryAfter !== undefined) delayMs = error.retryAfter * 1_000;
      } catch (cause) {
        signal?.throwIfAborted();
        if (cause instanceof EarmarkError) throw cause;
        error = new NetworkError(cause);
      }
      if (!mayPass || attempt > retries || delayMs > MAX_WAIT_MS) throw error;
      onRetry?.({ attempt, delayMs, error });
      signal?.throwIfAborted();
      await sleep(delayMs, signal);
    }
  }

  /** Sends a document with one resource object. */
  function sendOne(path: string, type: string, attributes: object, call: Call): Promise<Answer> {
    return send(path, { method: "POST", type: PLAIN, body: JSON.stringify({ data: { type, attributes } }), ...call });
  }

  /** False when there was none. */
  async function remove(path: string, id: string, signal: AbortSignal | undefined): Promise<boolean> {
    return !(await send(`${path}/${encodeURIComponent(id)}`, { method: "DELETE", expected: 404, signal })).error;
  }

  async function readPart<Data, Item>(
    path: string,
    reader: (data: Data) => Item,
    signal: AbortSignal | undefined,
  ): Promise<Part<Item>> {
    // Only the query of a link is taken: where the server is, is ours to know.
    const queryOf = (link: string | null) => link?.replace(/^[^?]*/, "");
    return read(await send(path, { signal }), ({ data, links, meta }: ListDocument<Data>) => ({
      items: data.map(reader),
      total: meta.total,
      prev: queryOf(links.prev),
      next: queryOf(links.next),
    }));
  }

  function list(query: string, signal: AbortSignal | undefined): Promise<Part> {
    return readPart(`/v1/subscriptions${query}`, readSubscription, signal);
  }

  /** By id, every item from a page on. Fails if the list does not advance or has no end. */
  async function listFrom<Data, Item extends { readonly id: string }>(
    path: string,
    count: number,
    reader: (data: Data) => Item,
    signal: AbortSignal | undefined,
  ): Promise<Map<string, Item>> {
    const found = new Map<string, Item>();
    let skipped = count % MAX_PAGE_SIZE;
    let query: string | undefined = writePage((count - skipped) / MAX_PAGE_SIZE + 1, MAX_PAGE_SIZE);
    while (query) {
      const { items, next }: Part<Item> = await readPart(path + query, reader, signal);
      const { size } = found;
      for (const item of items.slice(skipped)) found.set(item.id, item);
      if ((next && found.size === size) || found.size > MAX_ITEMS) throw invalidAnswer("Endless List");
      skipped = 0;
      query = next;
    }
    return found;
  }

  async function listAccess(path: string, signal: AbortSignal | undefined): Promise<Access[]> {
    return [...(await listFrom(path, 0, readAccess, signal)).values()];
  }

  const client: Client = {
    async subscribe(feeds, { onProgress, batchSize, signal } = {}) {
      // A text can be iterated too, by its characters.
      const given = typeof feeds === "string" ? [feeds] : feeds;
      const wanted = Array.from(given, (feed) => (typeof feed === "string" ? { url: feed } : feed));
      const all: SubscribeResult[] = [];
      if (wanted.length === 0) return all;
      const { counts, limits } = await client.me({ signal });
      const maxBytes = Math.min(MAX_BODY_BYTES, limits.bodyBytes);
      const { operationsPerRequest, operationsPerMinute } = limits;
      const allowed = Math.min(batchSize || MAX_OPERATIONS, operationsPerRequest, operationsPerMinute ?? Infinity);
      const maxSize = Math.max(1, allowed || 1);
      const tally = { added: 0, alreadySubscribed: 0, refused: 0 };
      let size = maxSize;

      while (all.length < wanted.length) {
        const drafts = takeDrafts(wanted.slice(all.length, all.length + size), maxBytes);
        const answer = await send("/v1/operations", {
          method: "POST",
          type: `${PLAIN};ext="https://jsonapi.org/ext/atomic"`,
          body: JSON.stringify({ "atomic:operations": drafts.map(toOperation) }),
          expected: 413,
          signal,
        });
        const { error } = answer;
        if (error && drafts.length > 1) {
          size = drafts.length >> 1;
          continue;
        }
        size = Math.min(maxSize, 2 * size);
        // A feed that is too long all alone does not keep the others out.
        const said = error ? [error] : read(answer, readResults);
        let results = drafts.map((draft, index) => toResult(draft, said[index]));

        // A try whose answer was lost may have added what this one found to be there.
        if (answer.attempt > 1 && results.some(({ outcome }) => outcome === "already-subscribed")) {
          // Removals only move items towards the front, so everything after the items seen so far is new.
          const known = counts.subscriptions + tally.added;
          const newer = await listFrom("/v1/subscriptions", known, readSubscription, signal);
          for (const { id } of all) newer.delete(id);
          results = results.map((result) => {
            const found = newer.get(result.id);
            if (found?.feedUrl !== result.feed) return result;
            // A feed that was given twice is added once.
            newer.delete(found.id);
            return toResult(result, found);
          });
        }
        for (const { outcome } of results) tally[outcome === "already-subscribed" ? "alreadySubscribed" : outcome] += 1;
        all.push(...results);
        onProgress?.({ done: all.length, total: wanted.length, ...tally, results });
      }
      return all;
    },

    async *subscriptions({ pageSize = MAX_PAGE_SIZE, signal } = {}) {
      const seen = new Set<string>();
      let query: string | undefined = writePage(1, pageSize);
      let lastTotal = 0;
      let isBehind = false;
      let budget = MAX_ITEMS;
      /** How many pages may bring nothing new: those that were gone back to, and one where it overlaps. */
      let slack = 0;
      while (query) {
        const { items, total, prev, next }: Part = await list(query, signal);
        // Removals have moved what comes next to an earlier page: go back to where something is known.
        isBehind = total < lastTotal || (isBehind && !seen.has(items[0]?.id ?? ""));
        lastTotal = total;
        if (isBehind && prev) {
          query = prev;
          slack += 2;
          budget -= MAX_PAGE_SIZE;
          continue;
        }
        const { size } = seen;
        for (const item of items) {
          if (seen.has(item.id)) continue;
          seen.add(item.id);
          yield item;
        }
        if (seen.size === size) slack -= 1;
        if (next && (slack < 0 || seen.size > budget)) throw invalidAnswer("Endless List");
        query = next;
      }
    },

    async page({ number = 1, size = MAX_PAGE_SIZE, signal } = {}) {
      const { items, total, next } = await list(writePage(number, size), signal);
      return { items, total, number, size, hasNext: next !== undefined };
    },

    async get(id, { signal } = {}) {
      const answer = await send(`/v1/subscriptions/${encodeURIComponent(id)}`, { expected: 404, signal });
      return answer.error ? undefined : read(answer, ({ data }: { readonly data: Resource }) => readSubscription(data));
    },

    async remove(id, { signal } = {}) {
      return remove("/v1/subscriptions", id, signal);
    },

    async importOpml(opml, { dryRun = false, signal } = {}) {
      const answer = await send(`/v1/imports${dryRun ? "?dryRun=true" : ""}`, {
        method: "POST",
        type: "text/x-opml",
        body: opml as string | Blob,
        // Sent again, it could not tell what the first try has added.
        once: !dryRun,
        isFile: true,
        signal,
      });
      return read(answer, ({ data, meta }: ImportDocument) => ({
        dryRun: meta.dry_run,
        counts: readNames<ImportReport["counts"]>(meta.counts),
        entries: data.map(({ attributes }) => readNames<ImportEntry>(attributes)),
      }));
    },

    async exportOpml({ signal } = {}) {
      return (await send("/v1/subscriptions.opml", { isFile: true, signal })).text;
    },

    async me({ signal } = {}) {
      return read(await send("/v1/me", { signal }), ({ data, meta }: MeDocument) => {
        const { created_at, ...person } = data.attributes;
        const [counts, limits] = [{ ...meta.counts }, readNames<Me["limits"]>(meta.limits)];
        return { ...person, createdAt: readMoment(created_at), ...meta, counts, limits };
      });
    },

    async signUp(person, { signal } = {}) {
      await sendOne("/v1/accounts", "account", person, { once: true, signal });
    },

    async signIn(person, { signal } = {}) {
      // Sent again, it opens one session more, which does no harm.
      await sendOne("/v1/sessions", "session", person, { signal });
    },

    async signOut(options) {
      try {
        const { credential } = await client.me(options);
        if (credential) await client.revoke({ kind: "session", id: credential.id }, options);
      } catch (error) {
        // Its session has ended, perhaps by a try whose answer was lost.
        if (!(error instanceof EarmarkError) || error.status !== 401) throw error;
      }
    },

    async changePassword({ current, wanted }, { signal } = {}) {
      const attributes = { current_password: current, password: wanted };
      await sendOne("/v1/me", "account", attributes, { method: "PATCH", once: true, signal });
    },

    async tokens({ signal } = {}) {
      return listAccess("/v1/tokens", signal);
    },

    async sessions({ signal } = {}) {
      return listAccess("/v1/sessions", signal);
    },

    async createToken({ label, scope = "write", expiresAt }, { signal } = {}) {
      // JSON would turn a date that is none into null, and the token would never end.
      const attributes = { label, scope, expires_at: expiresAt?.toISOString() };
      const answer = await sendOne("/v1/tokens", "token", attributes, { once: true, signal });
      return read(answer, ({ data }: { readonly data: AccessResource }) => ({
        ...readAccess(data),
        secret: data.attributes.token,
      }));
    },

    async revoke({ kind, id }, { signal } = {}) {
      return remove(`/v1/${kind}s`, id, signal);
    },

    async exportAccount({ signal } = {}) {
      return (await send("/v1/me/export", { isFile: true, signal })).text;
    },

    async deleteAccount({ signal } = {}) {
      // Sent again, it could not tell an account that is gone from a session that has ended.
      await send("/v1/me", { method: "DELETE", once: true, signal });
    },
  };
  return client;
}

/** As many feeds, from the first on, as fit into a body; one in any case. */
function takeDrafts(feeds: readonly Exclude<Feed, string>[], maxBytes: number): Draft[] {
  const drafts: Draft[] = [];
  let bytes = 0;
  for (const { url: feed, id = guid(feed) } of feeds) {
    // No character of an address takes more than three bytes, and what surrounds it has room in 200.
    bytes += 3 * feed.length + 200;
    if (drafts.length > 0 && bytes > maxBytes) break;
    drafts.push({ feed, id: id.toLowerCase() });
  }
  return drafts;
}

function toOperation({ feed, id }: Draft): object {
  return { op: "add", data: { type: "subscription", id, attributes: { feed_url: feed } } };
}

function writePage(number: number, size: number): string {
  return `?page[number]=${number}&page[size]=${size}`;
}

/** Reads the document of an answer; whatever goes wrong there, the answer is to blame. */
function read<Document, Value>({ text }: Answer, reader: (document: Document) => Value): Value {
  try {
    return reader(JSON.parse(text));
  } catch {
    throw invalidAnswer("Not Earmark");
  }
}

/** The text of a response. Stops at `maxBytes`, whatever the headers say. */
async function readText(response: Response, maxBytes: number): Promise<string> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for (let bytes = 0; reader; ) {
    const { value } = await reader.read();
    if (!value) return new Blob(chunks).text();
    chunks.push(value);
    bytes += value.length;
    if (bytes > maxBytes) {
      await reader.cancel();
      throw invalidAnswer("Response Too Large");
    }
  }
  return response.text();
}

/** Whatever its status was. */
function invalidAnswer(title: string): EarmarkError {
  return new EarmarkError({ status: 200, title });
}

/** Snake case lives on the wire. */
function readNames<Value>(members: object): Value {
  const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [camel(name), value])) as Value;
}

function readSubscription({ id, attributes }: Resource): Subscription {
  const feedUrl = attributes.feed_url;
  const subscribedAt = new Date(attributes.user_subscribed_at);
  // A list keeps every id that it has read, so none may be long.
  if (typeof feedUrl !== "string" || !/^[\w-]{1,36}$/.test(id) || Number.isNaN(+subscribedAt)) throw Error();
  return { id, feedUrl, subscribedAt };
}

function readAccess({ type, id, attributes }: AccessResource): Access {
  const { label, scope = "write", created_at, last_used_at, expires_at, current = false } = attributes;
  return {
    id,
    kind: type,
    label,
    scope,
    createdAt: new Date(created_at),
    lastUsedAt: readMoment(last_used_at),
    expiresAt: readMoment(expires_at),
    isCurrent: current,
  };
}

function readMoment(text: string | null): Date | null {
  return text ? new Date(text) : null;
}

/** Undefined where the server said nothing that can be understood. */
function readResults(document: OperationsDocument): (Subscription | ErrorObject | undefined)[] {
  return document["atomic:results"].map(({ data, errors: [error] = [] }) =>
    data ? readSubscription(data) : error && readError(error),
  );
}

function readError(error: WireError): ErrorObject {
  return { ...error, status: Number(error.status) };
}

function readFailure({ status, statusText, headers }: Response, text: string): EarmarkError {
  const after = headers.get("Retry-After") ?? "";
  const seconds = Number(after) || (Date.parse(after) - Date.now()) / 1_000;
  const retryAfter = Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
  let errors: readonly ErrorObject[] = [];
  try {
    errors = (JSON.parse(text) as { readonly errors: readonly WireError[] }).errors.map(readError);
  } catch {
    // A proxy has answered in words of its own.
  }
  return new EarmarkError({ title: statusText || "Failed", ...errors[0], status }, errors, retryAfter);
}

function toResult(
  { feed, id }: Draft,
  said: Subscription | ErrorObject = { status: 500, title: "No Result" },
): SubscribeResult {
  if ("feedUrl" in said) return { feed, id, outcome: "added", subscription: said };
  const { status, title, detail } = said;
  const outcome = title === "Already Subscribed" ? "already-subscribed" : "refused";
  return { feed, id, outcome, error: { status, title, detail } };
}

/** Ends early when the signal says so; the caller looks at it. */
function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

function withoutSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

/**
 * The id that the podcast namespace gives a feed: a UUID, version 5, of its address without scheme and slashes at its
 * end. The SHA-1 is written out, since browsers keep `crypto.subtle` from pages that came over http, as they do at home.
 */
export function guid(url: string): string {
  const name = new TextEncoder().encode(withoutSlashes(url.replace(/^[a-z][a-z\d+.-]*:\/\//i, "")));
  const length = name.length + 16;
  const message = new DataView(new ArrayBuffer((length + 72) & ~63));
  // The namespace, ead4c236-bf58-58c6-a2c6-a6b28d128cb6.
  message.setBigUint64(0, 0xead4c236bf5858c6n);
  message.setBigUint64(8, 0xa2c6a6b28d128cb6n);
  new Uint8Array(message.buffer).set(name, 16);
  message.setUint8(length, 0x80);
  message.setUint32(message.byteLength - 4, 8 * length);

  const words = new Int32Array(80);
  const word = (index: number) => words[index] as number;
  const rotate = (value: number, by: number) => (value << by) | (value >>> (32 - by));
  let [h0, h1, h2, h3, h4] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  for (let block = 0; block < message.byteLength; block += 64) {
    let [a, b, c, d, e] = [h0, h1, h2, h3, h4];
    for (let i = 0; i < 80; i += 1) {
      words[i] =
        i < 16 ? message.getInt32(block + 4 * i) : rotate(word(i - 3) ^ word(i - 8) ^ word(i - 14) ^ word(i - 16), 1);
      const mixed =
        i < 20
          ? (d ^ (b & (c ^ d))) + 0x5a827999
          : i < 40
            ? (b ^ c ^ d) + 0x6ed9eba1
            : i < 60
              ? ((b & c) | (d & (b | c))) + 0x8f1bbcdc
              : (b ^ c ^ d) + 0xca62c1d6;
      [a, b, c, d, e] = [(rotate(a, 5) + mixed + e + word(i)) | 0, a, rotate(b, 30), c, d];
    }
    [h0, h1, h2, h3, h4] = [h0 + a, h1 + b, h2 + c, h3 + d, h4 + e];
  }
  // Version 5, and the variant of RFC 9562.
  return [h0, (h1 & 0xffff0fff) | 0x5000, (h2 & 0x3fffffff) | 0x80000000, h3]
    .map((part) => (part >>> 0).toString(16).padStart(8, "0"))
    .join("")
    .replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
