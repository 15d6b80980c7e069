import { failure, RequestFailure } from "../errors.ts";
import type { Page, Refusal, Subscription } from "../subscriptions.ts";
import type { WriteMeta } from "./changes.ts";
import { PLAIN } from "./media-type.ts";
import { writeLinks } from "./pages.ts";
import type { ListQuery } from "./query.ts";
import {
  COLLECTION,
  explainMalformed,
  explainRefusal,
  type Field,
  isMalformed,
  isObject,
  notAnObject,
  type RequestedDraft,
  readResource,
  writeResource,
} from "./resource.ts";

const JSONAPI = JSON.stringify(PLAIN.jsonapi);

/** Reads a document with one resource object. */
export function readSubscription(document: unknown): RequestedDraft {
  if (!isObject(document)) throw notAnObject();
  for (const member of ["errors", "atomic:operations", "atomic:results"]) {
    if (member in document) {
      throw failure("malformed-document", {
        reason: `A document with one subscription must not have the member \`${member}\``,
        source: { pointer: `/${member}` },
      });
    }
  }
  const { data } = document;
  if (!isObject(data)) {
    throw failure("data-missing", { source: { pointer: "data" in document ? "/data" : "" } });
  }
  const reading = readResource(data);
  if (isMalformed(reading)) throw new RequestFailure(explainMalformed(reading, (at) => `/data${at}`));
  return reading;
}

export function refusedSubscription(refusal: Refusal, draft: RequestedDraft): RequestFailure {
  const error = explainRefusal(refusal, draft, (at) => `/data${at}`);
  // The document is valid, so a full list is 403 here and not 422.
  return new RequestFailure(refusal.refused === "quota-exceeded" ? { ...error, status: 403 } : error);
}

export function writeSubscription(subscription: Subscription, base: string, fields?: readonly Field[]): string {
  return `{"jsonapi":${JSONAPI},"data":${writeResource(subscription, base, fields)}}`;
}

/** The response to a write of one subscription. */
export function writeWritten(subscription: Subscription, base: string, meta: WriteMeta): string {
  return `{"jsonapi":${JSONAPI},"data":${writeResource(subscription, base)},"meta":${JSON.stringify(meta)}}`;
}

/** The response to a removal. */
export function writeRemoved(meta: WriteMeta): string {
  return `{"jsonapi":${JSONAPI},"meta":${JSON.stringify(meta)}}`;
}

export function writePage({ items, total }: Page, query: ListQuery, base: string, state: string): string {
  const { fields } = query;
  const links = writeLinks(`${base}${COLLECTION}`, query, total, writeFields(fields));
  let data = "";
  for (const item of items) data += (data === "" ? "" : ",") + writeResource(item, base, fields);
  return `{"jsonapi":${JSONAPI},"links":${links},"data":[${data}],"meta":{"total":${total},"state":"${state}"}}`;
}

function writeFields(fields: readonly Field[] | undefined): string {
  return fields === undefined ? "" : `&fields[subscription]=${fields.join(",")}`;
}
