import { type MediaType, PLAIN } from "../jsonapi/media-type.ts";
import {
  FAILURES,
  type FailureName,
  failureResponse,
  headerRef,
  ref,
  statusOf,
  TRANSPORT_FAILURES,
} from "./failures.ts";
import type { Facts } from "./schemas.ts";
import type { Header, Method, Operation, Reference, RequestBody, Response, SecurityRequirement } from "./types.ts";

/** What is particular to one operation; everything else follows from it. */
export interface Outline {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Who may do it, in the words of `http/authenticate.ts`. */
  readonly access: "open" | "read" | "write" | "account" | "metrics";
  /** The dialect of its answers. */
  readonly media?: MediaType;
  readonly parameters?: readonly string[];
  readonly body?: RequestBody;
  readonly answers: Readonly<Record<string, Response>>;
  /** What it may fail with, beside what any request of its kind may fail with. */
  readonly failures?: readonly FailureName[];
}

export type Describe = (method: Method, outline: Outline) => Operation;

/** Describes operations; the answers to failures are shared, and collected in `responses`. */
export function createDescriber(facts: Facts, responses: Map<string, Response>): Describe {
  return (method, outline) => {
    const { id, tag, summary, description, access, media = PLAIN, parameters = [], body, answers } = outline;
    const failures = new Set<FailureName>([
      ...TRANSPORT_FAILURES,
      ...failuresOfAccess(facts, method, access),
      ...(body === undefined ? [] : (["UnsupportedMediaType", "ContentTooLarge"] as const)),
      ...(outline.failures ?? []),
    ]);
    const security = securityOf(facts, access);
    return {
      operationId: id,
      tags: [tag],
      summary,
      ...(description === undefined ? {} : { description }),
      ...(security === undefined ? {} : { security }),
      ...(parameters.length === 0
        ? {}
        : { parameters: parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })) }),
      ...(body === undefined ? {} : { requestBody: body }),
      responses: { ...answers, ...shareFailures([...failures], media, responses) },
    };
  };
}

/** What follows from who may do something; see `http/guard.ts` and `http/authenticate.ts`. */
function failuresOfAccess(facts: Facts, method: Method, access: Outline["access"]): readonly FailureName[] {
  if (facts.accounts === undefined)
    return access === "metrics" && facts.metricsToken !== undefined
      ? ["CrossSiteRequest", "Unauthorized"]
      : ["CrossSiteRequest"];
  const failures: FailureName[] = ["TokenInQuery"];
  // Other sites may link to pages, not to the API.
  if (method !== "get" || (access !== "open" && access !== "metrics")) failures.push("CrossSiteRequest");
  if (access === "open") return failures;
  failures.push("Unauthorized");
  if (access === "metrics") return failures;
  failures.push("TooManyRequests", "ServiceUnavailable");
  if (access === "write") failures.push("InsufficientScope");
  if (access === "account") failures.push("SignInNeeded");
  return failures;
}

/** Undefined where it is what the whole document says: any credential, or none. */
function securityOf(
  { accounts, metricsToken }: Facts,
  access: Outline["access"],
): readonly SecurityRequirement[] | undefined {
  if (access === "metrics" && metricsToken !== undefined) return [{ metricsToken: [] }];
  if (accounts === undefined) return undefined;
  if (access === "open") return [];
  return access === "account" ? inPerson(accounts?.oidc !== undefined) : undefined;
}

/** What shows that the user is there in person. */
export function inPerson(hasProvider: boolean): readonly SecurityRequirement[] {
  return [{ session: [] }, { plainSession: [] }, ...(hasProvider ? [{ identityProvider: [] }] : [])];
}

/** One answer for each status, kept under the names of what may have happened. */
function shareFailures(
  names: readonly FailureName[],
  media: MediaType,
  responses: Map<string, Response>,
): Record<string, Reference> {
  const byStatus = Map.groupBy(
    // In the order of the table, so that the same failures always have the same name.
    (Object.keys(FAILURES) as FailureName[]).filter((name) => names.includes(name)),
    (name) => statusOf(FAILURES[name]),
  );
  const shared: Record<string, Reference> = {};
  for (const [status, same] of byStatus) {
    const name = `${media === PLAIN ? "" : "Atomic"}${same.join("Or")}`;
    if (!responses.has(name)) responses.set(name, failureResponse(same, media));
    shared[status] = { $ref: `#/components/responses/${name}` };
  }
  return shared;
}

export interface AnswerParts {
  readonly media?: MediaType;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly examples?: Readonly<Record<string, unknown>>;
}

/** An answer with a document of this schema. */
export function answer(description: string, schema: string, parts: AnswerParts = {}): Response {
  const { media = PLAIN, headers, examples } = parts;
  return {
    description,
    headers: { Vary: headerRef("Vary"), ...headers },
    content: { [media.contentType]: { schema: ref(schema), ...showing(examples) } },
  };
}

export function emptyAnswer(description: string, headers: Response["headers"] = {}): Response {
  return { description, headers: { Vary: headerRef("Vary"), ...headers } };
}

/** A text that is no document of ours. */
export function textAnswer(
  description: string,
  type: string,
  headers: Response["headers"] = {},
  examples?: Readonly<Record<string, unknown>>,
): Response {
  return {
    description,
    headers: { Vary: headerRef("Vary"), ...headers },
    content: { [type]: { schema: { type: "string" }, ...showing(examples) } },
  };
}

export function documentBody(
  description: string,
  schema: string,
  examples: Readonly<Record<string, unknown>>,
  media: MediaType = PLAIN,
): RequestBody {
  return {
    required: true,
    description,
    content: { [media.contentType]: { schema: ref(schema), ...showing(examples) } },
  };
}

/** Examples by a summary in words, as OpenAPI wants them: by a name without blanks. */
function showing(examples: Readonly<Record<string, unknown>> | undefined) {
  if (examples === undefined) return {};
  const named = Object.entries(examples).map(([summary, value]) => [
    summary.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-"),
    { summary, value },
  ]);
  return { examples: Object.fromEntries(named) as Record<string, { summary: string; value: unknown }> };
}
