import type { IncomingMessage } from "node:http";
import type { RouteFamily } from "./site-guard.ts";
import { type Dialect, JSON_API } from "./wire/dialect.ts";
import { type Match, type PathRoutes, pathOf, type Route, Router } from "./wire/router.ts";

/** Finds the routes of a path that may begin with the base path. */
export class RouteFinder {
  readonly #router: Router;
  readonly #appDialects: readonly Dialect[];
  readonly #basePath: string;

  constructor(routes: readonly Route[], basePath: string) {
    this.#router = new Router(routes);
    const dialects = new Set(routes.map(({ dialect }) => dialect));
    this.#appDialects = [...dialects].filter(({ app }) => app !== undefined);
    this.#basePath = basePath;
  }

  find(path: string): PathRoutes | undefined {
    return this.#router.find(this.#removeBasePath(path))?.pathRoutes;
  }

  /** Finds the routes, and sets the URL without the base path. Some apps repeat slashes between the parts of a path. */
  findAndRewriteUrl(raw: IncomingMessage, target: string): Match | undefined {
    raw.url = this.#removeBasePath(target);
    const match = this.#router.find(pathOf(raw.url));
    if (match !== undefined || !target.includes("//")) return match;
    const path = pathOf(target);
    const url = this.#removeBasePath(path.replaceAll(/\/{2,}/g, "/") + target.slice(path.length));
    const found = this.#router.find(pathOf(url));
    if (found?.pathRoutes.dialect.app === undefined) return undefined;
    raw.url = url;
    return found;
  }

  /** Apps get all errors in their own dialect, even for unknown paths. */
  dialectOf(match: Match | undefined, url: string): Dialect {
    if (match !== undefined) return match.pathRoutes.dialect;
    const path = url.replaceAll(/\/{2,}/g, "/");
    const isOwn = ({ app }: Dialect) => app?.paths.some((start) => path.startsWith(start));
    return this.#appDialects.find(isOwn) ?? JSON_API;
  }

  /** A proxy may forward the path with or without the base path; both work. */
  #removeBasePath(path: string): string {
    if (!path.startsWith(this.#basePath)) return path;
    const rest = path.slice(this.#basePath.length);
    return /^[/?]/.test(rest) ? rest.replace(/^\?/, "/?") : rest === "" ? "/" : path;
  }
}

export function familyOf(match: Match | undefined): RouteFamily {
  if (match?.pathRoutes.dialect.app !== undefined) return "app";
  return match?.pathRoutes.path.startsWith("/v1/") === true ? "api" : "page";
}
