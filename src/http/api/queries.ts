import { isUuidLike } from "../../jsonapi/document.ts";
import {
  PAGE_PARAMETERS,
  type PageQuery,
  type Parameters,
  readFields,
  readPage,
  readParameters,
  readPositive,
  reject,
} from "../../jsonapi/query.ts";
import { readFeedUrl } from "../../lists/feed-url.ts";
import { isState } from "../../lists/state.ts";
import { isLanguage, LANGUAGES, type Language } from "../../util/languages.ts";
import {
  PODCAST_FIELDS,
  PODCAST_TYPE,
  type PodcastField,
  SUBSCRIPTION_FIELDS,
  SUBSCRIPTION_TYPE,
  type SubscriptionField,
} from "./documents/resource.ts";

/** Which fields of subscriptions and their podcasts to send. Undefined means all fields. */
export interface FieldsQuery {
  readonly fields?: readonly SubscriptionField[] | undefined;
  readonly podcastFields?: readonly PodcastField[] | undefined;
  readonly includesPodcast?: boolean;
}

export interface ListQuery extends PageQuery, FieldsQuery {
  /** Only the subscription to this feed. */
  readonly filter: { readonly feedUrl: string; readonly normalizedUrl: string } | undefined;
}

/**
 * Query string of a request for the list of subscriptions. Unknown parameters are rejected: ignoring a filter would return
 * wrong results.
 */
export function readListQuery(query: string): ListQuery {
  const parameters = readParameters(query, [...PAGE_PARAMETERS, ...SELECTION_PARAMETERS, FEED_URL_PARAMETER]);
  return { ...readPage(parameters), ...readSelection(parameters), filter: readFilter(parameters) };
}

export interface ActionListQuery extends PageQuery {
  /** Only actions for this feed. */
  readonly feedUrl: string | undefined;
}

/** There are often tens of thousands, of which a program needs all. */
const MAX_ACTIONS_PAGE_SIZE = 1_000;

export function readActionListQuery(query: string): ActionListQuery {
  const parameters = readParameters(query, [...PAGE_PARAMETERS, FEED_URL_PARAMETER]);
  const feedUrl = parameters.get(FEED_URL_PARAMETER);
  if (feedUrl !== undefined && readFeedUrl(feedUrl).kind === "invalid")
    reject(FEED_URL_PARAMETER, "must be a feed URL");
  return { ...readPage(parameters, MAX_ACTIONS_PAGE_SIZE), feedUrl };
}

const FEED_URL_PARAMETER = "filter[feed_url]";

function readFilter(parameters: Parameters): ListQuery["filter"] {
  const feedUrl = parameters.get(FEED_URL_PARAMETER);
  if (feedUrl === undefined) return undefined;
  const parsed = readFeedUrl(feedUrl);
  return parsed.kind === "valid"
    ? { feedUrl, normalizedUrl: parsed.normalizedUrl }
    : reject(FEED_URL_PARAMETER, "must be a feed URL");
}

export interface HistoryQuery extends PageQuery {
  /** Only sets that changed the subscription with this id. */
  readonly subscription: string | undefined;
}

export const SUBSCRIPTION_PARAMETER = "filter[subscription_id]";

export function readHistoryQuery(query: string): HistoryQuery {
  const parameters = readParameters(query, [...PAGE_PARAMETERS, SUBSCRIPTION_PARAMETER]);
  const subscription = parameters.get(SUBSCRIPTION_PARAMETER);
  if (subscription !== undefined && !isUuidLike(subscription))
    reject(SUBSCRIPTION_PARAMETER, "must be the id of a subscription");
  return { ...readPage(parameters), subscription: subscription?.toLowerCase() };
}

const DEFAULT_CHANGES_PAGE_SIZE = 500;

const MAX_CHANGES_PAGE_SIZE = 1_000;

export interface ChangesQuery {
  /** Undefined to start from the beginning. */
  readonly after: string | undefined;
  readonly size: number;
}

/** Reads the query string of a request for the changes to a list. */
export function readChangesQuery(query: string): ChangesQuery {
  const parameters = readParameters(query, ["page[after]", "page[size]"]);
  const after = parameters.get("page[after]");
  if (after !== undefined && !isState(after)) reject("page[after]", "must be a `state` from an earlier response");
  return { after, size: readChangesSize(parameters) };
}

function readChangesSize(parameters: Parameters): number {
  const meta = { page: { maxSize: MAX_CHANGES_PAGE_SIZE } };
  return readPositive(parameters, "page[size]", MAX_CHANGES_PAGE_SIZE, meta) ?? DEFAULT_CHANGES_PAGE_SIZE;
}

/** Reads the query string of a request for removed subscriptions: how many recorded removals to look at. */
export function readRemovalsQuery(query: string): Pick<ChangesQuery, "size"> {
  return { size: readChangesSize(readParameters(query, ["page[size]"])) };
}

/** Reads the query string of a request for one subscription. */
export function readFieldsQuery(query: string): FieldsQuery {
  return readSelection(readParameters(query, SELECTION_PARAMETERS));
}

/** Reads the query string of a request for one podcast. */
export function readPodcastQuery(query: string): FieldsQuery {
  return {
    podcastFields: readFields(
      readParameters(query, [PODCAST_FIELDS_PARAMETER]),
      PODCAST_FIELDS_PARAMETER,
      PODCAST_FIELDS,
    ),
  };
}

const SUBSCRIPTION_FIELDS_PARAMETER = `fields[${SUBSCRIPTION_TYPE}]`;

const PODCAST_FIELDS_PARAMETER = `fields[${PODCAST_TYPE}]`;

const INCLUDE_PARAMETER = "include";

const SELECTION_PARAMETERS = [SUBSCRIPTION_FIELDS_PARAMETER, INCLUDE_PARAMETER, PODCAST_FIELDS_PARAMETER];

function readSelection(parameters: Parameters): FieldsQuery {
  const include = parameters.get(INCLUDE_PARAMETER) ?? "";
  if (include !== "" && include !== PODCAST_TYPE) reject(INCLUDE_PARAMETER, `must be ${PODCAST_TYPE}`);
  return {
    fields: readFields(parameters, SUBSCRIPTION_FIELDS_PARAMETER, SUBSCRIPTION_FIELDS),
    podcastFields: readFields(parameters, PODCAST_FIELDS_PARAMETER, PODCAST_FIELDS),
    includesPodcast: include !== "",
  };
}

export interface AlertsQuery extends PageQuery {
  /** Of the texts. */
  readonly language: Language | undefined;
}

export function readAlertsQuery(query: string): AlertsQuery {
  const parameters = readParameters(query, [...PAGE_PARAMETERS, "language"]);
  const language = parameters.get("language");
  if (language !== undefined && !isLanguage(language)) reject("language", `must be one of ${LANGUAGES.join(", ")}`);
  return { ...readPage(parameters), language };
}

/** Query string of a request to import a file: whether it is a dry run. */
export function readImportQuery(query: string): { readonly dryRun: boolean } {
  return readDryRun(query, ["dryRun"]);
}

/** The same for an undo, and for what another server has or has exported. */
export function readDryRunQuery(query: string): { readonly dryRun: boolean } {
  return readDryRun(query, ["dryRun", "dry_run"]);
}

function readDryRun(query: string, names: readonly string[]): { readonly dryRun: boolean } {
  const parameters = readParameters(query, names);
  const values = names.map((name) => {
    const value = parameters.get(name) ?? "false";
    if (value !== "true" && value !== "false") reject(name, "must be true or false");
    return value === "true";
  });
  return { dryRun: values.includes(true) };
}
