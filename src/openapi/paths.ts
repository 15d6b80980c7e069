import { ATOMIC } from "../jsonapi/media-type.ts";
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from "../jsonapi/query.ts";
import { COLLECTION, FIELDS, TYPE } from "../jsonapi/resource.ts";
import type { FailureName } from "./failures.ts";
import { answer, type Describe, documentBody, emptyAnswer, type Outline, textAnswer } from "./operation.ts";
import type { Facts } from "./schemas.ts";
import type { Header, Parameter, PathItem } from "./types.ts";

export const PARAMETERS = {
  Id: {
    name: "id",
    in: "path",
    required: true,
    description: "8-4-4-4-12 hexadecimal digits, in any case.",
    schema: { type: "string", pattern: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" },
    example: "9b024349-ccf0-5f69-a609-6b82873eab3c",
  },
  FileName: {
    name: "name",
    in: "path",
    required: true,
    description: "As the page has it.",
    schema: { type: "string" },
    example: "icon.svg",
  },
  PageNumber: {
    name: "page[number]",
    in: "query",
    required: false,
    description: "Which page, from 1 on.",
    schema: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1 },
  },
  PageSize: {
    name: "page[size]",
    in: "query",
    required: false,
    description: "How many on a page. More is refused, since a shorter page than asked for looks like the last.",
    schema: { type: "integer", minimum: 1, maximum: MAX_PAGE_SIZE, default: DEFAULT_PAGE_SIZE },
    example: 10,
  },
  Fields: {
    name: `fields[${TYPE}]`,
    in: "query",
    required: false,
    description: "Which attributes to send, separated by commas; all of them unless it is given.",
    schema: { type: "array", items: { type: "string", enum: FIELDS } },
    style: "form",
    explode: false,
  },
  DryRun: {
    name: "dryRun",
    in: "query",
    required: false,
    description: "`true` only tells what would happen.",
    schema: { type: "boolean", default: false },
  },
} as const satisfies Record<string, Parameter>;

/** The dialect of JSON:API and what the query may be are looked at by all that answer with documents. */
export const READING = ["InvalidQueryParameter", "NotAcceptable", "ServiceUnavailable"] as const;
/** What may be wrong with a document about one thing. */
export const DOCUMENT = [...READING, "MalformedDocument", "TypeMismatch", "ValidationFailed"] as const;

const ID = "9b024349-ccf0-5f69-a609-6b82873eab3c";
const OTHER_ID = "0d9c2b1e-6a55-4c5c-8c0b-6b0e5a0a7f10";
export const MOMENT = "2026-11-15T09:30:00.000Z";
export const JSONAPI = { version: "1.1" };

const wanted = (id: string, feed_url: string) => ({ type: TYPE, id, attributes: { feed_url } });

/** A subscription as it is answered; the examples of other operations show it too. */
export const exampleSubscription = (base: string, id = ID, feed_url = "https://podnews.net/rss") => ({
  type: TYPE,
  id,
  attributes: { feed_url, user_subscribed_at: MOMENT },
  links: { self: `${base}${COLLECTION}/${id}` },
});

/** A place that was just made. */
export function location(path: string): Header {
  return {
    description: "The path of what was made.",
    required: true,
    schema: { type: "string", pattern: `^${path.replaceAll(".", "\\.")}$` },
  };
}

/** The file name under which a browser keeps the answer. */
export function download(name: string): Header {
  return {
    description: "That it is a file to be kept.",
    required: true,
    schema: { const: `attachment; filename="${name}"` },
  };
}

/** With commas between the thousands. */
function inWords(count: number): string {
  return count.toLocaleString("en-US");
}

function size(bytes: number): string {
  const units = [
    [1_048_576, "MiB"],
    [1_024, "KiB"],
  ] as const;
  const [unit, name] = units.find(([some]) => bytes % some === 0) ?? [1, "bytes"];
  return `${inWords(bytes / unit)} ${name}`;
}

