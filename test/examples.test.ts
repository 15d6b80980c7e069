import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { guid } from "../client/src/index.ts";
import { buildExamples, has } from "./support/examples.ts";
import { newUser } from "./support/http-accounts.ts";
import { cleanEnvironment } from "./support/process.ts";
import { startServer, temporaryFolder } from "./support/server.ts";

const FEEDS = ["https://podnews.net/rss", "https://mp3s.nashownotes.com/pc20rss.xml"] as const;
const ORIGIN = "http://localhost:8000";
const run = promisify(execFile);

const examples = join(await buildExamples(), "examples");
const example = (name: string) => join(examples, name);

const alone = await startServer();
const shared = await startServer({
  EARMARK_ACCOUNTS: "true",
  EARMARK_BASE_PATH: "/pods",
  EARMARK_CORS_ORIGINS: ORIGIN,
});
interface Place {
  readonly url: string;
  readonly name: string;
  readonly token: string | undefined;
  readonly call: (
    method: string,
    path: string,
    headers?: Record<string, string>,
    body?: string,
  ) => Promise<HttpResponse>;
}

interface HttpResponse {
  readonly status: number;
  readonly text: string;
}

/** An empty list: on the server without accounts, or of a new account. */
async function newPlace(kind: "alone" | "shared"): Promise<Place> {
  const url = kind === "alone" ? alone.url : `${shared.url}/pods`;
  const { name, Authorization } = kind === "alone" ? { name: "" } : await newUser(shared);
  const token = Authorization?.slice("Bearer ".length);
  const place: Place = {
    ...{ url, name, token },
    async call(method, path, headers = {}, body) {
      const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      const init = { method, headers: { ...authorization, ...headers }, ...(body === undefined ? {} : { body }) };
      const response = await fetch(url + path, init);
      return { status: response.status, text: await response.text() };
    },
  };
  for (const feed of FEEDS) await place.call("DELETE", `/v1/subscriptions/${guid(feed)}`);
  return place;
}

async function listOf(place: Place): Promise<string[]> {
  const { text } = await place.call("GET", "/v1/subscriptions");
  const { data }: { data: { attributes: { feed_url: string } }[] } = JSON.parse(text);
  return data.map(({ attributes }) => attributes.feed_url);
}

const environmentOf = ({ url, token }: Place) =>
  cleanEnvironment({ EARMARK_URL: url, ...(token === undefined ? {} : { EARMARK_TOKEN: token }) });

/** A stand-in for curl that understands the options of the example, and fails on any other. */
const CURL = `#!${process.execPath}
const words = process.argv.slice(2);
const headers = {};
let method, url, body;
const input = require("node:fs").readFileSync(0, "utf8");
for (let word = words.shift(); word !== undefined; word = words.shift()) {
  if (["--silent", "--show-error", "--fail-with-body", "--globoff"].includes(word)) continue;
  const read = (line) => { const at = line.indexOf(": "); headers[line.slice(0, at)] = line.slice(at + 2); };
  if (word === "--config" && words.shift() === "-") for (const [, line] of input.matchAll(/^header = "(.*)"$/gm)) read(line);
  else if (word === "--header") read(words.shift());
  else if (word === "--data") body = words.shift();
  else if (word === "--request") method = words.shift();
  else if (word.startsWith("http://")) url = word;
  else throw new Error("unknown option " + word);
}
fetch(url, { method: method ?? (body === undefined ? "GET" : "POST"), headers, body }).then(async (response) => {
  process.stdout.write(await response.text());
  process.exitCode = response.ok ? 0 : 22;
});
`;

/** A PATH with curl, or the stand-in if it is not installed. */
async function pathWithCurl(): Promise<string> {
  if (await has("curl")) return process.env["PATH"] ?? "";
  const bin = temporaryFolder();
  writeFileSync(join(bin, "curl"), CURL, { mode: 0o755 });
  return `${bin}${delimiter}${process.env["PATH"]}`;
}

const withCurl = await pathWithCurl();

