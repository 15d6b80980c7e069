import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { test } from "node:test";
import { SETTINGS } from "../src/config/settings.ts";
import { type HttpResponse, startServer } from "./support/server.ts";

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");

const EXAMPLE_URL = "http://127.0.0.1:8080";

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

interface Block {
  readonly language: string;
  readonly text: string;
}

function blocksOf(document: string): Block[] {
  return [...document.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({
    language,
    text,
  }));
}

/** Reads the curl options that the documents use, and fails on any other. */
function readCurl(command: string, serverUrl: string): Request {
  const words = [...command.replaceAll("\\\n", " ").matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? plain ?? "",
  );
  const headers: Record<string, string> = {};
  let [method, url, body]: [string | undefined, string, string | undefined] = [undefined, "", undefined];
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at] ?? "";
    const next = () => {
      at += 1;
      return words[at] ?? "";
    };
    if (word === "-H") {
      const [name = "", ...value] = next().split(": ");
      headers[name] = value.join(": ");
    } else if (word === "-d") body = next();
    else if (word === "-X") method = next();
    else if (word.startsWith("http://")) url = word;
    else assert.ok(["-g", "-i", "-ig"].includes(word), `unknown option ${word}`);
  }
  assert.ok(url.startsWith(`${serverUrl}/`), url);
  return {
    method: method ?? (body === undefined ? "GET" : "POST"),
    path: url.slice(serverUrl.length),
    headers,
    body,
  };
}

function readHttp(text: string): { start: string; headers: Record<string, string>; body: string | undefined } {
  const [head = "", ...rest] = text.split("\n\n");
  const [start = "", ...lines] = head.trimEnd().split("\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  return { start, headers, body: rest.length === 0 ? undefined : rest.join("\n\n") };
}

function requestOf({ language, text }: Block, serverUrl = EXAMPLE_URL): Request | undefined {
  if (language === "sh" && text.startsWith("curl ")) return readCurl(text, serverUrl);
  if (language !== "http" || text.startsWith("HTTP/")) return undefined;
  const { start, headers, body } = readHttp(text);
  const [method = "", path = ""] = start.split(" ");
  return { method, path, headers, body };
}

/** Timestamps differ from run to run; everything else must be equal. */
const withoutTimestamps = (json: string) =>
  JSON.parse(json.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "timestamp"));

/** States of lists differ from run to run, and later requests may contain them. */
const STATES = [/(?<![\w-])A[\w-]{35}(?![\w-])/g];
/** So do ids and secrets that the server issues. */
const ISSUED = [
  ...STATES,
  /\b\d{10,15}\b/g,
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
  /(?<=emk_|earmark=)[\w-]{43}/g,
];

/** Records what the server issued in place of the values in the document, and returns the response with the latter. */
function asOnPage(
  block: Block | undefined,
  response: HttpResponse,
  patterns: readonly RegExp[],
  issued: Map<string, string>,
): HttpResponse {
  let text = JSON.stringify([response.headers, response.text]);
  for (const pattern of patterns) {
    const known = new Set(issued.values());
    const real = [...new Set(text.match(pattern))].filter((value) => !known.has(value));
    const shown = [...new Set(block?.text.match(pattern))].filter((value) => !issued.has(value));
    for (const [index, value] of shown.entries()) issued.set(value, real[index] ?? value);
  }
  for (const [shown, real] of issued) text = text.replaceAll(real, shown);
  const [headers, body] = JSON.parse(text);
  return { ...response, headers, text: body };
}

function compare(block: Block | undefined, response: HttpResponse): void {
  if (block?.language === "json") {
    assert.deepEqual(withoutTimestamps(response.text), withoutTimestamps(block.text));
    return;
  }
  assert.equal(block?.language, "http", "a request must be followed by its response");
  const { start, headers, body } = readHttp(block?.text ?? "");
  assert.equal(start, `HTTP/1.1 ${response.status} ${STATUS_CODES[response.status]}`);
  for (const [name, value] of Object.entries(headers))
    assert.equal(String(response.headers[name.toLowerCase()]), value);
  if (body === undefined) assert.equal(response.text, "");
  else assert.deepEqual(withoutTimestamps(response.text), withoutTimestamps(body));
}

for (const [name, least, settings] of [
  ["README.md", 1, {}],
  ["docs/api.md", 9, {}],
  ["docs/accounts.md", 8, { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" }],
] as const) {
  test(`${name}: examples → what the server does`, async () => {
    const { call } = await startServer(settings);
    const blocks = blocksOf(read(name));
    const issued = new Map<string, string>();
    let exchanges = 0;
    for (const [index, block] of blocks.entries()) {
      let { text } = block;
      for (const [shown, value] of issued) text = text.replaceAll(shown, value);
      const request = requestOf({ ...block, text });
      if (request === undefined) continue;
      const { method, path, headers, body } = request;
      const response = await call(method, path, { headers, ...(body === undefined ? {} : { body }) });
      // In the other documents every id is chosen by the client or derived from the feed URL.
      const patterns = name === "docs/accounts.md" ? ISSUED : STATES;
      compare(blocks[index + 1], asOnPage(blocks[index + 1], response, patterns, issued));
      exchanges += 1;
    }
    assert.ok(exchanges >= least, `only ${exchanges} exchanges were found`);
  });
}

test("docs/api.md: settings that are limits → all named there or in docs/accounts.md", () => {
  const page = read("docs/api.md") + read("docs/accounts.md");
  for (const name of Object.keys(SETTINGS).filter((setting) => /_MAX_|_TIMEOUT_|_PER_/.test(setting)))
    assert.ok(page.includes(`\`${name}\``), name);
});

/** Decodes the entities that the page uses. */
function decodeHtml(html: string): string {
  const characters: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
  return html.replaceAll(/&([a-z]+|#39);/g, (_, name: string) => characters[name] ?? assert.fail(name));
}

test("/docs: base path and another port → examples work when pasted", async () => {
  const { call, url } = await startServer({ EARMARK_BASE_PATH: "/pods" });
  const { text } = await call("GET", "/pods/docs");
  assert.ok(!text.includes(EXAMPLE_URL));
  let commands = 0;
  const blocks = [...text.matchAll(/<pre><code class="language-(\w+)">([\s\S]*?)<\/code><\/pre>/g)].map(
    ([, language = "", html = ""]) => ({ language, text: decodeHtml(html) }),
  );
  for (const [index, block] of blocks.entries()) {
    if (!block.text.startsWith("curl ")) continue;
    const { method, path, headers, body } = requestOf(block, url) ?? assert.fail();
    assert.ok(path.startsWith("/pods/v1/"), path);
    const response = await call(method, path, { headers, ...(body === undefined ? {} : { body }) });
    assert.match(blocks[index + 1]?.text ?? "", new RegExp(`^HTTP/1.1 ${response.status} `), block.text);
    commands += 1;
  }
  assert.ok(commands >= 9, `only ${commands} examples`);
});
