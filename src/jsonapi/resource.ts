import { type Details, readFolders, readTitle } from "../details.ts";
import { createError, type ErrorObject, failure, type RequestFailure } from "../errors.ts";
import { type FeedUrlFault, readFeedUrl } from "../feed-url.ts";
import type { Conflict, Draft, Refusal, Subscription, Update } from "../subscriptions.ts";

export const TYPE = "subscription";

/** Attributes of a subscription and its relationship, by their names on the wire. */
export const FIELDS = ["feed_url", "user_subscribed_at", "title", "folders", "podcast"] as const;
export type Field = (typeof FIELDS)[number];

export const PODCAST_TYPE = "podcast";
export const PODCAST_FIELDS = [
  ...(["title", "author", "description", "homepage_url", "language", "podcast_guid", "artwork"] as const),
  ...(["status", "status_since", "moved_to", "checked_at"] as const),
] as const;
export type PodcastField = (typeof PODCAST_FIELDS)[number];

const UUID_LIKE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuidLike(text: string): boolean {
  return UUID_LIKE.test(text);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function notAnObject(): RequestFailure {
  return failure("malformed-document", { reason: "The document must be a JSON object", source: { pointer: "" } });
}

interface Requested {
  readonly id: string;
  /** The id as the client wrote it. */
  readonly guid: string;
}

export type RequestedDraft = Draft & Requested;
export type RequestedUpdate = Update & Requested;
export type RequestedRemoval = Requested & { readonly kind: "remove" };
export type RequestedChange = RequestedDraft | RequestedUpdate | RequestedRemoval;

/** Why a resource object or an operation is invalid. */
export interface Malformed {
  readonly refused:
    | "unsupported-operation"
    | "invalid-operation"
    | "type-mismatch"
    | "type-missing"
    | "invalid-id"
    | "invalid-attribute"
    | "invalid-title"
    | "invalid-folders"
    | FeedUrlFault;
  /** Only for an invalid operation or attribute. */
  readonly reason?: string;
  /** JSON Pointer to the invalid value, from the resource object down. */
  readonly at: Pointer;
}

type Pointer =
  | ""
  | "/type"
  | "/id"
  | "/attributes"
  | "/attributes/feed_url"
  | "/attributes/title"
  | "/attributes/folders";

export function isMalformed<Value extends object>(reading: Value | Malformed): reading is Malformed {
  return "refused" in reading;
}

type Members = Readonly<Record<string, unknown>>;

/** Reads the type first, then the id, then the attributes, and reports the first error. */
export function readDraft(resource: Members): RequestedDraft | Malformed {
  const identity = readIdentity(resource);
  if (isMalformed(identity)) return identity;
  const { attributes } = resource;
  if (!isObject(attributes)) return { refused: "feed-url-missing", at: "attributes" in resource ? "/attributes" : "" };
  const source = readSource(attributes);
  if (isMalformed(source)) return source;
  const { id, guid } = identity;
  const { feedUrl, feed } = source;
  if (!("title" in attributes || "folders" in attributes)) return { kind: "add", id, guid, feedUrl, feed };
  const details = readDetails(attributes);
  return isMalformed(details) ? details : { kind: "add", id, guid, feedUrl, feed, ...details };
}

/** The same for an update, of which every attribute is optional. */
export function readUpdate(resource: Members): RequestedUpdate | Malformed {
  const identity = readIdentity(resource);
  if (isMalformed(identity)) return identity;
  const attributes = "attributes" in resource ? resource["attributes"] : {};
  if (!isObject(attributes))
    return { refused: "invalid-attribute", reason: "`attributes` must be an object", at: "/attributes" };
  const source = "feed_url" in attributes ? readSource(attributes) : {};
  if (isMalformed(source)) return source;
  const details = readDetails(attributes);
  if (isMalformed(details)) return details;
  return { kind: "update", ...identity, ...source, ...details };
}

export function readRemoval(reference: Members): RequestedRemoval | Malformed {
  const identity = readIdentity(reference);
  return isMalformed(identity) ? identity : { kind: "remove", ...identity };
}

function readIdentity(resource: Members): Requested | Malformed {
  const { type, id } = resource;
  if (typeof type !== "string") return { refused: "type-missing", at: "type" in resource ? "/type" : "" };
  if (type !== TYPE) return { refused: "type-mismatch", at: "/type" };
  if (typeof id !== "string" || !isUuidLike(id)) return { refused: "invalid-id", at: "id" in resource ? "/id" : "" };
  return { id: id.toLowerCase(), guid: id };
}

function readSource(attributes: Members): { readonly feedUrl: string; readonly feed: string } | Malformed {
  const feedUrl = attributes["feed_url"];
  // A pointer must lead to a value that exists (JSON:API 1.1), so the parent of a missing member is reported.
  const at = "feed_url" in attributes ? "/attributes/feed_url" : "/attributes";
  if (typeof feedUrl !== "string") return { refused: "feed-url-missing", at };
  const reading = readFeedUrl(feedUrl);
  if ("fault" in reading) return { refused: reading.fault, at };
  return { feedUrl, feed: reading.feed };
}

/** A title or folders of null are empty, which clears them. */
function readDetails(attributes: Members): Details | Malformed {
  const { title, folders } = attributes;
  const details: { title?: string; folders?: readonly string[] } = {};
  if (title !== undefined) {
    const read = title === null ? "" : typeof title === "string" ? readTitle(title) : undefined;
    if (read === undefined) return { refused: "invalid-title", at: "/attributes/title" };
    details.title = read;
  }
  if (folders !== undefined) {
    const read = folders === null ? [] : Array.isArray(folders) ? readFolders(folders) : undefined;
    if (read === undefined) return { refused: "invalid-folders", at: "/attributes/folders" };
    details.folders = read;
  }
  return details;
}

/** The value that causes a conflict. */
const AT: Record<Conflict["refused"], Pointer> = {
  "already-subscribed": "/attributes/feed_url",
  "id-in-use": "/id",
};

/** `pointer` makes a pointer into the document from one into the resource object. */
export function explainMalformed(
  { refused, reason = "", at }: Malformed,
  pointer: (at: Pointer) => string,
): ErrorObject {
  return createError(refused, { type: TYPE, reason, source: { pointer: pointer(at) } });
}

/** A conflict repeats what the client asked for. */
export function explainRefusal(
  refusal: Refusal,
  change: RequestedChange,
  pointer: (at: Pointer) => string,
): ErrorObject {
  switch (refusal.refused) {
    case "already-subscribed":
    case "id-in-use": {
      const { refused, existingId } = refusal;
      const { guid, feedUrl }: { readonly guid: string; readonly feedUrl?: string } = change;
      const existing = refused === "already-subscribed" ? { existing_id: existingId } : {};
      const meta = { feed_url: feedUrl, guid, ...existing };
      return createError(refused, { source: { pointer: pointer(AT[refused]) }, meta });
    }
    case "quota-exceeded": {
      const { max } = refusal;
      return createError("quota-exceeded", { max, source: { pointer: pointer("") }, meta: { max } });
    }
    case "not-found":
      return createError("not-found", { resource: "Subscription", source: { pointer: pointer("/id") } });
  }
}

export const COLLECTION = "/v1/subscriptions";

export function selfLink(id: string, base: string): string {
  return `${base}${COLLECTION}/${id}`;
}

/** Built by hand, since it is most of what the server sends. `podcastId` adds the relationship. */
export function writeResource(
  subscription: Subscription,
  base: string,
  fields?: readonly Field[],
  podcastId?: string,
): string {
  const { id } = subscription;
  const attributes = fields === undefined ? writeAll(subscription) : writeSome(subscription, fields);
  let member = attributes === "" ? "" : `,"attributes":{${attributes}}`;
  if (podcastId !== undefined && (fields === undefined || fields.includes("podcast")))
    member += `,"relationships":{"podcast":{"data":{"type":"${PODCAST_TYPE}","id":"${podcastId}"}}}`;
  return `{"type":"${TYPE}","id":"${id}"${member},"links":{"self":"${selfLink(id, base)}"}}`;
}

function writeAll({ feedUrl, subscribedAt, title, folders }: Subscription): string {
  let text = `"feed_url":${JSON.stringify(feedUrl)},"user_subscribed_at":"${writeTimestamp(subscribedAt)}"`;
  if (title !== undefined) text += `,"title":${JSON.stringify(title)}`;
  if (folders !== undefined) text += `,"folders":${JSON.stringify(folders)}`;
  return text;
}

function writeSome({ feedUrl, subscribedAt, title, folders }: Subscription, fields: readonly Field[]): string {
  const values = { feed_url: feedUrl, user_subscribed_at: subscribedAt, title, folders, podcast: undefined };
  return fields
    .filter((field) => values[field] !== undefined)
    .map((field) => `"${field}":${JSON.stringify(values[field])}`)
    .join();
}

let last = { time: Number.NaN, text: "" };

/** Items that were added by one request share a timestamp, so the last one is worth keeping. */
function writeTimestamp(timestamp: Date): string {
  const time = timestamp.getTime();
  if (last.time !== time) last = { time, text: timestamp.toISOString() };
  return last.text;
}
