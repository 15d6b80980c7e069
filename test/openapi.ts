import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { createDocument, type Facts } from "../src/openapi/document.ts";
import type { Header, OpenApi, Operation, PathItem, Reference, Response, Schema } from "../src/openapi/types.ts";

/** What came back, as the harness has it. */
export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Throws when the document does not allow this answer to this request. */
export type CheckAnswer = (method: string, target: string, answered: Answered) => void;

/** Headers that mean something wherever they stand, and so stand only where the document has them. */
const MEANINGFUL = [
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-allow-origin",
  "access-control-expose-headers",
  "access-control-max-age",
  "allow",
  "content-disposition",
  "location",
  "retry-after",
  "set-cookie",
  "www-authenticate",
];

const made = new Map<string, CheckAnswer>();

/** Holds answers to the document of a server with these settings. Nothing is made before it is needed. */
export function answerChecker(facts: Facts): CheckAnswer {
  const { accounts, basePath, corsOrigins, limits, maxQueuedOperations, metrics, metricsToken } = facts;
  const own = { accounts, basePath, corsOrigins, limits, maxQueuedOperations, metrics, metricsToken };
  const key = JSON.stringify(own);
  return (method, target, answered) => {
    let check = made.get(key);
    if (check === undefined) {
      check = createAnswerChecker(createDocument(own, "0.0.0"), basePath);
      made.set(key, check);
    }
    check(method, target, answered);
  };
}

/** Holds answers to this document. Schemas are compiled when they are first needed, each of them once. */
export function createAnswerChecker(document: OpenApi, basePath: string): CheckAnswer {
  const compile = createCompiler(document);
  const places = Object.entries(document.paths).map(([path, item]) => ({
    item,
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  }));

  return (method, target, answered) => {
    const request = `${method} ${target}`;
    const path = pathOf(target, basePath);
    const item = places.find(({ pattern }) => pattern.test(path))?.item;
    const type = answered.headers["content-type"];
    const candidates = responsesTo(document, method, item, String(answered.status));
    if (candidates.length === 0)
      throw new Error(`${request}: the API document has no ${answered.status}; it came with ${answered.text}`);
    const response = candidates.find(({ content }) => mediaTypeFor(content, type) !== undefined);
    if (response === undefined) {
      const listed = candidates.flatMap(({ content = {} }) => Object.keys(content)).join(", ") || "no body";
      throw new Error(`${request}: ${answered.status} has the Content-Type ${type}; the API document has ${listed}`);
    }

    const problems = [
      ...problemsOfHeaders(document, response, answered, compile),
      ...problemsOfBody(method, response, answered, compile),
    ];
    if (problems.length > 0) {
      const words = problems.map((problem) => `\n  ${problem}`).join("");
      throw new Error(
        `${request}: ${answered.status} is not as the API document has it:${words}\n${answered.text.slice(0, 2_000)}`,
      );
    }
  };
}

/** As the server reads a target: without what stands before the path, base path or not, and without the query. */
function pathOf(target: string, basePath: string): string {
  const path = target.replace(/^https?:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "");
  const isBelow = path === basePath || path.startsWith(`${basePath}/`);
  const rest = isBelow ? path.slice(basePath.length) : path;
  try {
    return decodeURI(rest) || "/";
  } catch {
    return rest;
  }
}

/** Every response that this request may have with this status; the rule for what is not in `paths` is `x-otherwise`. */
function responsesTo(
  document: OpenApi,
  method: string,
  item: PathItem | undefined,
  status: string,
): readonly Response[] {
  const given = (response: Response | Reference | undefined): readonly Response[] => {
    if (response === undefined) return [];
    return "$ref" in response ? given(lookUp(document, response) as Response) : [response];
  };
  const otherwise = given(document["x-otherwise"][status]);
  if (item === undefined) return status === "405" || status === "204" ? [] : otherwise;
  const operations: Readonly<Record<string, Operation | undefined>> = item;
  const operation = operations[method === "HEAD" ? "get" : method.toLowerCase()];
  if (operation !== undefined) return given(operation.responses[status]);
  if (status === "404" || (status === "204" && method !== "OPTIONS") || otherwise.length === 0) return [];
  // What any request may be answered is answered in the dialect of the path.
  return [...otherwise, ...Object.values(item).flatMap(({ responses }) => given(responses[status]))];
}