export function subscriptionPaths(facts: Facts, describe: Describe): Record<string, PathItem> {
  const { basePath, limits, maxQueuedOperations } = facts;
  const operations = inWords(limits.maxOperations);
  const UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  const tag = "Subscriptions";
  const refused = ["MissingType", "InvalidResourceIdentifier", "AlreadySubscribed", "IdentifierInUse"] as const;
  const one: readonly FailureName[] = [...READING, "InvalidResourceIdentifier", "SubscriptionNotFound"];
  const pageOf = (number: number) => `${basePath}${COLLECTION}?page[number]=${number}&page[size]=10`;

  return {
    "/v1/operations": {
      post: describe("post", {
        id: "addSubscriptions",
        tag,
        summary: "Add subscriptions in bulk",
        description: `Operations are carried out in their order, each for itself: the failure of one is reported in its own result, and the others go on. There are as many results as operations, and result N answers operation N. The status is 200 even if every operation failed.

What is answered with \`data\` is on the disk. What is wrong with the whole request is answered with another status, and then none of it was carried out. A request may hold ${operations} operations in a body of ${size(limits.maxBodyBytes)}; while more than ${inWords(maxQueuedOperations)} wait to be written, the answer is 503.`,
        access: "write",
        media: ATOMIC,
        body: documentBody(
          `Up to ${operations} operations. Members that are not known are ignored.`,
          "OperationsDocument",
          {
            "Two feeds": {
              "atomic:operations": [
                { op: "add", data: wanted(ID, "https://podnews.net/rss") },
                { op: "add", data: wanted(OTHER_ID, "http://podnews.net/rss/") },
              ],
            },
          },
          ATOMIC,
        ),
        answers: {
          200: answer("What became of each operation.", "ResultsDocument", {
            media: ATOMIC,
            examples: {
              "One added, one there already": {
                jsonapi: ATOMIC.jsonapi,
                "atomic:results": [
                  { data: exampleSubscription(basePath) },
                  {
                    errors: [
                      {
                        status: "409",
                        code: "already-subscribed",
                        title: "Already Subscribed",
                        detail: "The user is already subscribed to this feed.",
                        source: { pointer: "/atomic:operations/1" },
                        meta: { feed_url: "http://podnews.net/rss/", guid: OTHER_ID, existing_id: ID },
                      },
                    ],
                  },
                ],
              },
            },
          }),
        },
        failures: [...READING, "MalformedDocument", "TooManyOperations"],
      }),
    },

    [COLLECTION]: {
      get: describe("get", {
        id: "listSubscriptions",
        tag,
        summary: "List subscriptions",
        description:
          "In the order of subscribing, oldest first. What is added later never shifts an earlier page. All five links are always there: `prev` is null on the first page, `next` on the last. A page past the end is empty.",
        access: "read",
        parameters: ["PageNumber", "PageSize", "Fields"],
        answers: {
          200: answer("A page of the list.", "SubscriptionPage", {
            examples: {
              "A short list": {
                jsonapi: JSONAPI,
                links: { self: pageOf(1), first: pageOf(1), prev: null, next: null, last: pageOf(1) },
                data: [exampleSubscription(basePath)],
                meta: { total: 1 },
              },
            },
          }),
        },
        failures: READING,
      }),
      post: describe("post", {
        id: "addSubscription",
        tag,
        summary: "Add one subscription",
        description:
          "The client chooses the `id`. A list holds a feed once: `http://Example.com/feed/` and `https://example.com/feed` are the same.",
        access: "write",
        body: documentBody("The subscription to be.", "NewSubscriptionDocument", {
          "A feed": { data: wanted(OTHER_ID, "https://feeds.example/daily") },
        }),
        answers: {
          201: answer("It was added.", "SubscriptionDocument", {
            headers: { Location: location(`${basePath}${COLLECTION}/${UUID}`) },
            examples: {
              "A feed": {
                jsonapi: JSONAPI,
                data: exampleSubscription(basePath, OTHER_ID, "https://feeds.example/daily"),
              },
            },
          }),
        },
        failures: [...DOCUMENT, ...refused, ...(facts.accounts === undefined ? [] : (["QuotaExceeded"] as const))],
      }),
    },

    [`${COLLECTION}/{id}`]: {
      get: describe("get", {
        id: "getSubscription",
        tag,
        summary: "Fetch one subscription",
        access: "read",
        parameters: ["Id", "Fields"],
        answers: {
          200: answer("The subscription.", "ChosenSubscriptionDocument", {
            examples: { "A feed": { jsonapi: JSONAPI, data: exampleSubscription(basePath) } },
          }),
        },
        failures: one,
      }),
      delete: describe("delete", {
        id: "removeSubscription",
        tag,
        summary: "Remove one subscription",
        description:
          "What was removed can be added again, under the same id or another; it then stands at the end of the list.",
        access: "write",
        parameters: ["Id"],
        answers: { 204: emptyAnswer("It was removed.") },
        failures: one,
      }),
    },
  };
}

