import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { Config } from "../config.ts";
import { failure } from "../errors.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import type { Request, Response } from "./exchange.ts";
import { type AddResource, relativeTo } from "./resource.ts";
import { respondContent, respondMoved, respondUnchanged } from "./respond.ts";

const FOLDER = new URL("../../web/dist/", import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};
/** Nothing from anywhere else, nothing inline, in no frame, and no text that becomes a script. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
/** A file whose name holds a hash of it never changes. */
const HASHED = /-[\w-]{8}\.\w+$/;

interface File {
  readonly type: string;
  readonly tag: string;
  readonly cache: string;
  readonly plain: Buffer;
  /** Compressed as browsers know it, best first. */
  readonly forms: readonly (readonly [coding: string, bytes: Buffer])[];
}

/**
 * The page for people, as it was built. One document is at `/` and, with accounts, where an invitation leads. False when it
 * was not built.
 */
export function addPage(resource: AddResource, { accounts, basePath }: Pick<Config, "accounts" | "basePath">): boolean {
  let html: string;
  try {
    html = readFileSync(new URL("index.html", FOLDER), "utf8");
  } catch {
    return false;
  }
  const names = readdirSync(new URL("assets/", FOLDER)).filter((name) => !/\.(br|gz)$/.test(name));
  const files = new Map(names.map((name) => [name, readFile(name)]));
  const state = accounts === undefined ? "off" : accounts.signUp ? "open" : "on";
  const [before, after] = html.split('name="earmark-accounts" content="off"');
  const document = describe("index.html", Buffer.from(`${before}name="earmark-accounts" content="${state}"${after}`));

  for (const path of accounts === undefined ? ["/"] : ["/", "/join"]) {
    resource(path, PLAIN, {
      GET: [
        "open",
        async (request, response) => {
          // Links in the page are relative, and would lead past it.
          const [path] = relativeTo(request.originalUrl).split("?");
          if (basePath !== "" && path === basePath) respondMoved(response, `${basePath}/`);
          else send(request, response, document);
        },
      ],
    });
  }
  resource("/assets/:name", PLAIN, {
    GET: [
      "open",
      async (request, response) => {
        const file = files.get(request.parameter);
        if (file === undefined) throw failure("unknown-path");
        send(request, response, file);
      },
    ],
  });
  return true;
}

function readFile(name: string): File {
  const read = (coding: string) => readFileSync(new URL(`assets/${name}${coding}`, FOLDER));
  return describe(name, read(""), [
    ["br", read(".br")],
    ["gzip", read(".gz")],
  ]);
}

function describe(name: string, bytes: Buffer, compressed: File["forms"] = []): File {
  const hash = createHash("sha256").update(bytes).digest("base64url").slice(0, 16);
  return {
    type: TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    tag: `W/"${hash}"`,
    cache: HASHED.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
    plain: bytes,
    forms: compressed,
  };
}

function send({ headers }: Request, response: Response, { type, tag, cache, plain, forms }: File): void {
  const common = {
    "cache-control": cache,
    etag: tag,
    vary: "Accept-Encoding",
    "content-security-policy": POLICY,
    // Another site that opens the page gets no handle on its window.
    ...(type === TYPES["html"] ? { "cross-origin-opener-policy": "same-origin" } : {}),
  };
  if (headers["if-none-match"]?.split(",").some((known) => known.trim() === tag)) {
    respondUnchanged(response, common);
    return;
  }
  const accepted = acceptedCodings(headers["accept-encoding"]);
  const [coding, bytes] = forms.find(([name]) => accepted.has(name)) ?? ["", plain];
  const encoding = coding === "" ? {} : { "content-encoding": coding };
  respondContent(response, type, bytes, { ...common, ...encoding });
}

/** Codings that are named and not refused; nobody sends more for a page. */
function acceptedCodings(header: string | string[] = ""): ReadonlySet<string> {
  const named = String(header)
    .toLowerCase()
    .split(",")
    .map((item) => item.split(";").map((part) => part.trim()));
  return new Set(named.filter(([, weight = ""]) => !/^q=0(\.0*)?$/.test(weight)).map(([coding = ""]) => coding));
}
