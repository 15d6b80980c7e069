import { readFile } from "node:fs/promises";
import type { ServerUrlOf } from "../wire/client-address.ts";
import { respondContent } from "../wire/respond.ts";
import { anyQuery, type Call, type Route, route } from "../wire/router.ts";

/** One style sheet, no scripts, nothing inline. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE_HEADERS = { "content-security-policy": POLICY, "cross-origin-opener-policy": "same-origin" };

/** The server URL in docs/; readers get the URL at which they reach this server. */
const EXAMPLE_URL = "http://127.0.0.1:8080";

/** A `Host` header can name any URL, so each document is kept for this many. */
const MAX_URLS = 16;

/** The API reference: `/openapi.json` for programs, `/docs` for people. Both come from docs/. */
export function docsRoutes(serverUrlOf: ServerUrlOf): Route[] {
  const file = (path: string, type: string, load: () => Promise<string>, headers = {}) => {
    let parts: Promise<readonly Buffer[]> | undefined;
    const documents = new Map<string, Buffer>();
    const build = async (url: string) => {
      parts ??= load().then((text) => text.split(EXAMPLE_URL).map((part) => Buffer.from(part)));
      const document = Buffer.concat(
        (await parts).flatMap((part, at) => (at === 0 ? [part] : [Buffer.from(url), part])),
      );
      if (documents.size === MAX_URLS) documents.clear();
      documents.set(url, document);
      return document;
    };
    const run = async ({ request, response }: Call) => {
      const url = safeUrl(serverUrlOf(request.raw));
      respondContent(response, type, documents.get(url) ?? (await build(url)), headers);
    };
    return route("GET", path, { access: "open", ignoresAccept: true, query: anyQuery, run });
  };
  return [
    // Browsers display application/json; they would download application/openapi+json.
    file("/openapi.json", "application/json", () => read("docs/openapi.json")),
    file("/docs", "text/html; charset=utf-8", renderDocs, PAGE_HEADERS),
    file("/docs.css", "text/css; charset=utf-8", () => read("web/docs.css"), { "content-security-policy": POLICY }),
  ];
}

async function renderDocs(): Promise<string> {
  const [{ renderPage }, api, accounts] = await Promise.all([
    import("./markdown.ts"),
    read("docs/api.md"),
    read("docs/accounts.md"),
  ]);
  return renderPage({ api, accounts });
}

function read(path: string): Promise<string> {
  return readFile(new URL(`../../../${path}`, import.meta.url), "utf8");
}

/** Never echoes a URL with unusual characters, which can only come from a `Host` header, so nothing needs escaping. */
function safeUrl(url: string): string {
  return /^https?:\/\/[\w.:[\]/~-]+$/.test(url) ? url : EXAMPLE_URL;
}
