import { existsSync, readFileSync } from "node:fs";
import type { ServerUrlOf } from "../wire/client-address.ts";
import { respondContent } from "../wire/respond.ts";
import { anyQuery, type Call, type Route, route } from "../wire/router.ts";
import { FOLDER } from "./page.ts";

/** One style sheet, no scripts, nothing inline. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE_HEADERS = { "content-security-policy": POLICY, "cross-origin-opener-policy": "same-origin" };

/** The server URL in docs/; readers get the URL at which they reach this server. */
const EXAMPLE_URL = "http://127.0.0.1:8080";

/** A `Host` header can name any URL, so each document is kept for this many. */
const MAX_URLS = 16;

/**
 * The API reference, built from docs/: `/openapi.json` for programs, `/docs` for people. No routes if it has not been
 * built.
 */
export function docsRoutes(serverUrlOf: ServerUrlOf): Route[] {
  const file = (path: string, name: string, type: string, headers = {}) => {
    const parts = readFileSync(new URL(name, FOLDER), "utf8")
      .split(EXAMPLE_URL)
      .map((part) => Buffer.from(part));
    const documents = new Map<string, Buffer>();
    const build = (url: string) => {
      const document = Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [Buffer.from(url), part])));
      if (documents.size === MAX_URLS) documents.clear();
      documents.set(url, document);
      return document;
    };
    const run = async ({ request, response }: Call) => {
      const url = safeUrl(serverUrlOf(request.raw));
      respondContent(response, type, documents.get(url) ?? build(url), headers);
    };
    return route("GET", path, { access: "open", ignoresAccept: true, query: anyQuery, run });
  };
  if (!existsSync(new URL("openapi.json", FOLDER))) return [];
  return [
    // Browsers display application/json; they would download application/openapi+json.
    file("/openapi.json", "openapi.json", "application/json"),
    file("/docs", "docs.html", "text/html; charset=utf-8", PAGE_HEADERS),
    file("/docs.css", "docs.css", "text/css; charset=utf-8", { "content-security-policy": POLICY }),
  ];
}

/** Never echoes a URL with unusual characters, which can only come from a `Host` header, so nothing needs escaping. */
function safeUrl(url: string): string {
  return /^https?:\/\/[\w.:[\]/~-]+$/.test(url) ? url : EXAMPLE_URL;
}
