import { readFile } from "node:fs/promises";
import type { Facts } from "../openapi/document.ts";
import { respondContent } from "./respond.ts";
import { anyQuery, type Route, route } from "./router.ts";

/** Nothing but our own style sheet: there is no script to run, and nothing inline. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * What this server can do: as a document for programs, and as a page for people. Both are made when they are first asked
 * for, so that no start waits for them.
 */
export function docsRoutes(facts: Facts): Route[] {
  let made: ReturnType<typeof make> | undefined;
  const files = {
    // Not one of the types made for it: browsers show this one, and every tool reads it.
    "/openapi.json": ["json", "application/json", {}],
    "/docs": [
      "page",
      "text/html; charset=utf-8",
      { "content-security-policy": POLICY, "cross-origin-opener-policy": "same-origin" },
    ],
    "/docs.css": ["style", "text/css; charset=utf-8", { "content-security-policy": POLICY }],
  } as const;
  return Object.entries(files).map(([path, [name, type, headers]]) =>
    route("GET", path, {
      access: "open",
      response: "file",
      query: anyQuery,
      run: async ({ response }) => {
        made ??= make(facts);
        respondContent(response, type, (await made)[name], headers);
      },
    }),
  );
}

async function make(facts: Facts): Promise<Readonly<Record<"json" | "page" | "style", string>>> {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");
  const [{ createDocument }, { writePage }, style, about] = await Promise.all([
    import("../openapi/document.ts"),
    import("../openapi/page.ts"),
    read("web/docs.css"),
    read("package.json"),
  ]);
  const { version } = JSON.parse(about) as { version: string };
  const document = createDocument(facts, version);
  return { json: JSON.stringify(document), page: writePage(document), style };
}
