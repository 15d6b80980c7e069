import { type Draft, isRefusal, type Page, type Refusal, type Subscription } from "../subscriptions.ts";
import { malformedDocument, RequestFailure } from "./failure.ts";
import { PLAIN } from "./media-type.ts";
import { writeLinks } from "./pages.ts";
import type { ListQuery } from "./query.ts";
import { COLLECTION, explain, type Field, isObject, readResource, writeResource } from "./resource.ts";

const JSONAPI = JSON.stringify(PLAIN.jsonapi);

/** Reads a document that holds one resource object; throws what is wrong with it. */
export function readSubscription(document: unknown): Draft {
  if (!isObject(document)) throw malformedDocument("The document must be a JSON object.", "");
  for (const member of ["errors", "atomic:operations", "atomic:results"]) {
    if (member in document) {
      throw malformedDocument(`A document with one subscription must not have the member \`${member}\`.`, `/${member}`);
    }
  }
  const { data } = document;
  if (!isObject(data)) {
    throw new RequestFailure({
      status: 422,
      title: "Validation Failed",
      detail: "The document must have the member `data`, exactly one resource object.",
      source: { pointer: "data" in document ? "/data" : "" },
    });
  }
  const reading = readResource(data);
  if (isRefusal(reading)) throw refusedSubscription(reading);
  return reading;
}

export function refusedSubscription(refusal: Refusal): RequestFailure {
  const error = explain(refusal, (at) => `/data${at}`);
  // The document is valid: as the answer to a whole request, a full list is 403.
  return new RequestFailure(refusal.refused === "quota-exceeded" ? { ...error, status: 403 } : error);
}

export function writeSubscription(subscription: Subscription, base: string, fields?: readonly Field[]): string {
  return `{"jsonapi":${JSONAPI},"data":${writeResource(subscription, base, fields)}}`;
}

export function writePage({ items, total }: Page, query: ListQuery, base: string): string {
  const { fields } = query;
  const links = writeLinks(`${base}${COLLECTION}`, query, total, writeFields(fields));
  let data = "";
  for (const item of items) data += (data === "" ? "" : ",") + writeResource(item, base, fields);
  return `{"jsonapi":${JSONAPI},"links":${links},"data":[${data}],"meta":{"total":${total}}}`;
}

function writeFields(fields: readonly Field[] | undefined): string {
  return fields === undefined ? "" : `&fields[subscription]=${fields.join(",")}`;
}
