import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { test } from "node:test";
import { SETTINGS } from "../src/settings.ts";
import { type Answer, startServer } from "./harness.ts";

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");

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

/** What a curl command on this page sends; it understands what the pages use, and fails on anything else. */
function readCurl(command: string): Request {
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
    else assert.ok(["-g", "-i"].includes(word), `what is ${word}?`);
  }
  assert.match(url, /^http:\/\/127\.0\.0\.1:8080\//);
  return {
    method: method ?? (body === undefined ? "GET" : "POST"),
    path: url.slice("http://127.0.0.1:8080".length),
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

function requestOf({ language, text }: Block): Request | undefined {
  if (language === "sh" && text.startsWith("curl ")) return readCurl(text);
  if (language !== "http" || text.startsWith("HTTP/")) return undefined;
  const { start, headers, body } = readHttp(text);
  const [method = "", path = ""] = start.split(" ");
  return { method, path, headers, body };
}

/** Moments differ from run to run; everything else is compared to the letter. */
const withoutMoments = (json: string) =>
  JSON.parse(json.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "moment"));

/** What differs from run to run and comes back in later requests: ids, and the secrets of tokens and sessions. */
const ISSUED = [/\b\d{10,15}\b/g, /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, /(?<=emk_|earmark=)[\w-]{43}/g];

/** Learns what the server has issued in the place of what the page shows, and gives the answer with the page's own. */
function asOnPage(block: Block | undefined, answer: Answer, issued: Map<string, string>): Answer {
  let text = JSON.stringify([answer.headers, answer.text]);
  for (const pattern of ISSUED) {
    const known = new Set(issued.values());
    const real = [...new Set(text.match(pattern))].filter((value) => !known.has(value));
    const shown = [...new Set(block?.text.match(pattern))].filter((value) => !issued.has(value));
    for (const [index, value] of shown.entries()) issued.set(value, real[index] ?? value);
  }
  for (const [shown, real] of issued) text = text.replaceAll(real, shown);
  const [headers, body] = JSON.parse(text);
  return { ...answer, headers, text: body };
}

function compare(block: Block | undefined, answer: Answer): void {
  if (block?.language === "json") {
    assert.deepEqual(withoutMoments(answer.text), withoutMoments(block.text));
    return;
  }
  assert.equal(block?.language, "http", "a request must be followed by its answer");
  const { start, headers, body } = readHttp(block?.text ?? "");
  assert.equal(start, `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}`);
  for (const [name, value] of Object.entries(headers)) assert.equal(String(answer.headers[name.toLowerCase()]), value);
  if (body === undefined) assert.equal(answer.text, "");
  else assert.deepEqual(withoutMoments(answer.text), withoutMoments(body));
}

for (const [name, least, settings] of [
  ["README.md", 3, {}],
  ["docs/api.md", 8, {}],
  ["docs/accounts.md", 8, { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" }],
] as const) {
  test(`the exchanges of ${name} are what the server really does`, async () => {
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
      const answer = await call(method, path, { headers, ...(body === undefined ? {} : { body }) });
      // On the other pages every id is the client's own, or follows from the address.
      const isIssued = name === "docs/accounts.md";
      compare(blocks[index + 1], isIssued ? asOnPage(blocks[index + 1], answer, issued) : answer);
      exchanges += 1;
    }
    assert.ok(exchanges >= least, `only ${exchanges} exchanges were found`);
  });
}

test("the README's table holds every setting, with its default and meaning", () => {
  const rows = [...read("README.md").matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]*)`)? *\| (.*) \|$/gm)].map(
    ([, name, standard = "", meaning]) => [name, [standard, meaning]],
  );
  assert.deepEqual(Object.fromEntries(rows), SETTINGS);
});

test("the API page names every setting that is a limit, with its default", () => {
  const page = read("docs/api.md") + read("docs/accounts.md");
  for (const name of Object.keys(SETTINGS).filter((setting) => /_MAX_|_TIMEOUT_|_PER_/.test(setting)))
    assert.ok(page.includes(`\`${name}\``), name);
});

test("every link between the documents leads somewhere", () => {
  for (const name of [
    "README.md",
    "docs/accounts.md",
    "docs/api.md",
    "docs/performance.md",
    "docs/scaling.md",
    "client/README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "DECISIONS.md",
    "SECURITY.md",
    "CHANGELOG.md",
  ]) {
    for (const [, target = ""] of read(name).matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
      assert.ok(existsSync(new URL(`..${new URL(target, `file:///${name}`).pathname}`, import.meta.url)), target);
    }
  }
});
