import { type ErrorObject, invalidResponse } from "./errors.ts";
import type {
  Changes,
  Credential,
  Duplicate,
  ImportReport,
  Me,
  Operation,
  OperationResult,
  Podcast,
  Subscription,
} from "./types.ts";

// The parts of the server's documents that the client reads.
export interface SubscriptionResource {
  readonly id: string;
  readonly attributes: {
    readonly feed_url: string;
    readonly user_subscribed_at: string;
    readonly title?: string;
    readonly folders?: readonly string[];
    readonly former_feed_urls?: readonly string[];
  };
}
export interface CredentialResource {
  readonly type: Credential["kind"];
  readonly id: string;
  readonly attributes: {
    readonly label: string;
    readonly scope?: Credential["scope"];
    readonly created_at: string;
    readonly last_used_at: string | null;
    readonly expires_at: string | null;
    readonly current?: boolean;
    readonly token: string;
  };
}
export interface AnyResource {
  readonly id: string;
  readonly attributes: object;
}
export interface DuplicateResource {
  readonly id: string;
  readonly attributes: Pick<Duplicate, "reason">;
  readonly relationships: { readonly subscriptions: { readonly data: readonly { readonly id: string }[] } };
}
export interface ErrorResource extends Omit<ErrorObject, "status"> {
  readonly status: string;
}
interface ListDocument<Data> {
  readonly data: readonly (Data & {
    readonly relationships?: { readonly podcast?: { readonly data: { readonly id: string } } };
  })[];
  readonly included?: readonly AnyResource[];
  readonly links: { readonly prev: string | null; readonly next: string | null };
  readonly meta: { readonly total: number };
}
export interface ResultsDocument {
  readonly "atomic:results": readonly {
    readonly data?: SubscriptionResource | null;
    readonly errors?: readonly ErrorResource[];
  }[];
}
interface ImportDocument {
  readonly data: readonly { readonly attributes: object }[];
  readonly meta: { readonly dry_run: boolean; readonly counts: object; readonly reasons: ImportReport["reasons"] };
}
interface MeDocument {
  readonly data: { readonly id: string; readonly attributes: object };
  readonly meta: Pick<Me, "credential" | "counts" | "state"> & { readonly limits: object };
}
interface ChangesDocument {
  readonly data: readonly SubscriptionResource[];
  readonly meta: { readonly removed: readonly { readonly id: string }[]; readonly state: string; has_more: boolean };
}

/** One page of a list. `prev` and `next` are query strings. */
export interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly total: number;
  readonly prev: string | undefined;
  readonly next: string | undefined;
}

/** Parses a document. Any failure means that the response is invalid. */
export function readDocument<Document, Value>(text: string, reader: (document: Document) => Value): Value {
  try {
    return reader(JSON.parse(text));
  } catch {
    throw invalidResponse("invalid-response", "Invalid Response");
  }
}

export function readSubscription({ id, attributes }: SubscriptionResource, podcast?: Podcast): Subscription {
  const { feed_url: feedUrl, user_subscribed_at, title, folders, former_feed_urls: formerFeedUrls } = attributes;
  const subscribedAt = new Date(user_subscribed_at);
  if (typeof feedUrl !== "string" || Number.isNaN(+subscribedAt)) throw Error();
  return {
    id: readId(id),
    feedUrl,
    subscribedAt,
    ...(title && { title }),
    ...(folders && { folders }),
    ...(formerFeedUrls && { formerFeedUrls }),
    ...(podcast && { podcast }),
  };
}

/** The client remembers the ids it has read, so their length must be limited. */
function readId(id: string): string {
  if (!/^[\w-]{1,36}$/.test(id)) throw Error();
  return id;
}

export function readChanges({ data, meta }: ChangesDocument): Changes {
  const { removed, state, has_more } = meta;
  if (typeof state !== "string") throw Error();
  return {
    changed: data.map((each) => readSubscription(each)),
    removed: removed.map(({ id }) => readId(id)),
    state,
    hasMore: has_more,
  };
}

export function readCredential({ type, id, attributes }: CredentialResource): Credential {
  const { current = false, token, ...rest } = attributes;
  return {
    id,
    kind: type,
    scope: "write",
    ...readAttributes<Pick<Credential, "label" | "createdAt" | "lastUsedAt" | "expiresAt">>(rest),
    isCurrent: current,
  };
}

/** The id and the attributes of a resource, with names in camel case. */
export function readResource<Value>({ id, attributes }: AnyResource): Value {
  return { id, ...readAttributes(attributes) } as Value;
}

export function readPage<Data, Item>(
  { data, included = [], links, meta }: ListDocument<Data>,
  reader: (data: Data, podcast?: Podcast) => Item,
): ListPage<Item> {
  const podcasts = new Map(included.map((podcast) => [podcast.id, readResource<Podcast>(podcast)]));
  // Never follow a link to another host: take only its query string.
  const queryOf = (link: string | null) => link?.replace(/^[^?]*/, "");
  return {
    items: data.map((each) => reader(each, podcasts.get(each.relationships?.podcast?.data.id ?? ""))),
    total: meta.total,
    prev: queryOf(links.prev),
    next: queryOf(links.next),
  };
}

export function readDuplicate({ id, attributes: { reason }, relationships }: DuplicateResource): Duplicate {
  return { id: readId(id), reason, subscriptions: relationships.subscriptions.data.map((each) => readId(each.id)) };
}

export const NO_RESULT: ErrorObject = { status: 500, code: "invalid-response", title: "No Result" };

/** Result N of the document, or an error if it has none. */
export function readResult(document: ResultsDocument, index: number): OperationResult {
  const { data, errors: [error] = [] } = document["atomic:results"][index] ?? {};
  return data === undefined || error
    ? { outcome: "refused", error: error ? readError(error) : NO_RESULT }
    : { outcome: "done", subscription: data && readSubscription(data) };
}

export function readImport({ data, meta }: ImportDocument): ImportReport {
  return {
    dryRun: meta.dry_run,
    counts: readAttributes(meta.counts),
    reasons: meta.reasons,
    entries: data.map(({ attributes }) => readAttributes(attributes)),
  };
}

export function readMe({ data, meta }: MeDocument): Me {
  return {
    id: data.id,
    ...readAttributes<Pick<Me, "name" | "issuer" | "role" | "createdAt" | "followMoves">>(data.attributes),
    ...meta,
    counts: { ...meta.counts },
    limits: readAttributes(meta.limits),
  };
}

export function readError(error: ErrorResource): ErrorObject {
  return { ...error, status: Number(error.status) };
}

export function writeOperation(operation: Operation): object {
  const { op, id } = operation;
  if (op === "remove") {
    const { mergeInto } = operation;
    return { op, ref: { type: "subscription", id }, ...(mergeInto && { meta: { merge_into: mergeInto } }) };
  }
  const { feedUrl: feed_url, title, folders } = operation;
  const former = op === "update" ? { former_feed_urls: operation.formerFeedUrls } : {};
  return { op, data: { type: "subscription", id, attributes: { feed_url, title, folders, ...former } } };
}

export function readDate(text: string | null | undefined): Date | null {
  return text ? new Date(text) : null;
}

/** Names become camel case, and timestamps become dates. */
export function readAttributes<Value>(members: object): Value {
  const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  const entries = Object.entries(members);
  return Object.fromEntries(
    entries.map(([name, value]) => [camel(name), /_(at|since)$/.test(name) ? readDate(value) : value]),
  ) as Value;
}