const OPML = `<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0">
  <head><title>Podcast subscriptions</title></head>
  <body>
    <outline type="rss" text="Podnews" xmlUrl="https://podnews.net/rss"/>
  </body>
</opml>
`;

export function filePaths(facts: Facts, describe: Describe): Record<string, PathItem> {
  const { limits } = facts;
  const tag = "Files";
  const file = { schema: { type: "string" }, examples: { opml: { summary: "One feed", value: OPML } } } as const;
  return {
    "/v1/subscriptions.opml": {
      get: describe("get", {
        id: "exportOpml",
        tag,
        summary: "Take the list along as OPML",
        description: "The whole list as a file that podcast apps can import.",
        access: "read",
        answers: {
          200: textAnswer(
            "An OPML 2.0 file.",
            "text/x-opml",
            { "Content-Disposition": download("earmark.opml") },
            { "One feed": OPML },
          ),
        },
        failures: ["InvalidQueryParameter", "ServiceUnavailable"],
      }),
    },
    "/v1/imports": {
      post: describe("post", {
        id: "importOpml",
        tag,
        summary: "Import an OPML file",
        description: `Adds every feed of the file that the list does not hold, and says of each what became of it. Nothing is removed or changed, so it can be repeated. A file may be ${size(limits.maxImportBytes)} long. Some hundred feeds are written at a time: if it breaks off (503), what was added stays, and sending the file again adds the rest.`,
        access: "write",
        parameters: ["DryRun"],
        body: {
          required: true,
          description: "The file as it is, in any encoding that it names.",
          content: { "text/x-opml": file, "application/xml": file, "text/xml": file },
        },
        answers: {
          200: answer("What became of each feed, in the order of the file.", "ImportDocument", {
            examples: {
              "One feed": {
                jsonapi: JSONAPI,
                meta: { dry_run: false, counts: { found: 1, added: 1, already_subscribed: 0, refused: 0 } },
                data: [
                  {
                    type: "import-entry",
                    id: "1",
                    attributes: {
                      feed_url: "https://podnews.net/rss",
                      title: "Podnews",
                      outcome: "added",
                      code: null,
                      detail: null,
                      subscription_id: ID,
                    },
                  },
                ],
              },
            },
          }),
        },
        failures: [...READING, "MalformedDocument", "NotAnOpmlFile"],
      }),
    },
  };
}

export function healthPaths(facts: Facts, describe: Describe): Record<string, PathItem> {
  const tag = "Health";
  const status = (word: string) => ({ jsonapi: JSONAPI, meta: { status: word } });
  const metrics = (): PathItem => ({
    get: describe("get", {
      id: "getMetrics",
      tag,
      summary: "Metrics for Prometheus",
      access: "metrics",
      answers: { 200: textAnswer("All metrics, in the text format of Prometheus.", "text/plain; version=0.0.4") },
    }),
  });
  return {
    "/healthz": {
      get: describe("get", {
        id: "getHealth",
        tag,
        summary: "Whether the process lives",
        access: "open",
        answers: { 200: answer("It does.", "Health", { examples: { "It lives": status("ok") } }) },
      }),
    },
    "/readyz": {
      get: describe("get", {
        id: "getReadiness",
        tag,
        summary: "Whether the server can serve",
        description: "503 while the store cannot be reached, and from the moment when the server is asked to stop.",
        access: "open",
        answers: { 200: answer("It can.", "Readiness", { examples: { "It can serve": status("ready") } }) },
        failures: ["ServiceUnavailable"],
      }),
    },
    ...(facts.metrics ? { "/metrics": metrics() } : {}),
  };
}

