import { failure, type RequestFailure } from "../errors/catalog.ts";
import { isObject } from "../util/is-object.ts";
import { PLAIN } from "./media-type.ts";
import { writeLinks } from "./pages.ts";
import type { PageQuery } from "./query.ts";

export type Attributes = Readonly<Record<string, unknown>>;

/** The attributes of the single resource object in a document; the object must have this type. */
export function readAttributes(document: unknown, type: string): Attributes {
  if (!isObject(document)) throw notAnObject();
  const { data } = document;
  if (!isObject(data)) {
    throw failure("malformed-document", {
      reason: "The document must have a `data` member with exactly one resource object",
      source: { pointer: "data" in document ? "/data" : "" },
    });
  }
  if (typeof data["type"] !== "string")
    throw failure("malformed-document", { reason: `\`type\` must be "${type}"`, source: { pointer: "/data" } });
  if (data["type"] !== type) throw failure("type-mismatch", { type, source: { pointer: "/data/type" } });
  const { attributes } = data;
  if (!isObject(attributes)) {
    throw failure("invalid-attribute", {
      reason: "`attributes` must be an object",
      source: { pointer: "attributes" in data ? "/data/attributes" : "/data" },
    });
  }
  return attributes;
}

export const toTimestamp = (date: Date | undefined) => date?.toISOString() ?? null;

export interface ResourceWithoutLinks {
  readonly type: string;
  readonly id: string;
  readonly attributes: object;
}

export interface Resource extends ResourceWithoutLinks {
  readonly links: { readonly self: string };
}

export function writeOne(data: ResourceWithoutLinks, meta?: object): string {
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, data, meta });
}

/** A document without a resource. */
export function writeMeta(meta: object): string {
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, meta });
}

/** One page of a collection that is short enough to be read as a whole. */
export function writePageOf(all: readonly Resource[], path: string, query: PageQuery): string {
  const start = (query.number - 1) * query.size;
  return writePage(all.slice(start, start + query.size), all.length, path, query);
}

/** One page of a collection of `total` resources. */
export function writePage(
  resources: readonly ResourceWithoutLinks[],
  total: number,
  path: string,
  query: PageQuery,
  filter = "",
): string {
  const data = JSON.stringify(resources);
  const links = writeLinks(path, query, total, filter);
  return `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"links":${links},"data":${data},"meta":{"total":${total}}}`;
}

const UUID_LIKE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuidLike(text: string): boolean {
  return UUID_LIKE.test(text);
}

export function notAnObject(): RequestFailure {
  return failure("malformed-document", { reason: "The document must be a JSON object", source: { pointer: "" } });
}
