import { readFileSync } from "node:fs";
import { PLAIN } from "../jsonapi/media-type.ts";
import type { AddResource } from "./resource.ts";
import { respondText } from "./respond.ts";

const FILES = {
  "/join": ["join.html", "text/html; charset=utf-8"],
  "/join.css": ["join.css", "text/css; charset=utf-8"],
  "/join.js": ["join.js", "text/javascript; charset=utf-8"],
} as const;

/** Nothing from anywhere else, nothing inline, and in no frame. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** The page to which an invitation leads. */
export function addJoinPage(resource: AddResource): void {
  for (const [path, [file, type]] of Object.entries(FILES)) {
    const text = readFileSync(new URL(`../../web/${file}`, import.meta.url), "utf8");
    resource(path, PLAIN, {
      GET: ["open", async (_request, reply) => respondText(reply, type, text, { "content-security-policy": POLICY })],
    });
  }
}
