import { failure, RequestFailure } from "../../../errors/catalog.ts";
import { notAnObject } from "../../../jsonapi/document.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import { writeLinks } from "../../../jsonapi/pages.ts";
import type { Page } from "../../../lists/list-store.ts";
import type { Refusal, Subscription } from "../../../lists/subscription.ts";
import { isObject } from "../../../util/is-object.ts";
import type { FieldsQuery, ListQuery } from "../queries.ts";
import type { StateMeta } from "./changes.ts";
import type { WrittenPodcast } from "./podcasts.ts";
import {
  COLLECTION,
  isMalformed,
  type Malformed,
  malformedError,
  type RequestedAddition,
  type RequestedChange,
  type RequestedUpdate,
  readAddition,
  readUpdate,
  refusalError,
  writeSubscriptionResource,
} from "./resource.ts";

const toDocumentPointer = (pointer: string) => `/data${pointer}`;
const JSONAPI = JSON.stringify(PLAIN.jsonapi);

/** Reads a document with a subscription to add. */
export function readSubscription(document: unknown): RequestedAddition {
  return readDocument(document, readAddition);
}

/** Reads a document that updates the subscription with this id. */
export function readSubscriptionUpdate(document: unknown, id: string): RequestedUpdate {
  const update = readDocument(document, readUpdate);
  if (update.id !== id) throw failure("id-mismatch", { source: { pointer: "/data/id" } });
  return update;
}

function readDocument<Change extends RequestedChange>(
  document: unknown,
  read: (resource: Readonly<Record<string, unknown>>) => Change | Malformed,
): Change {
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
  const parsed = read(data);
  if (isMalformed(parsed)) throw new RequestFailure(malformedError(parsed, toDocumentPointer));
  return parsed;
}

export function toRequestFailure(refusal: Refusal, change: RequestedChange): RequestFailure {
  if (refusal.code === "not-found") return failure("not-found", { resource: "Subscription" });
  const error = refusalError(refusal, change, toDocumentPointer);
  // The whole request fails, so a full list is 403 here; for one of several operations it is 422.
  return new RequestFailure(refusal.code === "quota-exceeded" ? { ...error, status: 403 } : error);
}

/** `podcast` is passed only if the query asks for it, and is then included. */
export function writeSubscription(
  subscription: Subscription,
  basePath: string,
  query: FieldsQuery = {},
  podcast?: WrittenPodcast,
): string {
  const data = writeSubscriptionResource(subscription, basePath, query.fields, podcast?.id);
  return `{"jsonapi":${JSONAPI},"data":${data}${writeIncluded(podcast && [podcast])}}`;
}

function writeIncluded(podcasts: readonly WrittenPodcast[] | undefined): string {
  if (podcasts === undefined) return "";
  let included = "";
  for (const { text } of podcasts) included += (included === "" ? "" : ",") + text;
  return `,"included":[${included}]`;
}

/** The response to a request that writes one subscription. */
export function writeChangedSubscription(subscription: Subscription, basePath: string, meta: StateMeta): string {
  return `{"jsonapi":${JSONAPI},"data":${writeSubscriptionResource(subscription, basePath)},"meta":${JSON.stringify(meta)}}`;
}

/** `podcasts` are passed only if the query asks for them, and are then included. Podcast N belongs to item N. */
export function writeSubscriptionPage(
  { items, total }: Page,
  query: ListQuery,
  basePath: string,
  state: string,
  podcasts?: readonly WrittenPodcast[],
): string {
  const { fields, filter } = query;
  const links = writeLinks(`${basePath}${COLLECTION}`, query, total, writeFilter(filter) + writeSelection(query));
  let data = "";
  for (const [index, item] of items.entries())
    data += (data === "" ? "" : ",") + writeSubscriptionResource(item, basePath, fields, podcasts?.[index]?.id);
  const included = writeIncluded(podcasts);
  return `{"jsonapi":${JSONAPI},"links":${links},"data":[${data}]${included},"meta":{"total":${total},"state":"${state}"}}`;
}

function writeFilter(filter: ListQuery["filter"]): string {
  return filter === undefined ? "" : `&filter[feed_url]=${encodeURIComponent(filter.feedUrl)}`;
}

function writeSelection({ fields, podcastFields, includesPodcast }: FieldsQuery): string {
  let text = fields === undefined ? "" : `&fields[subscription]=${fields.join(",")}`;
  if (includesPodcast === true) text += "&include=podcast";
  if (podcastFields !== undefined) text += `&fields[podcast]=${podcastFields.join(",")}`;
  return text;
}