export function pagePaths(facts: Facts, describe: Describe): Record<string, PathItem> {
  const policy = (value: string): Header => ({
    description: "Nothing from anywhere else, nothing inline, and in no frame.",
    required: true,
    schema: { const: value },
  });
  const closed = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  const docs = policy(`default-src 'none'; style-src 'self'; ${closed}`);
  const web = policy(
    `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; ${closed}; require-trusted-types-for 'script'; trusted-types 'none'`,
  );
  const page = (id: string, summary: string, type: string, header: Header): PathItem => ({
    get: describe("get", {
      id,
      tag: "Pages",
      summary,
      access: "open",
      answers: { 200: textAnswer(`${summary}.`, type, { "Content-Security-Policy": header }) },
    }),
  });
  const kept: Record<string, Header> = {
    "Content-Security-Policy": web,
    "Cache-Control": {
      description:
        "That a copy is compared before it is used; for a file whose name has a hash, that it never changes.",
      required: true,
      schema: { enum: ["no-cache", "public, max-age=31536000, immutable"] },
    },
    ETag: { description: "What a copy is compared by.", required: true, schema: { type: "string" } },
    Vary: {
      description: "Files are sent compressed to whoever can read that.",
      required: true,
      schema: { const: "Accept-Encoding" },
    },
    "Content-Encoding": { description: "How it is compressed.", required: false, schema: { enum: ["br", "gzip"] } },
  };
  const file = (
    id: string,
    summary: string,
    types: readonly string[],
    more: Pick<Outline, "parameters" | "failures"> = {},
    answers: Outline["answers"] = {},
  ): PathItem => ({
    get: describe("get", {
      id,
      tag: "Pages",
      summary,
      access: "open",
      answers: {
        200: {
          description: `${summary}.`,
          headers: kept,
          content: Object.fromEntries(types.map((type) => [type, { schema: { type: "string" } }])),
        },
        304: { description: "It is as `If-None-Match` has it.", headers: kept },
        ...answers,
      },
      ...more,
    }),
  });
  const base = `${facts.basePath}/`;
  const location: Header = { description: "With the slash.", required: true, schema: { const: base } };
  const moved: Outline["answers"] =
    facts.basePath === ""
      ? {}
      : { 308: emptyAnswer("The slash after the base path is missing.", { Location: location }) };
  return {
    "/openapi.json": {
      get: describe("get", {
        id: "getOpenApi",
        tag: "Pages",
        summary: "This document",
        description:
          "It says what this very server can do: with its base path, its limits, and with accounts if it has them.",
        access: "open",
        answers: {
          200: {
            ...emptyAnswer("An OpenAPI 3.1 document."),
            content: {
              "application/json": {
                schema: {
                  type: "object",
                  properties: {
                    openapi: { const: "3.1.1" },
                    info: { type: "object" },
                    paths: { type: "object" },
                    components: { type: "object" },
                  },
                  required: ["openapi", "info", "paths", "components"],
                },
              },
            },
          },
        },
      }),
    },
    "/docs": page("showDocs", "This document as a page", "text/html", docs),
    "/docs.css": page("getDocsStyle", "The style sheet of that page", "text/css", docs),
    "/": file("showPage", "The page for people", ["text/html"], {}, moved),
    "/assets/{name}": file("getAsset", "A file of that page", ["text/css", "text/javascript", "image/svg+xml"], {
      parameters: ["FileName"],
      failures: ["NoSuchFile"],
    }),
    ...(facts.accounts === undefined
      ? {}
      : { "/join": file("showJoinPage", "The page to which an invitation leads", ["text/html"]) }),
  };
}
