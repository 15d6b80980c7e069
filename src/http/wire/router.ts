import type { IncomingMessage } from "node:http";
import createTree from "find-my-way";
import { failure } from "../../errors/catalog.ts";
import { isUuidLike } from "../../jsonapi/document.ts";
import { type PageQuery, requireNoQuery } from "../../jsonapi/query.ts";
import type { Access, Principal } from "./access.ts";
import { type Dialect, JSON_API } from "./dialect.ts";
import type { Request, Response } from "./exchange.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];
export type Params = Readonly<Record<string, string | undefined>>;

/** What a handler gets: the request, and what its route has already read and checked. */
export interface Call<Query = void> {
  readonly request: Request;
  readonly response: Response;
  readonly caller: Principal;
  readonly params: Params;
  readonly query: Query;
  /** The limit of the request body. */
  readonly maxBytes: number;
}

/** To be called after each batch of a long read: waits for a turn, and throws if access has been revoked. */
export function afterBatch({ request, caller }: Call<unknown>): () => Promise<void> {
  return async () => {
    await request.step();
    await caller.requireAccess();
  };
}

/** What a route declares, so that no handler has to check it. */
interface Declaration<Query> {
  readonly access: Access;
  /** JSON:API unless given. Errors are in this dialect too. */
  readonly dialect?: Dialect;
  /** Skip content negotiation: the response is the same for any Accept header. */
  readonly ignoresAccept?: boolean;
  /** Reads the query string. Unless given, no parameters are allowed. */
  readonly query?: (query: string) => Query;
  /** The limit of the request body, and a check of its Content-Type if it is not that of the dialect. */
  readonly body?: { readonly maxBytes: number; readonly requireContentType?: Dialect["requireContentType"] };
  /** How many requests it counts as: one per 100 rows. Unless it is one, this is a long read. */
  readonly cost?: (query: Query) => number;
  /** It waits for no turn once it has arrived: it costs nothing, or lasts as long as the client wants. */
  readonly startsAtOnce?: true;
  readonly run: (call: Call<Query>) => Promise<void>;
}

export interface Route {
  readonly method: Method;
  /** A segment that starts with a colon is a parameter. */
  readonly path: string;
  readonly access: Access;
  readonly dialect: Dialect;
  /** Throws or rejects if the request is invalid. */
  readonly handle: (request: Request, response: Response, caller: Principal, params: Params) => Promise<void>;
}

export function route<Query = void>(method: Method, path: string, declaration: Declaration<Query>): Route {
  const {
    access,
    dialect = JSON_API,
    ignoresAccept = false,
    body,
    cost = () => 1,
    startsAtOnce = false,
    run,
  } = declaration;
  const readQuery = declaration.query ?? (requireNoQuery as (query: string) => Query);
  const requireContentType = body && (body.requireContentType ?? dialect.requireContentType);
  return {
    method,
    path,
    access,
    dialect,
    handle(request, response, caller, params) {
      requireContentType?.(request.headers["content-type"]);
      if (!ignoresAccept) dialect.requireAccept(request.headers.accept);
      const query = readQuery(queryOf(request.raw));
      const requests = cost(query);
      if (requests > 1) caller.spendRequests(requests - 1);
      const call = { request, response, caller, params, query, maxBytes: body?.maxBytes ?? 0 };
      if (body !== undefined || startsAtOnce) return run(call);
      // Other requests take their turn when their body has been received.
      const turn = requests > 1 ? request.readTurn() : request.turn();
      return turn === undefined ? run(call) : turn.then(() => (response.closed ? undefined : run(call)));
    },
  };
}

/** Rows that one request may read; one that may read more counts as several. */
const ROWS_PER_REQUEST = 100;
/** A page that starts later costs more to find. */
const MAX_CHEAP_OFFSET = 10_000;
/** Everything that an account has: as many requests as a list of two thousand feeds has pages. */
export const costOfEverything = () => 20;
export const costOfRows = ({ size }: { readonly size: number }) => Math.ceil(size / ROWS_PER_REQUEST);
export const costOfPage = ({ number, size }: PageQuery) =>
  costOfRows({ size }) + ((number - 1) * size > MAX_CHEAP_OFFSET ? 1 : 0);

/** For routes that take any query string and ignore it. */
export const anyQuery = () => undefined;

/** All routes of one path. */
export interface PathRoutes {
  readonly path: string;
  readonly routes: ReadonlyMap<string, Route>;
  /** The value of the Allow header. */
  readonly allow: string;
  readonly dialect: Dialect;
}

export interface Match {
  readonly pathRoutes: PathRoutes;
  readonly params: Params;
}

/** Longer than any request target. */
const MAX_PARAM_LENGTH = 64 * 1024;

export class Router {
  /** Finds `PathRoutes` by path. Methods are handled by `routeOf`, so all paths are registered under GET. */
  readonly #tree = createTree({ maxParamLength: MAX_PARAM_LENGTH });

  constructor(routes: readonly Route[]) {
    for (const [path, own] of Map.groupBy(routes, (each) => each.path))
      this.#tree.on("GET", path, () => undefined, createPathRoutes(path, own));
  }

  find(path: string): Match | undefined {
    const found = this.#tree.find("GET", path);
    if (found === null) return undefined;
    for (const name in found.params) if (found.params[name] === "") return undefined;
    return { pathRoutes: found.store as PathRoutes, params: found.params };
  }
}

function createPathRoutes(path: string, routes: readonly Route[]): PathRoutes {
  const byMethod = new Map(routes.flatMap((each) => methodsOf(each).map((method) => [method, each] as const)));
  const dialect = routes[0]?.dialect ?? JSON_API;
  return { path, routes: byMethod, allow: [...byMethod.keys()].join(", "), dialect };
}

/** HEAD is GET without the body of the response. A GET with `write` access has side effects, so it has no HEAD. */
function methodsOf({ method, access }: Route): readonly string[] {
  return method === "GET" && access !== "write" ? ["GET", "HEAD"] : [method];
}

/** Throws unless the path exists and has a route for the method. */
export function routeOf(match: Match | undefined, { method, url = "/" }: IncomingMessage): Route {
  if (match === undefined) throw failure(hasValidPercentEncoding(url) ? "unknown-path" : "malformed-target");
  const { routes, allow } = match.pathRoutes;
  const found = routes.get(method ?? "");
  if (found === undefined) throw failure("method-not-allowed", { methods: allow, headers: { allow } });
  return found;
}

function hasValidPercentEncoding(url: string): boolean {
  try {
    decodeURIComponent(pathOf(url));
    return true;
  } catch {
    return false;
  }
}

/** The path and query of a target in absolute form (RFC 9112, 3.2.2); without a path it is the root. */
export function toOriginForm(target: string): string {
  if (target.startsWith("/")) return target;
  return target.replace(/^https?:\/\/[^/?#]*(?=[/?#]|$)/i, "").replace(/^(?!\/)/, "/");
}

export function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}

function queryOf({ url = "" }: IncomingMessage): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}

/** The `:id` of a path, in lower case. */
export function idOf({ id = "" }: Params): string {
  if (!isUuidLike(id)) throw failure("invalid-id");
  return id.toLowerCase();
}
