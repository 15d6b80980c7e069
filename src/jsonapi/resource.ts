import { createError, type ErrorObject, failure, type RequestFailure } from "../errors.ts";
import { type FeedUrlFault, readFeedUrl } from "../feed-url.ts";
import type { Conflict, Draft, Refusal, Subscription } from "../subscriptions.ts";

export const TYPE = "subscription";

/** Attributes of a subscription, by their names on the wire. */
export const FIELDS = ["feed_url", "user_subscribed_at"] as const;
export type Field = (typeof FIELDS)[number];

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

/** A subscription that a client wants to add. */
export interface RequestedDraft extends Draft {
  /** The id as the client wrote it. */
  readonly guid: string;
}

/** Why a resource object or an operation is invalid. */
export interface Malformed {
  readonly refused:
    | "unsupported-operation"
    | "invalid-operation"
    | "type-mismatch"
    | "type-missing"
    | "invalid-id"
    | FeedUrlFault;
  /** Only for an invalid operation. */
  readonly reason?: string;
  /** JSON Pointer to the invalid value, from the resource object down. */
  readonly at: Pointer;
}

type Pointer = "" | "/type" | "/id" | "/attributes" | "/attributes/feed_url";

export function isMalformed(reading: RequestedDraft | Malformed): reading is Malformed {
  return "refused" in reading;
}

/** Reads the type first, then the id, then the attributes, and reports the first error. */
export function readResource(resource: Readonly<Record<string, unknown>>): RequestedDraft | Malformed {
  const { type, id, attributes } = resource;
  if (typeof type !== "string") return { refused: "type-missing", at: "type" in resource ? "/type" : "" };
  if (type !== TYPE) return { refused: "type-mismatch", at: "/type" };
  if (typeof id !== "string" || !isUuidLike(id)) return { refused: "invalid-id", at: "id" in resource ? "/id" : "" };
  if (!isObject(attributes)) return { refused: "feed-url-missing", at: "attributes" in resource ? "/attributes" : "" };
  const feedUrl = attributes["feed_url"];
  // A pointer must lead to a value that exists (JSON:API 1.1), so the parent of a missing member is reported.
  const at = "feed_url" in attributes ? "/attributes/feed_url" : "/attributes";
  if (typeof feedUrl !== "string") return { refused: "feed-url-missing", at };
  const reading = readFeedUrl(feedUrl);
  if ("fault" in reading) return { refused: reading.fault, at };
  return { kind: "add", id: id.toLowerCase(), guid: id, feedUrl, feed: reading.feed };
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
  { feedUrl, guid }: RequestedDraft,
  pointer: (at: Pointer) => string,
): ErrorObject {
  switch (refusal.refused) {
    case "already-subscribed":
    case "id-in-use": {
      const { refused, existingId } = refusal;
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

/** Built by hand, since it is most of what the server sends. */
export function writeResource(
  { id, feedUrl, subscribedAt }: Subscription,
  base: string,
  fields: readonly Field[] = FIELDS,
): string {
  let attributes = "";
  for (const field of fields) {
    attributes += attributes === "" ? ',"attributes":{' : ",";
    attributes +=
      field === "feed_url"
        ? `"feed_url":${JSON.stringify(feedUrl)}`
        : `"user_subscribed_at":"${writeTimestamp(subscribedAt)}"`;
  }
  if (attributes !== "") attributes += "}";
  return `{"type":"${TYPE}","id":"${id}"${attributes},"links":{"self":"${selfLink(id, base)}"}}`;
}

let last = { time: Number.NaN, text: "" };

/** Items that were added by one request share a timestamp, so the last one is worth keeping. */
function writeTimestamp(timestamp: Date): string {
  const time = timestamp.getTime();
  if (last.time !== time) last = { time, text: timestamp.toISOString() };
  return last.text;
}
