import { readFile } from "node:fs/promises";
import { PLAIN } from "../jsonapi/media-type.ts";
import type { Facts } from "../openapi/document.ts";
import type { AddResource } from "./resource.ts";
import { respondContent } from "./respond.ts";

/** Nothing but our own style sheet: there is no script to run, and nothing inline. */
const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * What this server can do: as a document for programs, and as a page for people. Both are made when they are first asked
 * for, so that no start waits for them.
 */
export function addDocs(resource: AddResource, facts: Facts): void {
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
  for (const [path, [name, type, headers]] of Object.entries(files)) {
    resource(path, PLAIN, {
      GET: [
        "open",
        async (_request, response) => {
          made ??= make(facts);
          respondContent(response, type, (await made)[name], headers);
        },
      ],
    });
  }
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
