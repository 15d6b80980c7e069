import { type Draft, isRefusal, type Page, type Refusal, type Subscription } from "../subscriptions.ts";
import { malformedDocument, RequestFailure } from "./failure.ts";
import { PLAIN } from "./media-type.ts";
import type { ListQuery } from "./query.ts";
import { explain, type Field, isObject, readResource, writeResource } from "./resource.ts";

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
  return new RequestFailure(explain(refusal, (at) => `/data${at}`));
}

export function writeSubscription(subscription: Subscription, fields?: readonly Field[]): string {
  return `{"jsonapi":${JSONAPI},"data":${writeResource(subscription, fields)}}`;
}

export function writePage({ items, total }: Page, query: ListQuery): string {
  const { number, size, fields } = query;
  const last = Math.max(1, Math.ceil(total / size));
  const link = (page: number) => JSON.stringify(writeLink(page, query));
  const prev = number === 1 || total === 0 ? "null" : link(Math.min(number - 1, last));
  const next = number >= last ? "null" : link(number + 1);
  const links = `{"self":${link(number)},"first":${link(1)},"prev":${prev},"next":${next},"last":${link(last)}}`;
  let data = "";
  for (const item of items) data += (data === "" ? "" : ",") + writeResource(item, fields);
  return `{"jsonapi":${JSONAPI},"links":${links},"data":[${data}],"meta":{"total":${total}}}`;
}

/** Brackets stand as they are, as the contract writes them. */
function writeLink(page: number, { size, fields }: ListQuery): string {
  const chosen = fields === undefined ? "" : `&fields[subscription]=${fields.join(",")}`;
  return `/v1/subscriptions?page[number]=${page}&page[size]=${size}${chosen}`;
}