for (const kind of ["alone", "shared"] as const) {
  const where = kind === "alone" ? "without accounts" : "with a token and a base path";

  test(`curl.sh: ${where} → adds two feeds, lists them and removes one`, async () => {
    const place = await newPlace(kind);
    const { stdout } = await run("sh", [example("curl.sh")], { env: { ...environmentOf(place), PATH: withCurl } });
    const [added = "", listed = "", ...rest] = stdout.trimEnd().split("\n");
    assert.deepEqual(
      JSON.parse(added)["atomic:results"].map(({ data }: { data: { id: string } }) => data.id),
      FEEDS.map(guid),
    );
    assert.equal(JSON.parse(listed).meta.total, 2);
    assert.deepEqual(rest, []);
    assert.deepEqual(await listOf(place), [FEEDS[1]]);
  });

  test(`node.mjs: ${where} → adds two feeds, lists them and removes one`, async () => {
    const place = await newPlace(kind);
    const { stdout } = await run(process.execPath, [example("node.mjs")], { env: environmentOf(place) });
    const lines = stdout.trimEnd().split("\n");
    assert.deepEqual(lines.slice(0, 3), ["2 of 2", ...FEEDS.map((feed) => `added ${feed} `)]);
    assert.deepEqual(
      lines.slice(3, 5).map((line) => line.replace(/ \S+Z /, " ")),
      FEEDS.map((feed) => `${guid(feed)} ${feed}`),
    );
    assert.deepEqual(lines.slice(5), ["removed"]);
    assert.deepEqual(await listOf(place), [FEEDS[1]]);
  });

  test(`python.py: ${where} → adds two feeds, lists them and removes one`, async (t) => {
    if (await has("python3")) {
      const place = await newPlace(kind);
      const { stdout } = await run("python3", [example("python.py")], { env: environmentOf(place) });
      const lines = stdout.trimEnd().split("\n");
      assert.deepEqual(
        lines.slice(0, 2),
        FEEDS.map((feed) => `added ${feed}`),
      );
      assert.deepEqual(
        lines.slice(2, 4).map((line) => line.replace(/ \S+Z /, " ")),
        FEEDS.map((feed) => `${guid(feed)} ${feed}`),
      );
      assert.deepEqual(lines.slice(4), [`removed ${FEEDS[0]}`]);
      assert.deepEqual(await listOf(place), [FEEDS[1]]);
    } else t.diagnostic("Python is not installed: only the requests in the text of the example were sent.");

    // Without Python too, the server must accept the requests in the text.
    const text = readFileSync(example("python.py"), "utf8");
    const found = (pattern: RegExp) => pattern.exec(text)?.[1] ?? assert.fail(`${pattern} is not in python.py`);
    assert.equal(found(/uuid\.UUID\("(.*)"\)/), "ead4c236-bf58-58c6-a2c6-a6b28d128cb6");
    assert.deepEqual(JSON.parse(found(/^FEEDS = (.*)$/m)), FEEDS);
    const media = { PLAIN: found(/^PLAIN = "(.*)"$/m), ATOMIC: found(/^ATOMIC = '(.*)'$/m) };
    const operation = (feed: string) =>
      JSON.parse(
        found(/^ +(\{"op": .*)$/m)
          .replace("guid(feed)", JSON.stringify(guid(feed)))
          .replace(/: feed\b/, `: ${JSON.stringify(feed)}`),
      );
    const place = await newPlace(kind);
    const statuses: [string, number][] = [];
    for (const [, method = "", path = "", last = ""] of text.matchAll(/ call\("(\w+)", f?"([^"]+)"(.*)\)/g)) {
      const isBulk = last.includes("ATOMIC");
      const type = isBulk ? media.ATOMIC : media.PLAIN;
      const target = path.replace("{number}", "1").replace("{guid(feed)}", guid(FEEDS[0]));
      const response = await place.call(
        method,
        target,
        { Accept: type, ...(isBulk ? { "Content-Type": type } : {}) },
        isBulk ? JSON.stringify({ "atomic:operations": FEEDS.map(operation) }) : undefined,
      );
      statuses.push([method, response.status]);
    }
    assert.deepEqual(statuses, [
      ["POST", 200],
      ["GET", 200],
      ["DELETE", 204],
    ]);
    assert.deepEqual(await listOf(place), [FEEDS[1]]);
  });
}

test("examples: invalid token → every program fails and shows 401", async (t) => {
  const place = { ...(await newPlace("shared")), token: "emk_wrong" };
  const programs: [string, string][] = [
    [process.execPath, "node.mjs"],
    ["sh", "curl.sh"],
  ];
  if (await has("python3")) programs.push(["python3", "python.py"]);
  else t.diagnostic("Python is not installed: python.py was not run.");
  for (const [program, name] of programs) {
    const env = { ...environmentOf(place), PATH: withCurl };
    const failure = await run(program, [example(name)], { env }).catch((error) => error);
    assert.ok(failure.code > 0, name);
    assert.match(failure.stdout + failure.stderr, /401/, name);
  }
});

/** The parts of a DOM element that the page uses. */
class Element {
  textContent = "";
  hidden = false;
  /** The values of a form. */
  values: Record<string, string> = {};
  children: (Element | string)[] = [];
  #parent: Element | undefined;
  readonly #listeners: ((event: object) => Promise<void>)[] = [];

  addEventListener(_kind: string, listener: (event: object) => Promise<void>): void {
    this.#listeners.push(listener);
  }
  append(...children: (Element | string)[]): void {
    for (const child of children) if (typeof child !== "string") child.#parent = this;
    this.children.push(...children);
  }
  replaceChildren(...children: Element[]): void {
    this.children = [];
    this.append(...children);
  }
  remove(): void {
    const siblings = this.#parent?.children ?? [];
    siblings.splice(siblings.indexOf(this), 1);
  }
  /** Submits or clicks, and waits for the listeners. */
  async act(values: Record<string, string> = {}): Promise<void> {
    this.values = values;
    for (const listener of this.#listeners) await listener({ target: this, preventDefault: () => undefined });
  }
}

test("browser.html: list opened, feeds added and removed → within what CORS allows", async () => {
  const html = readFileSync(example("browser.html"), "utf8");
  const elements = new Map([...html.matchAll(/ id="(\w+)"/g)].map(([, id = ""]) => [id, new Element()]));
  const element = (id: string) => elements.get(id) ?? assert.fail(`browser.html has no element "${id}"`);
  for (const name of ["url", "token", "feeds"]) assert.ok(html.includes(` name="${name}"`), name);
  assert.ok(html.includes('<script type="module" src="browser.js">'));

  const { fetch: realFetch, FormData: RealFormData } = globalThis;
  const sent: { readonly method: string; readonly path: string; readonly headers: Headers }[] = [];
  Object.assign(globalThis, {
    document: { getElementById: element, createElement: () => new Element() },
    FormData: class extends Map<string, string> {
      constructor(form: Element) {
        super(Object.entries(form.values));
      }
    },
    fetch: (url: string, init: RequestInit) => {
      sent.push({ method: init.method ?? "GET", path: new URL(url).pathname, headers: new Headers(init.headers) });
      return realFetch(url, init);
    },
  });
  try {
    const place = await newPlace("shared");
    await import(pathToFileURL(example("browser.js")).href);
    await element("open").act({ url: place.url, token: "emk_wrong" });
    assert.match(element("outcome").textContent, /^401 Unauthorized/);
    await element("open").act({ url: place.url, token: place.token ?? "" });
    assert.equal(element("outcome").textContent, `${place.name} has 0 subscriptions.`);
    await element("add").act({ feeds: `${FEEDS[0]}\n\n <b>bold</b>\r\n${FEEDS[1]}\n` });
    assert.deepEqual(element("outcome").textContent.split("\n"), [
      `added: ${FEEDS[0]} `,
      "refused: <b>bold</b> Invalid feed URL: it must start with http:// or https://, followed by a host.",
      `added: ${FEEDS[1]} `,
    ]);
    const [first] = element("list").children;
    assert.ok(first instanceof Element);
    const [address, button] = first.children;
    assert.equal(address, `${FEEDS[0]} `);
    assert.ok(button instanceof Element);
    await button.act();
    assert.equal(element("outcome").textContent, `Removed ${FEEDS[0]}`);
    assert.equal(element("list").children.length, 1);
    assert.deepEqual(await listOf(place), [FEEDS[1]]);
  } finally {
    Object.assign(globalThis, { document: undefined, FormData: RealFormData, fetch: realFetch });
  }

  // The server allows what a browser asks in its preflight requests.
  const wanted = new Set(sent.map(({ method, path, headers }) => [method, path, [...headers.keys()].join()].join(" ")));
  assert.ok(wanted.size >= 4);
  for (const [method = "", path = "", names = ""] of [...wanted].map((text) => text.split(" "))) {
    const response = await shared.call("OPTIONS", path, {
      headers: { Origin: ORIGIN, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": names },
    });
    assert.equal(response.status, 204);
    assert.equal(response.headers["access-control-allow-origin"], ORIGIN);
    assert.ok(String(response.headers["access-control-allow-methods"]).includes(method), `${method} ${path}`);
    const allowed = String(response.headers["access-control-allow-headers"]).toLowerCase().split(", ");
    for (const name of names.split(",")) assert.ok(allowed.includes(name), name);
  }
});
