import { createError, type ErrorObject, failure, type RequestFailure } from "../errors.ts";
import { readFeedUrl } from "../feed-url.ts";
import type { Conflict, Draft, Malformed, Refusal, Subscription } from "../subscriptions.ts";

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

/** Reads a resource object: its type first, then its id, then its attributes. The first fault is the one reported. */
export function readResource(resource: Readonly<Record<string, unknown>>): Draft | Malformed {
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
const AT: Record<Conflict["refused"], Malformed["at"]> = {
  "already-subscribed": "/attributes/feed_url",
  "id-in-use": "/id",
};

/** `pointer` turns the place within the resource into the place within the document. */
export function explain(refusal: Refusal, pointer: (at: Malformed["at"]) => string): ErrorObject {
  if ("change" in refusal) {
    const { change } = refusal;
    const meta = { feed_url: change.feedUrl, guid: change.kind === "add" ? change.guid : change.id };
    return createError(refusal.refused, { source: { pointer: pointer(AT[refusal.refused]) }, meta });
  }
  if (refusal.refused === "quota-exceeded") {
    const { max } = refusal;
    return createError("quota-exceeded", { max, source: { pointer: pointer("") }, meta: { max } });
  }
  if (refusal.refused === "not-found")
    return createError("not-found", { resource: "Subscription", source: { pointer: pointer("/id") } });
  const { refused, reason = "", at } = refusal;
  return createError(refused, { type: TYPE, reason, source: { pointer: pointer(at) } });
}

export const COLLECTION = "/v1/subscriptions";

/** `base` is the path under which the server is reached; it stands before every link. */
export function selfLink(id: string, base: string): string {
  return `${base}${COLLECTION}/${id}`;
}

/** The text of a resource object, built directly: it is most of what the server sends. */
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
        : `"user_subscribed_at":"${writeMoment(subscribedAt)}"`;
  }
  if (attributes !== "") attributes += "}";
  return `{"type":"${TYPE}","id":"${id}"${attributes},"links":{"self":"${selfLink(id, base)}"}}`;
}

let lastMoment = { time: Number.NaN, text: "" };

/** Items that came in one request share their moment, so the last one is often the next one too. */
function writeMoment(moment: Date): string {
  const time = moment.getTime();
  if (lastMoment.time !== time) lastMoment = { time, text: moment.toISOString() };
  return lastMoment.text;
}
