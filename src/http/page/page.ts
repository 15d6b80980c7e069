import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { Config } from "../../config/config.ts";
import { failure } from "../../errors/catalog.ts";
import type { Request, Response } from "../wire/exchange.ts";
import { respondContent, respondMoved, respondUnchanged } from "../wire/respond.ts";
import { anyQuery, type Call, type Route, route, toOriginForm } from "../wire/router.ts";

/** What bin/build.js builds. */
export const FOLDER = new URL("../../../web/dist/", import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
};
/** Only our own files, nothing inline, no frames, no strings evaluated as scripts or URLs of scripts but one. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; manifest-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types service-worker";
/** A file with a hash in its name never changes. */
const HASHED = /-[\w-]{8}\.\w+$/;

type PageConfig = Pick<Config, "accounts" | "basePath" | "publicUrl" | "fetch" | "directory">;

interface File {
  readonly type: string;
  readonly tag: string;
  readonly cache: string;
  readonly plain: Buffer;
  /** Compressed variants in order of preference. */
  readonly encoded: readonly (readonly [coding: string, bytes: Buffer])[];
}

/**
 * The web page at `/` and, with accounts, at `/join` for invitations and at `/reset-password` for reset links. No routes if
 * the page has not been built.
 */
export function pageRoutes({ accounts, basePath, publicUrl, fetch, directory }: PageConfig): Route[] {
  let html: string;
  try {
    html = readFileSync(new URL("index.html", FOLDER), "utf8");
  } catch {
    return [];
  }
  const names = readdirSync(new URL("assets/", FOLDER)).filter((name) => !/\.(br|gz)$/.test(name));
  const files = new Map(names.map((name) => [name, loadFile(name)]));
  const state = accounts === undefined ? "off" : accounts.signUp ? "open" : "on";
  const provider = escapeAttribute(accounts?.oidc?.login?.name ?? "");
  const text = html
    .replace(
      'name="earmark-accounts" content="off"',
      () => `name="earmark-accounts" content="${state}" data-provider="${provider}"`,
    )
    .replace('name="earmark-fetching" content="false"', `name="earmark-fetching" content="${fetch !== undefined}"`)
    // These are from URLs that `URL` has normalized, so nothing needs escaping.
    .replace('name="earmark-directory" content=""', `name="earmark-directory" content="${directoryHostOf(directory)}"`)
    .replace('name="earmark-url" content=""', `name="earmark-url" content="${publicUrl ?? ""}"`);
  const document = toFile("index.html", Buffer.from(text));
  const worker = toFile("service-worker.js", Buffer.from(writeServiceWorker(document, files)));

  const get = (path: string, run: (call: Call) => Promise<void>) =>
    route("GET", path, { access: "open", ignoresAccept: true, query: anyQuery, run });
  const sendPage = async ({ request, response }: Call) => {
    // Links in the page are relative: without the final slash they would lead outside the base path.
    const [path] = toOriginForm(request.originalUrl).split("?");
    if (basePath !== "" && path === basePath) respondMoved(response, `${basePath}/`);
    else send(request, response, document);
  };
  const sendWorker = async ({ request, response }: Call) => send(request, response, worker);
  const sendAsset = async ({ request, response, params }: Call) => {
    const file = files.get(params["name"] ?? "");
    if (file === undefined) throw failure("unknown-path");
    send(request, response, file);
  };
  return [
    get("/", sendPage),
    ...(accounts === undefined ? [] : [get("/join", sendPage), get("/reset-password", sendPage)]),
    get("/service-worker.js", sendWorker),
    get("/assets/:name", sendAsset),
  ];
}

/** The icons of installed pages are stored by the system. */
const isStoredInBrowser = (name: string): boolean => !name.endsWith(".png");

/** The script changes with any of the files, and with the settings that the document contains. */
function writeServiceWorker(document: File, files: ReadonlyMap<string, File>): string {
  const stored = [...files].filter(([name]) => isStoredInBrowser(name));
  const hash = createHash("sha256");
  for (const { tag } of [document, ...stored.map(([, file]) => file)]) hash.update(tag);
  return readFileSync(new URL("service-worker.js", FOLDER), "utf8")
    .replace('VERSION = ""', () => `VERSION = "${hash.digest("base64url").slice(0, 16)}"`)
    .replace("FILES = []", () => `FILES = ${JSON.stringify(stored.map(([name]) => name))}`);
}

/** Shown to people, so that they know where their words go. */
function directoryHostOf(directory: string | undefined): string {
  return directory === undefined ? "" : new URL(directory).host;
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

function loadFile(name: string): File {
  const read = (coding: string) => readFileSync(new URL(`assets/${name}${coding}`, FOLDER));
  return toFile(name, read(""), [
    ["br", read(".br")],
    ["gzip", read(".gz")],
  ]);
}

function toFile(name: string, bytes: Buffer, compressed: File["encoded"] = []): File {
  const hash = createHash("sha256").update(bytes).digest("base64url").slice(0, 16);
  return {
    type: TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    tag: `W/"${hash}"`,
    cache: HASHED.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
    plain: bytes,
    encoded: compressed,
  };
}

function send({ headers }: Request, response: Response, { type, tag, cache, plain, encoded }: File): void {
  const common = {
    "cache-control": cache,
    etag: tag,
    vary: "Accept-Encoding",
    "content-security-policy": POLICY,
    // Other sites that open the page get no reference to its window.
    ...(type === TYPES["html"] ? { "cross-origin-opener-policy": "same-origin" } : {}),
  };
  if (headers["if-none-match"]?.split(",").some((known) => known.trim() === tag)) {
    respondUnchanged(response, common);
    return;
  }
  const accepted = acceptedCodings(headers["accept-encoding"]);
  const [coding, bytes] = encoded.find(([name]) => accepted.has(name)) ?? ["", plain];
  const encoding = coding === "" ? {} : { "content-encoding": coding };
  respondContent(response, type, bytes, { ...common, ...encoding });
}

/** Encodings that are listed without `q=0`; browsers send no wildcards. */
function acceptedCodings(header: string | string[] = ""): ReadonlySet<string> {
  const named = String(header)
    .toLowerCase()
    .split(",")
    .map((item) => item.split(";").map((part) => part.trim()));
  return new Set(named.filter(([, weight = ""]) => !/^q=0(\.0*)?$/.test(weight)).map(([coding = ""]) => coding));
}