function lookUp(document: OpenApi, { $ref }: Reference): unknown {
  const [, , kind = "", name = ""] = $ref.split("/");
  const components: Readonly<Record<string, Readonly<Record<string, unknown>>>> = document.components;
  const found = components[kind]?.[name];
  if (found === undefined) throw new Error(`there is no ${$ref}`);
  return found;
}

type Compile = (schema: Schema) => ValidateFunction;

/** Compiles schemas of the document, each of them once. */
export function createCompiler(document: OpenApi): Compile {
  // That the schemas are schemas is for the linter to see: to look at them again would be most of the work.
  const ajv = new Ajv2020({ strict: true, strictTuples: false, allowUnionTypes: true, validateSchema: false });
  formats.default(ajv);
  // Under its own name, which a reference to it leads to.
  const local = <T>(schema: T): T => JSON.parse(JSON.stringify(schema).replaceAll("#/components/schemas/", "schema:"));
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(local(schema), `schema:${name}`);
  const compiled = new WeakMap<Schema, ValidateFunction>();
  return (schema) => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      validate = ajv.compile(local(schema));
      compiled.set(schema, validate);
    }
    return validate;
  };
}

/** The schema of answers of exactly this type; only of a text the charset is no part. No content is no body. */
function mediaTypeFor(content: Response["content"], type: string | string[] | undefined): Schema | "none" | undefined {
  if (content === undefined) return type === undefined ? "none" : undefined;
  const exact = content[String(type)];
  if (exact !== undefined) return exact.schema;
  return content[String(type).replace(/^(text\/.*); charset=utf-8$/, "$1")]?.schema;
}

function problemsOfHeaders(
  document: OpenApi,
  response: Response,
  { headers }: Answered,
  compile: Compile,
): readonly string[] {
  const problems: string[] = [];
  const described: Record<string, Header> = {};
  for (const [name, header] of Object.entries({ ...document["x-every-answer"].headers, ...response.headers }))
    described[name.toLowerCase()] = "$ref" in header ? (lookUp(document, header) as Header) : header;
  for (const [name, { required, schema }] of Object.entries(described)) {
    const given = headers[name];
    if (given === undefined && required) problems.push(`the header ${name} is missing`);
    const validate = compile(schema);
    for (const value of given === undefined ? [] : [given].flat())
      if (!validate(value)) problems.push(`the header ${name}: ${value} ${explain(validate.errors).join("; ")}`);
  }
  for (const name of MEANINGFUL)
    if (headers[name] !== undefined && described[name] === undefined)
      problems.push(`the header ${name} is not described`);
  return problems;
}

function problemsOfBody(
  method: string,
  { content }: Response,
  { headers, text }: Answered,
  compile: Compile,
): readonly string[] {
  const schema = mediaTypeFor(content, headers["content-type"]);
  if (method === "HEAD" || schema === "none" || schema === undefined)
    return text === "" ? [] : ["there is a body, and should be none"];
  const isJson = /[/+]json\b/.test(String(headers["content-type"]));
  let body: unknown = text;
  try {
    if (isJson) body = JSON.parse(text);
  } catch {
    return ["the body is not JSON"];
  }
  const validate = compile(schema);
  return validate(body) ? [] : explain(validate.errors);
}

/** Problems of one place in one line: where one of several schemas would do, each of them says why it does not. */
function explain(errors: readonly ErrorObject[] | null | undefined): readonly string[] {
  const byPlace = Map.groupBy(
    (errors ?? []).filter(({ keyword }) => keyword !== "anyOf"),
    ({ instancePath, message }) => `${instancePath} ${message}`.trim(),
  );
  return [...byPlace].map(([words, same]) => {
    const values = new Set(same.flatMap(({ params }) => Object.values(params)).map((value) => JSON.stringify(value)));
    return `${words}: ${[...values].join(" or ")}`;
  });
}
