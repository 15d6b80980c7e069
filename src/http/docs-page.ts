import { readFile } from "node:fs/promises";
import type { ServerUrlOf } from "./client-address.ts";
import { respondContent } from "./respond.ts";
import { anyQuery, type Call, type Route, route } from "./router.ts";

/** One style sheet, no scripts, nothing inline. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE_HEADERS = { "content-security-policy": POLICY, "cross-origin-opener-policy": "same-origin" };

/** The server URL in docs/; readers get the URL at which they reach this server. */
const EXAMPLE_URL = "http://127.0.0.1:8080";

/** The API reference: `/openapi.json` for programs, `/docs` for people. Both come from docs/. */
export function docsRoutes(serverUrlOf: ServerUrlOf): Route[] {
  const file = (path: string, type: string, load: () => Promise<string>, headers = {}) => {
    let loaded: Promise<string> | undefined;
    const run = async ({ request, response }: Call) => {
      loaded ??= load();
      const text = (await loaded).replaceAll(EXAMPLE_URL, () => safeUrl(serverUrlOf(request.raw)));
      respondContent(response, type, text, headers);
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
  return readFile(new URL(`../../${path}`, import.meta.url), "utf8");
}

/** Never echoes a URL with unusual characters, which can only come from a `Host` header, so nothing needs escaping. */
function safeUrl(url: string): string {
  return /^https?:\/\/[\w.:[\]/~-]+$/.test(url) ? url : EXAMPLE_URL;
}
