import { failure } from "../errors/catalog.ts";
import {
  PODCAST_FIELDS,
  PODCAST_TYPE,
  type PodcastField,
  SUBSCRIPTION_FIELDS,
  SUBSCRIPTION_TYPE,
  type SubscriptionField,
} from "../http/api/documents/resource.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import { isState } from "../lists/state.ts";
import { replaceControlCharacters } from "../util/control-characters.ts";

export const DEFAULT_PAGE_SIZE = 25;
export const MAX_PAGE_SIZE = 100;

export interface PageQuery {
  readonly number: number;
  readonly size: number;
}

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

type Parameters = ReadonlyMap<string, string>;

/**
 * Query string of a request for the list of subscriptions. Unknown parameters are rejected: ignoring a filter would return
 * wrong results.
 */
export function readListQuery(query: string): ListQuery {
  const parameters = readParameters(query, [...PAGE_PARAMETERS, ...SELECTION_PARAMETERS, FEED_URL_PARAMETER]);
  return { ...readPage(parameters), ...readSelection(parameters), filter: readFilter(parameters) };
}

/** Reads the query string of a request for a collection without sparse fieldsets. */
export function readPageQuery(query: string): PageQuery {
  return readPage(readParameters(query, PAGE_PARAMETERS));
}

export interface ActionListQuery extends PageQuery {
  /** Only actions for this feed. */
  readonly feedUrl: string | undefined;
}

export function readActionListQuery(query: string): ActionListQuery {
  const parameters = readParameters(query, [...PAGE_PARAMETERS, FEED_URL_PARAMETER]);
  const feedUrl = parameters.get(FEED_URL_PARAMETER);
  if (feedUrl !== undefined && "errorCode" in readFeedUrl(feedUrl)) reject(FEED_URL_PARAMETER, "must be a feed URL");
  return { ...readPage(parameters), feedUrl };
}

const PAGE_PARAMETERS = ["page[number]", "page[size]"];
const FEED_URL_PARAMETER = "filter[feed_url]";

function readFilter(parameters: Parameters): ListQuery["filter"] {
  const feedUrl = parameters.get(FEED_URL_PARAMETER);
  if (feedUrl === undefined) return undefined;
  const parsed = readFeedUrl(feedUrl);
  return "normalizedUrl" in parsed
    ? { feedUrl, normalizedUrl: parsed.normalizedUrl }
    : reject(FEED_URL_PARAMETER, "must be a feed URL");
}

function readPage(parameters: Parameters): PageQuery {
  return {
    number: readPositive(parameters, "page[number]", Number.MAX_SAFE_INTEGER) ?? 1,
    size:
      readPositive(parameters, "page[size]", MAX_PAGE_SIZE, { page: { maxSize: MAX_PAGE_SIZE } }) ?? DEFAULT_PAGE_SIZE,
  };
}

export const DEFAULT_CHANGES_PAGE_SIZE = 500;
export const MAX_CHANGES_PAGE_SIZE = 1_000;

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

/** Query string of a request to import a file: whether it is a dry run. */
export function readImportQuery(query: string): { readonly dryRun: boolean } {
  const value = readParameters(query, ["dryRun"]).get("dryRun") ?? "false";
  if (value !== "true" && value !== "false") reject("dryRun", "must be true or false");
  return { dryRun: value === "true" };
}

export function requireNoQuery(query: string): void {
  if (query !== "") readParameters(query, []);
}

function readParameters(query: string, supported: readonly string[]): Parameters {
  const parameters = new Map<string, string>();
  for (const part of query.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const rawName = equals === -1 ? part : part.slice(0, equals);
    const name = decode(rawName) ?? reject(rawName, "is not percent-encoded UTF-8");
    if (!supported.includes(name))
      reject(
        name,
        supported.length === 0
          ? "is not supported; this request takes no parameters"
          : `is not supported; supported: ${supported.join(", ")}`,
      );
    if (parameters.has(name)) reject(name, "must not be repeated");
    parameters.set(
      name,
      decode(equals === -1 ? "" : part.slice(equals + 1)) ??
        reject(name, "has a value that is not percent-encoded UTF-8"),
    );
  }
  return parameters;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function readPositive(
  parameters: Parameters,
  name: string,
  max: number,
  meta?: Record<string, unknown>,
): number | undefined {
  const text = parameters.get(name);
  if (text === undefined) return undefined;
  const value = /^[0-9]+$/.test(text) ? Number(text) : 0;
  if (value === 0 || value > max) reject(name, `must be an integer from 1 to ${max}`, meta);
  return value;
}

function readFields<Name extends string>(
  parameters: Parameters,
  parameter: string,
  supported: readonly Name[],
): readonly Name[] | undefined {
  const text = parameters.get(parameter);
  if (text === undefined) return undefined;
  const fields = new Set<Name>();
  for (const name of text === "" ? [] : text.split(",")) {
    fields.add(
      supported.find((field) => field === name) ??
        reject(parameter, `has an unsupported field; supported: ${supported.join(", ")}`),
    );
  }
  return [...fields];
}

function reject(parameter: string, reason: string, meta?: Record<string, unknown>): never {
  throw failure("invalid-query", {
    parameter: shorten(parameter),
    reason,
    source: { parameter },
    ...(meta === undefined ? {} : { meta }),
  });
}

function shorten(text: string): string {
  return replaceControlCharacters(text.length <= 64 ? text : `${text.slice(0, 64)}…`);
}
