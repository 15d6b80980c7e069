import { readFeedUrl } from "../feed-url.ts";
import {
  type Conflict,
  type Draft,
  explainQuota,
  type Malformed,
  type Refusal,
  type Subscription,
} from "../subscriptions.ts";
import type { ErrorObject } from "./failure.ts";

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

/** Reads a resource object: its type first, then its id, then its attributes. The first fault is the one reported. */
export function readResource(resource: Readonly<Record<string, unknown>>): Draft | Malformed {
  const { type, id, attributes } = resource;
  if (typeof type !== "string")
    return { refused: "no-type", ...fault(resource, "/type", `\`type\` must be "${TYPE}"`) };
  if (type !== TYPE) return { refused: "wrong-type", detail: `\`type\` must be "${TYPE}".`, at: "/type" };
  if (typeof id !== "string" || !isUuidLike(id)) {
    return {
      refused: "invalid-id",
      ...fault(resource, "/id", "`id` must be a string of the form of a UUID: 8-4-4-4-12 hexadecimal digits"),
    };
  }
  if (!isObject(attributes))
    return {
      refused: "invalid-feed",
      ...fault(resource, "/attributes", "`attributes` must be an object with a `feed_url`"),
    };
  const feedUrl = attributes["feed_url"];
  if (typeof feedUrl !== "string") {
    const at = "feed_url" in attributes ? "/attributes/feed_url" : "/attributes";
    return { refused: "invalid-feed", detail: "`feed_url` must be a string.", at };
  }
  const reading = readFeedUrl(feedUrl);
  if ("fault" in reading)
    return { refused: "invalid-feed", detail: `\`feed_url\` ${reading.fault}.`, at: "/attributes/feed_url" };
  return { kind: "add", id: id.toLowerCase(), guid: id, feedUrl, feed: reading.feed };
}

/** A pointer must lead to a value that exists (JSON:API 1.1), so a member that is missing is blamed on its parent. */
function fault(
  resource: object,
  at: "/type" | "/id" | "/attributes",
  detail: string,
): Pick<Malformed, "detail" | "at"> {
  return { detail: `${detail}.`, at: at.slice(1) in resource ? at : "" };
}

/** Every refusal the domain knows, in the words of the wire: a new one does not compile until it has its words. */
const WORDS: Record<Refusal["refused"], { readonly status: number; readonly title: string }> = {
  "unsupported-operation": { status: 422, title: "Unsupported Operation" },
  "invalid-operation": { status: 422, title: "Invalid Operation" },
  "wrong-type": { status: 409, title: "Type Mismatch" },
  "no-type": { status: 400, title: "Type Mismatch" },
  "invalid-id": { status: 400, title: "Invalid Resource Identifier" },
  "invalid-feed": { status: 422, title: "Validation Failed" },
  "already-subscribed": { status: 409, title: "Already Subscribed" },
  "id-in-use": { status: 409, title: "Identifier In Use" },
  "not-found": { status: 404, title: "Subscription not found" },
  "quota-exceeded": { status: 422, title: "Quota Exceeded" },
};

/** The words of a conflict, and the value at its root. */
const CONFLICTS: Record<Conflict["refused"], Pick<Malformed, "detail" | "at">> = {
  "already-subscribed": { detail: "The user is already subscribed to this feed.", at: "/attributes/feed_url" },
  "id-in-use": { detail: "The user has another subscription with this id.", at: "/id" },
};

/** `pointer` turns the place within the resource into the place within the document. */
export function explain(refusal: Refusal, pointer: (at: Malformed["at"]) => string): ErrorObject {
  if (refusal.refused === "not-found")
    return {
      ...WORDS[refusal.refused],
      detail: "The user has no subscription with this id.",
      source: { pointer: pointer("/id") },
    };
  if ("change" in refusal) {
    const { detail, at } = CONFLICTS[refusal.refused];
    const { change } = refusal;
    const meta = { feed_url: change.feedUrl, guid: change.kind === "add" ? change.guid : change.id };
    return { ...WORDS[refusal.refused], detail, source: { pointer: pointer(at) }, meta };
  }
  if (refusal.refused === "quota-exceeded") {
    const { max } = refusal;
    return { ...WORDS[refusal.refused], detail: explainQuota(max), source: { pointer: pointer("") }, meta: { max } };
  }
  return { ...WORDS[refusal.refused], detail: refusal.detail, source: { pointer: pointer(refusal.at) } };
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
