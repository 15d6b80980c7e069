import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { ERRORS, type ErrorCode } from "../../src/errors/catalog.ts";

export type Schema = Readonly<Record<string, unknown>>;
interface Reference {
  readonly $ref: string;
  readonly description?: string;
}
interface Header {
  readonly required?: boolean;
  readonly schema: Schema;
}
export type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Content;
}
export interface Operation {
  readonly operationId: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response | Reference>>;
}
export interface OpenApi {
  readonly info: { readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: NonNullable<Operation["security"]>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** What the server serves, built from docs/openapi/. */
export const TEXT = readFileSync(new URL("../../web/dist/openapi.json", import.meta.url), "utf8");
export const DOCUMENT: OpenApi = JSON.parse(TEXT);

/** What came back, as the harness has it. */
export interface ActualResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const PLAIN = "application/vnd.api+json";
const ATOMIC = `${PLAIN};ext="https://jsonapi.org/ext/atomic"`;
/** Not part of the API, and not in the document. */
const PAGES = /^\/(docs|docs\.css|join|service-worker\.js|reset-password|assets\/.*|l\/.*)?$/;
/** APIs of podcast apps, which others define. */
const APPS = /^\/+(api|apps|index\.php|login|ocs|status\.php|subscriptions|suggestions|toplist|search|clientconfig)\b/;
/** Required in every response. */
const COMMON_HEADERS: Readonly<Record<string, RegExp>> = {
  vary: /^Accept(, Origin)?$/,
  "cache-control": /^(no-store(, no-transform)?|private, max-age=31536000, immutable)$/,
  "x-content-type-options": /^nosniff$/,
  "referrer-policy": /^no-referrer$/,
  "cross-origin-resource-policy": /^same-origin$/,
  "content-security-policy": /^default-src 'none'; .*frame-ancestors 'none'/,
};
/** Only allowed where the document has them. */
const DESCRIBED_HEADERS = ["allow", "content-disposition", "location", "retry-after", "set-cookie", "www-authenticate"];
const operations = Object.entries(DOCUMENT.paths).map(([path, item]) => ({
  item,
  pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
}));

/** Throws unless the document allows this response to this request. */
export function checkResponse(method: string, target: string, basePath: string, actual: ActualResponse): void {
  const path = pathOf(target, basePath);
  const isPreflight = method === "OPTIONS" && actual.status === 204;
  if (PAGES.test(path) || APPS.test(path) || isPreflight) return;
  const response = responseTo(method, path, actual.status);
  const problems = [
    ...problemsOfHeaders(response, actual),
    ...(actual.status < 400
      ? problemsOfBody(method, response, actual)
      : problemsOfError(method, path, response, actual)),
  ];
  if (problems.length > 0)
    throw new Error(
      `${method} ${target}: ${actual.status} is not as in docs/openapi/:\n  ${problems.join("\n  ")}\n${actual.text.slice(0, 2_000)}`,
    );
}

/** Responses to a request whose path or method is not in the document. */
const UNDOCUMENTED: Readonly<Record<string, Reference>> = {
  404: { $ref: "#/components/responses/NotFound", description: "`unknown-path`" },
  405: { $ref: "#/components/responses/MethodNotAllowed" },
};

function responseTo(method: string, path: string, status: number): Response | undefined {
  const item = operations.find(({ pattern }) => pattern.test(path))?.item;
  if (item === undefined && status === 405) return undefined;
  const operation = item?.[method === "HEAD" ? "get" : method.toLowerCase()];
  const response = (operation?.responses ?? UNDOCUMENTED)[status];
  return response && resolveResponse(response);
}

/** The path as the server sees it: without origin, base path and query string. */
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

/** The description beside a reference replaces that of its target. */
export function resolveResponse(response: Response | Reference): Response {
  if (!("$ref" in response)) return response;
  const target = lookUp(response) as Response;
  return { ...target, description: response.description ?? target.description };
}

function lookUp({ $ref }: Reference): unknown {
  const [, , kind = "", name = ""] = $ref.split("/");
  return DOCUMENT.components[kind]?.[name];
}

const ANY_ERROR = resolveResponse({ $ref: "#/components/responses/Error" });

/** A description lists the codes of its errors. */
export function codesIn({ description }: Response): readonly string[] {
  return [...description.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code).filter((code) => code in ERRORS);
}

function problemsOfHeaders(response: Response | undefined, { headers }: ActualResponse): readonly string[] {
  const problems: string[] = [];
  for (const [name, pattern] of Object.entries(COMMON_HEADERS))
    if (!pattern.test(String(headers[name]))) problems.push(`header ${name}: ${headers[name]}`);
  const described: Record<string, Header> = {};
  for (const [name, header] of Object.entries((response ?? ANY_ERROR).headers ?? {}))
    described[name.toLowerCase()] = "$ref" in header ? (lookUp(header) as Header) : header;
  for (const [name, { required, schema }] of Object.entries(described)) {
    const given = headers[name];
    if (given === undefined && required) problems.push(`header ${name} is missing`);
    const validate = compile(schema);
    for (const value of given === undefined ? [] : [given].flat())
      if (!validate(value)) problems.push(`header ${name}: ${value}`);
  }
  for (const name of DESCRIBED_HEADERS)
    if (headers[name] !== undefined && described[name] === undefined) problems.push(`header ${name} is undocumented`);
  return problems;
}

function problemsOfBody(method: string, response: Response | undefined, { headers, text }: ActualResponse) {
  if (response === undefined) return ["the status is undocumented"];
  const { content = {} } = response;
  const type = headers["content-type"];
  if (type === undefined && Object.keys(content).length === 0) return text === "" ? [] : ["the body must be empty"];
  const media = content[String(type)] ?? content[String(type).replace(/^(text\/.*); charset=utf-8$/, "$1")];
  if (media === undefined) return [`the Content-Type is ${type}`];
  if (method === "HEAD") return text === "" ? [] : ["the body must be empty"];
  const body: unknown = String(type).includes("json") ? parse(text) : text;
  const errors = errorsOf(body);
  const validate = compile(media.schema);
  return [
    ...(validate(body) ? [] : explain(validate)),
    ...errors.flatMap((error) => problemsOfCode(error, codesIn(response))),
  ];
}

const ERROR = { $ref: "#/components/schemas/ErrorDocument" };
const ATOMIC_ERROR = { $ref: "#/components/schemas/AtomicErrorDocument" };

function problemsOfError(method: string, path: string, response: Response | undefined, actual: ActualResponse) {
  const type = String(actual.headers["content-type"]);
  if (method === "HEAD") return actual.text === "" ? [] : ["the body must be empty"];
  const body = parse(actual.text);
  const [error] = errorsOf(body);
  const validate = compile(type === ATOMIC ? ATOMIC_ERROR : ERROR);
  if (!validate(body)) return explain(validate);
  const anywhere = codesIn(ANY_ERROR);
  const isAnywhere = anywhere.includes(error?.code ?? "");
  const types = path === "/v1/operations" ? [ATOMIC, ...(isAnywhere ? [PLAIN] : [])] : [PLAIN];
  return [
    ...(types.includes(type) ? [] : [`the Content-Type is ${type}`]),
    ...(error?.status === String(actual.status) ? [] : [`the status in the document is ${error?.status}`]),
    ...problemsOfCode(error, [...anywhere, ...(response === undefined ? [] : codesIn(response))]),
  ];
}

interface WireError {
  readonly status: string;
  readonly code: ErrorCode;
  readonly title: string;
}

/** The errors of a document, or of all results of operations. */
function errorsOf(body: unknown): readonly WireError[] {
  const { errors = [], "atomic:results": results = [] } = (body ?? {}) as {
    errors?: WireError[];
    "atomic:results"?: { errors?: WireError[] }[];
  };
  return [...errors, ...results.flatMap((result) => result.errors ?? [])];
}

/** Status and title must be those in the catalog, and the code must be documented for this response. */
function problemsOfCode(error: WireError | undefined, documented: readonly string[]): readonly string[] {
  if (error === undefined) return ["there is no error object"];
  const { code, status, title } = error;
  const expected = ERRORS[code];
  if (expected === undefined) return [`the code ${code} is unknown`];
  const statuses: readonly number[] = code === "quota-exceeded" ? [403, 422] : [expected.status];
  return [
    ...(documented.includes(code) ? [] : [`the code ${code} is undocumented here`]),
    ...(statuses.includes(Number(status)) ? [] : [`the status of ${code} is ${status}`]),
    ...(expected.title.includes("{") || expected.title === title ? [] : [`the title of ${code} is ${title}`]),
  ];
}

const ajv = new Ajv2020({ strict: true, strictTuples: false, allowUnionTypes: true, validateSchema: false });
formats.default(ajv);
/** Ajv knows each schema of the document by its own name. */
const withLocalNames = <T>(schema: T): T =>
  JSON.parse(JSON.stringify(schema).replaceAll("#/components/schemas/", "schema:"));
for (const [name, schema] of Object.entries(DOCUMENT.components["schemas"] ?? {}))
  ajv.addSchema(withLocalNames(schema as Schema), `schema:${name}`);
const compiled = new WeakMap<Schema, ValidateFunction>();

/** Each schema once: the same object has the same function. */
export function compile(schema: Schema): ValidateFunction {
  const validate = compiled.get(schema) ?? ajv.compile(withLocalNames(schema));
  compiled.set(schema, validate);
  return validate;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function explain({ errors }: ValidateFunction): readonly string[] {
  return (errors ?? [])
    .filter(({ keyword }) => keyword !== "anyOf")
    .map(({ instancePath, message, params }) => `${instancePath} ${message}: ${Object.values(params).join()}`.trim());
}
