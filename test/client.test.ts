import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, request } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import {
  type Client,
  type ClientOptions,
  createClient,
  EarmarkError,
  guid,
  NetworkError,
  type Progress,
  type Retry,
  type SubscribeResult,
} from "../client/src/index.ts";
import "../bin/compile-cache.js";
import { Accounts, isRefused } from "../src/accounts.ts";
import { newToken, signUp } from "./accounts.ts";
import { ATOMIC, newId, PLAIN, startServer, temporaryFolder } from "./harness.ts";
import { cleanEnvironment } from "./process.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const feedsOf = (count: number, name = "show") =>
  Array.from({ length: count }, (_, index) => `https://feeds.example/${name}/${index}`);

/** Each outcome in one word, and the titles of errors that are not of the usual kind. */
const wordsOf = (results: readonly SubscribeResult[]) =>
  results.map((result) => (result.outcome === "refused" ? result.error.title : result.outcome));

/** A server of the test's own, closed when the tests have run. */
async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const { url: serverUrl, port: serverPort } = await startServer({
  EARMARK_ACCOUNTS: "true",
  EARMARK_SIGN_UP: "true",
  EARMARK_REQUESTS_PER_MINUTE: "1000000",
  EARMARK_OPERATIONS_PER_MINUTE: "1000000",
});
let people = 0;

/** The token of someone new, whose list is empty. */
async function newPerson(port = serverPort): Promise<string> {
  people += 1;
  const person = await signUp(port, `person-${people}`, "correct horse battery");
  return (await newToken(port, person, { label: "test", scope: "write" })).token;
}

/** A client of someone new. */
async function newClient(options: Partial<ClientOptions> = {}): Promise<Client> {
  return createClient({ url: serverUrl, token: await newPerson(), ...options });
}

/** What a wire does to a request: an answer in the server's place, or a cut before, within or after its answer. */
type Fate =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | "pass"
  | "cut before"
  | "cut within"
  | "cut after"
  | "stall";

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Stands between the client and a real server, keeps what comes by, and does to it what is told. */
async function startWire(fateOf: (seen: Seen) => Fate | Promise<Fate>, port = serverPort) {
  const all: Seen[] = [];
  const url = await listen(async (incoming, outgoing) => {
    const { method = "", url: path = "", headers, socket } = incoming;
    const body = await bodyOf(incoming);
    const seen = { method, path, headers, body: body.toString() };
    all.push(seen);
    const fate = await fateOf(seen);
    if (fate === "stall") return;
    if (fate === "cut before") {
      socket.destroy();
      return;
    }
    if (typeof fate === "object") {
      outgoing.writeHead(fate.status, fate.headers).end(fate.body);
      return;
    }
    const onward = request({ host: "127.0.0.1", port, method, path, headers, agent: false });
    onward.end(body);
    const [answer] = (await once(onward, "response")) as [IncomingMessage];
    const text = await bodyOf(answer);
    if (fate === "cut after") {
      socket.destroy();
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
    if (fate === "pass") outgoing.end(text);
    else outgoing.write(text.subarray(0, text.length / 2), () => socket.destroy());
  });
  return { url, all, operations: () => all.filter(({ path }) => path === "/v1/operations") };
}

/** Does each of these to the operations that come by, one after another, and lets all others pass. */
function startWireWith(...fates: Fate[]) {
  return startWire(({ path }) => (path === "/v1/operations" ? (fates.shift() ?? "pass") : "pass"));
}

/** The failure that a call ends with, of the kind that is expected. */
async function failureOf<Kind>(call: Promise<unknown>, kind: new (...args: never[]) => Kind): Promise<Kind> {
  const failure: unknown = await call.then(
    (value) => assert.fail(`it did not fail: ${JSON.stringify(value)}`),
    (error) => error,
  );
  assert.ok(failure instanceof kind, String(failure));
  return failure;
}

async function everyIdOf(client: Client): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of client.subscriptions()) ids.push(id);
  return ids;
}

const run = promisify(execFile);

/** Every Node of this machine that the client is made for: the one that runs this, and older ones on the path. */
async function everyNode(): Promise<string[]> {
  const places = [
    process.execPath,
    ...(process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "node")),
  ];
  const found = new Set(places.filter(existsSync).map((place) => realpathSync(place)));
  const usable: string[] = [];
  for (const node of found) {
    const { stdout } = await run(node, ["--version"]);
    if (Number(/^v(\d+)/.exec(stdout)?.[1]) >= 20) usable.push(node);
  }
  return usable;
}

const CONSUMER = `import { createClient, EarmarkError, guid, NetworkError } from "earmark-client";
import type { Client, Me, Subscription, SubscribeResult } from "earmark-client";

const [url = "", token = ""] = process.argv.slice(2);
const client: Client = createClient({ url, token, fetch, retries: 2, onRetry: ({ attempt, delayMs, error }) => {
  console.error(attempt + delayMs, error.message);
} });
const results: SubscribeResult[] = await client.subscribe(
  ["https://podnews.net/rss", { url: "https://feeds.example/daily", id: guid("feeds.example/daily") }, "nothing"],
  { onProgress: ({ done, total, added, alreadySubscribed, refused }) => {
    console.log([done, total, added, alreadySubscribed, refused].join());
  }, signal: AbortSignal.timeout(10_000) },
);
for (const result of results) {
  if (result.outcome === "added") console.log(result.subscription.feedUrl);
  else console.log(result.outcome, result.error.status, result.error.title);
}
const listed: Subscription[] = [];
for await (const subscription of client.subscriptions({ pageSize: 1 })) listed.push(subscription);
console.log(listed.map(({ id, subscribedAt }) => id + (subscribedAt.getTime() > 0)).join());
console.log(await client.remove(guid("https://podnews.net/rss")));
const one: Subscription | undefined = await client.get(guid("https://podnews.net/rss"));
console.log(one?.feedUrl, (await client.page({ number: 1, size: 10 })).total);
const me: Me = await client.me();
console.log(me.name, me.limits.operationsPerMinute ?? 0);
try {
  await createClient({ url }).me();
} catch (error) {
  if (error instanceof EarmarkError) console.log(error.status, error.title, error.errors.length, error.retryAfter);
  else if (error instanceof NetworkError) console.log(error.cause);
}
`;

/** A copy of the client where nobody else builds, as it would be published. */
async function packClient(): Promise<{ readonly folder: string; readonly tarball: string }> {
  const folder = join(temporaryFolder(), "client");
  cpSync(join(ROOT, "client"), folder, { recursive: true, filter: (path) => !/[/\\](dist|node_modules)$/.test(path) });
  const { stdout } = await npm(folder, ["pack", "--json"]);
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf("[\n")));
  assert.deepEqual(files.map(({ path }: { readonly path: string }) => path).sort(), [
    "LICENSE",
    "README.md",
    "dist/index.d.ts",
    "dist/index.js",
    "package.json",
  ]);
  return { folder, tarball: join(folder, filename) };
}

/** Without the network, and with the project's own TypeScript. */
function npm(cwd: string, args: readonly string[]) {
  const path = [join(ROOT, "node_modules", ".bin"), process.env["PATH"]].join(delimiter);
  const NODE_COMPILE_CACHE = process.env["NODE_COMPILE_CACHE"] ?? "";
  const settings = { npm_config_cache: join(cwd, ".npm"), npm_config_offline: "true", NODE_COMPILE_CACHE };
  const env = { ...cleanEnvironment(settings), PATH: path };
  return run("npm", args, { cwd, env });
}

/** A project of someone who uses it, with everything but a configuration. */
async function installClient(tarball: string): Promise<string> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
  await npm(folder, ["install", "--no-audit", "--no-fund", tarball]);
  mkdirSync(join(folder, "node_modules", "@types"));
  symlinkSync(join(ROOT, "node_modules", "@types", "node"), join(folder, "node_modules", "@types", "node"));
  return folder;
}

// Other tests run meanwhile.
const packed = packClient();
const installed = packed.then(({ tarball }) => installClient(tarball));

test("a feed has the id that the podcast namespace gives it", () => {
  for (const address of [
    "https://podnews.net/rss/",
    "https://podnews.net/rss",
    "HTTP://podnews.net/rss///",
    "podnews.net/rss",
  ]) {
    assert.equal(guid(address), "9b024349-ccf0-5f69-a609-6b82873eab3c");
  }
  assert.equal(guid("https://mp3s.nashownotes.com/pc20rss.xml"), "917393e3-1b1e-5cef-ace4-edaa54e1f810");
  // Of every length that fills or overflows a block of the hash.
  const namespace = Buffer.from("ead4c236bf5858c6a2c6a6b28d128cb6", "hex");
  for (let length = 0; length < 300; length += 1) {
    const name = "é🎧".slice(0, length % 4) + "x".repeat(length);
    const hash = createHash("sha1").update(namespace).update(Buffer.from(name.toWellFormed())).digest();
    hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
    hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
    assert.equal(guid(`https://${name}`).replaceAll("-", ""), hash.toString("hex", 0, 16));
  }
});

test("25,000 feeds are added in one call, and listed in their order", async () => {
  const { url, port } = await startServer();
  const wire = await startWire(() => "pass", port);
  const client = createClient({ url: wire.url });
  const { limits, ...me } = await client.me();
  assert.deepEqual(me, {
    name: "local",
    issuer: null,
    createdAt: null,
    credential: null,
    counts: { subscriptions: 0, tokens: 0, sessions: 0 },
  });
  assert.equal(limits.operationsPerMinute, null);
  wire.all.length = 0;

  const feeds = feedsOf(25_000);
  const progress: Progress[] = [];
  const results = await client.subscribe(feeds, { onProgress: (step) => progress.push(step) });

  assert.deepEqual(
    results.map(({ feed }) => feed),
    feeds,
  );
  assert.deepEqual(new Set(wordsOf(results)), new Set(["added"]));
  assert.equal(wire.operations().length, 25);
  assert.equal(wire.all.filter(({ path }) => path === "/v1/me").length, 1);
  assert.deepEqual(
    progress.map(({ done }) => done),
    Array.from({ length: 25 }, (_, index) => 1_000 * (index + 1)),
  );
  const { results: last, ...counts } = progress.at(-1) ?? assert.fail();
  assert.deepEqual(counts, { done: 25_000, total: 25_000, added: 25_000, alreadySubscribed: 0, refused: 0 });
  assert.deepEqual(last, results.slice(24_000));

  const listed = [];
  for await (const { id, feedUrl, subscribedAt } of createClient({ url }).subscriptions()) {
    assert.ok(Math.abs(Date.now() - subscribedAt.getTime()) < 60_000);
    listed.push([id, feedUrl]);
  }
  assert.deepEqual(
    listed,
    feeds.map((feed) => [guid(feed), feed]),
  );
});

test("each feed has its own result, whatever became of the others", async () => {
  const client = await newClient();
  const id = "0D9C2B1E-6A55-4C5C-8C0B-6B0E5A0A7F10";
  const given = [
    "https://feeds.example/one",
    { url: "https://feeds.example/two", id },
    "not an address",
    "http://feeds.example/one/",
    { url: "https://feeds.example/three", id },
    { url: "https://feeds.example/four", id: "four" },
    { url: "https://feeds.example/five", id: undefined },
  ];
  const steps: Progress[] = [];
  const results = await client.subscribe(new Set(given), { onProgress: (step) => steps.push(step) });
  assert.deepEqual(wordsOf(results), [
    "added",
    "added",
    "Validation Failed",
    "already-subscribed",
    "Identifier In Use",
    "Invalid Resource Identifier",
    "added",
  ]);
  assert.deepEqual(results[2], {
    feed: "not an address",
    id: guid("not an address"),
    outcome: "refused",
    error: {
      status: 422,
      title: "Validation Failed",
      detail: "`feed_url` must not contain white space or control characters.",
    },
  });
  assert.deepEqual(results[3], {
    feed: "http://feeds.example/one/",
    id: guid("https://feeds.example/one"),
    outcome: "already-subscribed",
    error: { status: 409, title: "Already Subscribed", detail: "The user is already subscribed to this feed." },
  });
  const [, second] = results;
  assert.ok(second?.outcome === "added");
  assert.equal(second.id, id.toLowerCase());
  assert.deepEqual(await client.get(id), second.subscription);
  assert.deepEqual(
    steps.map(({ added, alreadySubscribed, refused }) => [added, alreadySubscribed, refused]),
    [[3, 1, 3]],
  );
});

test("no feed needs no request, and an address by itself is one feed", async () => {
  const wire = await startWireWith();
  const client = await newClient({ url: wire.url });
  assert.deepEqual(await client.subscribe([]), []);
  assert.equal(wire.all.length, 0);
  assert.deepEqual(wordsOf(await client.subscribe("https://feeds.example/one")), ["added"]);
});

test("one subscription is fetched, and removed once", async () => {
  const client = await newClient();
  const [result] = await client.subscribe(["https://podnews.net/rss"]);
  assert.ok(result?.outcome === "added");
  const { id } = result;
  assert.deepEqual(await client.get(id.toUpperCase()), result.subscription);
  assert.equal(await client.remove(id), true);
  assert.equal(await client.remove(id), false);
  assert.equal(await client.get(id), undefined);
  const failure = await failureOf(client.get("not/an id"), EarmarkError);
  assert.deepEqual([failure.status, failure.title], [400, "Invalid Resource Identifier"]);
});

test("pages are fetched by number and size", async () => {
  const client = await newClient();
  const results = await client.subscribe(feedsOf(250));
  const all = results.flatMap((result) => (result.outcome === "added" ? [result.subscription] : []));
  const first = await client.page();
  assert.deepEqual(first, { items: all.slice(0, 100), total: 250, number: 1, size: 100, hasNext: true });
  const last = await client.page({ number: 5, size: 60 });
  assert.deepEqual(last, { items: all.slice(240), total: 250, number: 5, size: 60, hasNext: false });
  const failure = await failureOf(client.page({ size: 500 }), EarmarkError);
  assert.equal(failure.status, 400);
  assert.deepEqual(failure.errors[0]?.source, { parameter: "page[size]" });
  assert.deepEqual(failure.errors[0]?.meta, { page: { maxSize: 100 } });
});

test("what is removed while the list is gone through hides nothing of the rest", async () => {
  const client = await newClient();
  const ids = (await client.subscribe(feedsOf(230))).map(({ id }) => id);

  // One in three goes, from before and after the place where we are.
  const seen: string[] = [];
  for await (const { id } of client.subscriptions({ pageSize: 10 })) {
    if (seen.length % 3 === 0) await client.remove(id);
    if (seen.length === 57) for (const gone of ids.slice(0, 45)) await client.remove(gone);
    seen.push(id);
  }
  assert.deepEqual(seen, ids);

  const left = await everyIdOf(client);
  for await (const { id } of client.subscriptions({ pageSize: 7 })) assert.equal(await client.remove(id), true);
  assert.ok(left.length > 100);
  assert.equal((await client.me()).counts.subscriptions, 0);
});

test("going through the list can end anywhere, and asks for no more than it needs", async () => {
  const wire = await startWireWith();
  const client = await newClient({ url: wire.url });
  await client.subscribe(feedsOf(250));
  wire.all.length = 0;
  for await (const { feedUrl } of client.subscriptions()) if (feedUrl.endsWith("/150")) break;
  assert.deepEqual(
    wire.all.map(({ path }) => decodeURI(path)),
    ["/v1/subscriptions?page[number]=1&page[size]=100", "/v1/subscriptions?page[number]=2&page[size]=100"],
  );
});

test("requests stay within what the server takes", async () => {
  const { port } = await startServer({ EARMARK_MAX_OPERATIONS: "7", EARMARK_MAX_BODY_BYTES: "2048" });
  const wire = await startWire(() => "pass", port);
  const client = createClient({ url: wire.url });
  const long = feedsOf(10, "é".repeat(300));
  const results = await client.subscribe([...feedsOf(20), ...long]);
  assert.deepEqual(new Set(wordsOf(results)), new Set(["added"]));
  const sizes = wire.operations().map(({ body }) => JSON.parse(body)["atomic:operations"].length);
  assert.ok(Math.max(...sizes) <= 7, String(sizes));
  for (const { body } of wire.operations()) assert.ok(Buffer.byteLength(body) <= 2048);
});

test("whoever wants finer steps says how many feeds go into a request", async () => {
  const { port } = await startServer({ EARMARK_MAX_OPERATIONS: "40" });
  const wire = await startWire(() => "pass", port);
  const client = createClient({ url: wire.url });
  const stepsOf = async (count: number, batchSize: number | undefined) => {
    const steps: number[] = [];
    const options = { batchSize, onProgress: ({ done }: Progress) => steps.push(done) };
    const results = await client.subscribe(feedsOf(count, `batches-of-${batchSize}`), options);
    assert.deepEqual(new Set(wordsOf(results)), new Set(["added"]));
    return steps;
  };
  assert.deepEqual(await stepsOf(25, 10), [10, 20, 25]);
  // The server takes no more than 40.
  assert.deepEqual(await stepsOf(100, 5_000), [40, 80, 100]);
  assert.deepEqual(await stepsOf(100, undefined), [40, 80, 100]);
  assert.deepEqual(await stepsOf(3, 1), [1, 2, 3]);
  // What is no size is the usual one, or the smallest.
  assert.deepEqual(await stepsOf(41, 0), [40, 41]);
  assert.deepEqual(await stepsOf(2, -5), [1, 2]);
});

test("a proxy that takes less gets less, and a feed that is too long keeps no other out", async () => {
  const refusal = {
    status: 413,
    headers: { "Content-Type": "text/html" },
    body: "<h1>413 Request Entity Too Large</h1>",
  };
  const wire = await startWire(({ body }) => (body.length > 20_000 ? refusal : "pass"));
  const client = await newClient({ url: wire.url });
  const feeds = [...feedsOf(500, "a"), `https://feeds.example/${"x".repeat(30_000)}`, ...feedsOf(500, "b")];
  const results = await client.subscribe(feeds);
  assert.deepEqual(
    results.map(({ feed }) => feed),
    feeds,
  );
  assert.deepEqual(
    wordsOf(results),
    feeds.map((_, index) => (index === 500 ? "Payload Too Large" : "added")),
  );
  assert.ok(wire.operations().length < 60, String(wire.operations().length));
});

const limited = startServer({
  EARMARK_ACCOUNTS: "true",
  EARMARK_SIGN_UP: "true",
  EARMARK_BASE_PATH: "/pods",
  EARMARK_OPERATIONS_PER_MINUTE: "900",
});

test("with accounts a token opens its own list, below a base path too", async () => {
  const { url, port } = await limited;
  const [ann, bob] = [
    await signUp(port, "ann", "correct horse battery"),
    await signUp(port, "bob", "staple me a raven"),
  ];
  const { token, id } = await newToken(port, ann, { label: "phone", scope: "write" });
  const client = createClient({ url: `${url}/pods/`, token });
  assert.deepEqual(new Set(wordsOf(await client.subscribe(feedsOf(250)))), new Set(["added"]));
  assert.equal((await everyIdOf(client)).length, 250);
  const { createdAt, ...me } = await client.me();
  assert.ok(createdAt instanceof Date);
  assert.deepEqual(me, {
    name: "ann",
    issuer: null,
    credential: { kind: "token", id, scope: "write" },
    counts: { subscriptions: 250, tokens: 1, sessions: 1 },
    limits: {
      operationsPerRequest: 10_000,
      bodyBytes: 8_388_608,
      pageSize: 100,
      requestsPerMinute: 6_000,
      operationsPerMinute: 900,
      subscriptions: 20_000,
    },
  });

  const reader = createClient({ url: `${url}/pods`, ...(await newToken(port, bob, { label: "tv", scope: "read" })) });
  assert.deepEqual(await everyIdOf(reader), []);
  const refused = await failureOf(reader.subscribe(feedsOf(1)), EarmarkError);
  assert.deepEqual([refused.status, refused.title], [403, "Insufficient Scope"]);
  assert.equal(refused.message, "403 Insufficient Scope: This token may read only.");

  const nobody = await failureOf(createClient({ url: `${url}/pods` }).me(), EarmarkError);
  assert.deepEqual([nobody.status, nobody.errors.length, nobody.retryAfter], [401, 1, undefined]);
});

test("whoever adds more than the server allows in a minute waits and goes on", async () => {
  const { url, port } = await limited;
  const retries: Retry[] = [];
  const steps: number[] = [];
  const client = createClient({
    url: `${url}/pods`,
    token: await newPerson(port),
    onRetry: (retry) => retries.push(retry),
  });
  const results = await client.subscribe(feedsOf(910), { onProgress: ({ done }) => steps.push(done) });
  assert.deepEqual(
    wordsOf(results),
    feedsOf(910).map(() => "added"),
  );
  // More than a minute has is not even asked for.
  assert.deepEqual(steps, [900, 910]);
  const [retry] = retries;
  assert.ok(retry?.error instanceof EarmarkError);
  const { retryAfter = 0 } = retry.error;
  assert.ok(retryAfter >= 1 && retryAfter <= 2);
  assert.deepEqual([retry.attempt, retry.delayMs, retry.error.status], [1, retryAfter * 1_000, 429]);
});

test("a server that is busy is asked again when it said", async () => {
  const fates: (() => Fate)[] = [
    () => ({ status: 503, headers: { "Retry-After": "when it is done" } }),
    () => ({ status: 502, body: "<h1>Bad Gateway</h1>" }),
    () => ({ status: 503, headers: { "Retry-After": "1" } }),
    () => ({ status: 429, headers: { "Retry-After": new Date(Date.now() + 2_000).toUTCString() } }),
    () => ({ status: 503, headers: { "Retry-After": "0" } }),
  ];
  const wire = await startWire(({ path }) => (path === "/v1/operations" && fates.shift()?.()) || "pass");
  const retries: Retry[] = [];
  const client = await newClient({ url: wire.url, onRetry: (retry) => retries.push(retry) });
  const started = Date.now();
  assert.deepEqual(wordsOf(await client.subscribe(feedsOf(2))), ["added", "added"]);
  const waited = Date.now() - started;
  const [first = 0, second = 0, third, fourth = 0, fifth] = retries.map(({ delayMs }) => delayMs);
  assert.ok(first >= 250 && first <= 500, String(first));
  assert.ok(second >= 500 && second <= 1_000, String(second));
  assert.equal(third, 1_000);
  // Dates have whole seconds.
  assert.ok(fourth >= 500 && fourth <= 2_000, String(fourth));
  assert.equal(fifth, 0);
  assert.ok(waited >= first + second + 1_000 + fourth - 10, String(waited));
  assert.deepEqual(
    retries.map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5],
  );
});

test("a server that wants a longer wait, or is busy for too long, is not waited for", async () => {
  const away = { status: 503, headers: { "Retry-After": "3600" } };
  const far = await newClient({ url: (await startWireWith(away)).url });
  const failure = await failureOf(far.subscribe(feedsOf(1)), EarmarkError);
  assert.deepEqual([failure.status, failure.title, failure.retryAfter], [503, "Service Unavailable", 3_600]);

  const busy = { status: 503, headers: { "Retry-After": "0" } };
  const wire = await startWireWith(busy, busy, busy, busy);
  const client = await newClient({ url: wire.url, retries: 3 });
  await failureOf(client.subscribe(feedsOf(1)), EarmarkError);
  assert.equal(wire.operations().length, 4);
});

for (const cut of ["cut before", "cut within", "cut after"] as const) {
  test(`what was added is called added though the connection was ${cut} the answer`, async () => {
    const token = await newPerson();
    const before = createClient({ url: serverUrl, token });
    const known = feedsOf(130, "known");
    const other = { url: "https://feeds.example/other", id: newId() };
    await before.subscribe([...known, other]);

    const wire = await startWireWith(cut);
    const retries: Retry[] = [];
    const client = createClient({ url: wire.url, token, onRetry: (retry) => retries.push(retry) });
    const results = await client.subscribe([
      ...feedsOf(200, "new"),
      ...known.slice(90),
      other.url,
      "not an address",
      "https://feeds.example/new/3",
      "http://feeds.example/new/4/",
    ]);
    assert.deepEqual(
      retries.map(({ error }) => error.name),
      ["NetworkError"],
    );
    assert.deepEqual(wordsOf(results), [
      ...feedsOf(200).map(() => "added"),
      ...feedsOf(41).map(() => "already-subscribed"),
      "Validation Failed",
      ...feedsOf(2).map(() => "already-subscribed"),
    ]);
    const { items } = await client.page({ number: 3 });
    assert.deepEqual(
      results.slice(69, 169).map((result) => result.outcome === "added" && result.subscription),
      items,
    );
  });
}

test("who came in between while an answer was lost is not mistaken for us", async () => {
  const token = await newPerson();
  const other = createClient({ url: serverUrl, token });
  const fates: Fate[] = ["pass", "cut after"];
  const wire = await startWire(async ({ path }) => {
    const fate = (path === "/v1/operations" && fates.shift()) || "pass";
    // What others add makes ours stand farther behind than we know.
    if (fates.length === 1) await other.subscribe(feedsOf(2, "other"));
    // It may be the same feed under another id, or another address of it under the same.
    if (fate === "cut after") {
      await other.subscribe([
        { url: "https://feeds.example/b/1", id: newId() },
        { url: "http://feeds.example/b/2", id: guid("https://feeds.example/b/2") },
      ]);
    }
    return fate;
  });
  const feeds = [...feedsOf(1_000, "a"), ...feedsOf(5, "b"), "https://feeds.example/a/999"];
  const results = await createClient({ url: wire.url, token }).subscribe(feeds);
  assert.deepEqual(
    wordsOf(results.slice(0, 1_000)),
    feedsOf(1_000).map(() => "added"),
  );
  assert.deepEqual(wordsOf(results.slice(1_000)), [
    "added",
    "already-subscribed",
    "already-subscribed",
    "added",
    "added",
    "already-subscribed",
  ]);
  // Only the end of the list was looked at.
  assert.equal(wire.all.filter(({ path }) => path.startsWith("/v1/subscriptions?")).length, 1);
});

test("every kind of request survives a lost answer", async () => {
  const asked = new Set<string>();
  const wire = await startWire(({ method, path }) => {
    const isFirst = !asked.has(method + path);
    asked.add(method + path);
    return isFirst ? "cut after" : "pass";
  });
  const client = await newClient({ url: wire.url });
  const [result] = await client.subscribe(["https://podnews.net/rss"]);
  assert.equal(result?.outcome, "added");
  assert.deepEqual(await everyIdOf(client), [result?.id]);
  // The first try has removed it, of which the second knows nothing.
  assert.equal(await client.remove(guid("https://podnews.net/rss")), false);
  assert.equal((await client.me()).counts.subscriptions, 0);
});

test("a server that is not there is a network error, after as many tries as were allowed", async () => {
  // Nobody listens on this port.
  const retries: Retry[] = [];
  const client = createClient({ url: "http://127.0.0.1:1", retries: 1, onRetry: (retry) => retries.push(retry) });
  const failure = await failureOf(client.me(), NetworkError);
  assert.ok(failure.cause instanceof TypeError);
  assert.equal(retries.length, 1);
  assert.ok(retries[0] !== undefined && retries[0].delayMs >= 250 && retries[0].delayMs <= 500);
});

test("a signal stops before, between and within requests, and while waiting", async () => {
  const token = await newPerson();
  const feeds = feedsOf(3_000);
  const stopped = async (wire: { readonly url: string }, controller: AbortController, onProgress?: () => void) => {
    const client = createClient({ url: wire.url, token, onRetry: () => setTimeout(() => controller.abort(), 50) });
    const started = Date.now();
    const failure = await failureOf(client.subscribe(feeds, { onProgress, signal: controller.signal }), DOMException);
    assert.equal(failure.name, "AbortError");
    assert.ok(Date.now() - started < 5_000);
  };

  const early = new AbortController();
  early.abort();
  const unused = await startWireWith();
  await stopped(unused, early);
  assert.equal(unused.all.length, 0);

  const between = new AbortController();
  const wire = await startWireWith();
  await stopped(wire, between, () => between.abort());
  assert.equal(wire.operations().length, 1);

  const within = new AbortController();
  const stalled = await startWire(({ path }) => {
    if (path !== "/v1/operations") return "pass";
    setTimeout(() => within.abort(), 50);
    return "stall";
  });
  await stopped(stalled, within);

  await stopped(await startWireWith({ status: 503, headers: { "Retry-After": "60" } }), new AbortController());

  const told = new AbortController();
  const busy = await startWireWith({ status: 503, headers: { "Retry-After": "60" } });
  const client = createClient({ url: busy.url, token, onRetry: () => told.abort() });
  const started = Date.now();
  assert.equal((await failureOf(client.subscribe(feeds, { signal: told.signal }), DOMException)).name, "AbortError");
  assert.ok(Date.now() - started < 5_000);

  // Whoever brings a fetch that knows nothing of signals is stopped between requests all the same.
  const deaf = new AbortController();
  let calls = 0;
  const careless = createClient({
    url: serverUrl,
    token,
    fetch: (address, init) => {
      calls += 1;
      return fetch(address, { ...init, signal: null });
    },
  }).subscribe(feeds, { onProgress: () => deaf.abort(), signal: deaf.signal });
  assert.equal((await failureOf(careless, DOMException)).name, "AbortError");
  assert.equal(calls, 2);

  // A listing stops as well, and a reason of one's own comes through.
  const reason = new Error("enough");
  const listing = new AbortController();
  const seen: string[] = [];
  const iterate = async () => {
    for await (const { id } of createClient({ url: wire.url, token }).subscriptions({ signal: listing.signal })) {
      seen.push(id);
      listing.abort(reason);
    }
  };
  assert.equal(await failureOf(iterate(), Error), reason);
  assert.equal(seen.length, 100);
  const timeout = createClient({ url: stalled.url, token, retries: 0 }).subscribe(feeds, {
    signal: AbortSignal.timeout(50),
  });
  assert.equal((await failureOf(timeout, DOMException)).name, "TimeoutError");
});

test("an answer that is not Earmark's is told from one that is", async () => {
  const answers: Record<string, [number, Record<string, string>, string]> = {
    "/page/v1/me": [200, { "Content-Type": "text/html" }, "<h1>Welcome</h1>"],
    "/other/v1/me": [200, { "Content-Type": PLAIN }, "{}"],
    "/moved/v1/me": [301, { Location: "https://pods.example/v1/me" }, ""],
    "/proxy/v1/me": [403, { "Content-Type": "text/html" }, "<h1>Go away</h1>"],
    "/short/v1/me": [
      200,
      {},
      JSON.stringify({
        data: { attributes: { name: "local", issuer: null, created_at: null } },
        meta: {
          credential: null,
          counts: { subscriptions: 0 },
          limits: { operations_per_request: 10, body_bytes: 10_000 },
        },
      }),
    ],
    "/short/v1/operations": [200, { "Content-Type": ATOMIC }, '{"atomic:results":[]}'],
  };
  const url = await listen(({ url: path = "" }, response) => {
    const [status, headers, body] = answers[path] ?? [404, {}, ""];
    response.writeHead(status, headers).end(body);
  });
  const failures = ["page", "other", "moved", "proxy"].map(async (name) => {
    const { status, title, errors } = await failureOf(createClient({ url: `${url}/${name}` }).me(), EarmarkError);
    assert.deepEqual(errors, []);
    return [status, title];
  });
  assert.deepEqual(await Promise.all(failures), [
    [200, "Not Earmark"],
    [200, "Not Earmark"],
    [301, "Moved Permanently"],
    [403, "Forbidden"],
  ]);
  const short = await createClient({ url: `${url}/short` }).subscribe(feedsOf(1));
  assert.deepEqual(wordsOf(short), ["No Result"]);
  assert.throws(() => createClient({ url: "pods.example" }), TypeError);
});

test("a fetch of one's own is used, and sees what is sent", async () => {
  const token = await newPerson();
  const sent: (readonly [string | undefined, string])[] = [];
  const client = createClient({
    url: serverUrl,
    token,
    fetch: (address, init) => {
      sent.push([init.method, address]);
      assert.equal(new Headers(init.headers).get("Authorization"), `Bearer ${token}`);
      return fetch(address, init);
    },
  });
  await client.page({ number: 2, size: 3 });
  assert.deepEqual(sent, [["GET", `${serverUrl}/v1/subscriptions?page[number]=2&page[size]=3`]]);
});

test("OPML goes in with a report, and comes out as text", async () => {
  const wire = await startWire(() => "pass");
  const client = await newClient({ url: wire.url });
  const outline = (title: string, address: string) => `<outline text="${title}" xmlUrl="${address}"/>`;
  const opml = `<opml version="2.0"><body>${outline("Podnews", "https://podnews.net/rss")}${outline("Æther", "ftp://x")}</body></opml>`;
  const report = {
    counts: { found: 2, added: 1, alreadySubscribed: 0, refused: 1 },
    entries: [
      {
        feedUrl: "https://podnews.net/rss",
        title: "Podnews",
        outcome: "added",
        detail: null,
        subscriptionId: "9b024349-ccf0-5f69-a609-6b82873eab3c",
      },
      {
        feedUrl: "ftp://x",
        title: "Æther",
        outcome: "refused",
        detail: "The address must be an absolute http or https address with a host.",
        subscriptionId: null,
      },
    ],
  };
  const look = await client.importOpml(new Blob([opml], { type: "text/xml" }), { dryRun: true });
  assert.deepEqual(look.counts, report.counts);
  assert.equal(look.dryRun, true);
  assert.deepEqual(await everyIdOf(client), []);
  assert.deepEqual(await client.importOpml(opml), { dryRun: false, ...report });
  const again = await client.importOpml(Buffer.from(opml));
  assert.deepEqual(again.counts, { found: 2, added: 0, alreadySubscribed: 1, refused: 1 });
  for (const { headers } of wire.all.filter(({ path }) => path.startsWith("/v1/imports")))
    assert.equal(headers["content-type"], "text/x-opml");

  const exported = await client.exportOpml();
  assert.match(exported, /^<\?xml .*xmlUrl="https:\/\/podnews\.net\/rss"/s);
  const copy = await (await newClient()).importOpml(exported);
  assert.deepEqual([copy.counts.found, copy.counts.added], [1, 1]);
  const failure = await failureOf(client.importOpml("no OPML"), EarmarkError);
  assert.deepEqual([failure.status, failure.title], [422, "Not An OPML File"]);
});

test("an import is sent again only if nothing was done", async () => {
  const fates: Fate[] = [
    { status: 429, headers: { "Retry-After": "0" } },
    { status: 503, headers: { "Retry-After": "0" } },
    "cut after",
    "cut after",
  ];
  const wire = await startWire(({ path }) => (path.startsWith("/v1/imports") && fates.shift()) || "pass");
  const client = await newClient({ url: wire.url });
  const opml = '<opml version="2.0"><body><outline xmlUrl="https://podnews.net/rss"/></body></opml>';
  assert.equal((await failureOf(client.importOpml(opml), EarmarkError)).status, 503);
  assert.ok((await failureOf(client.importOpml(opml), NetworkError)).cause instanceof Error);
  assert.equal((await client.importOpml(opml, { dryRun: true })).counts.alreadySubscribed, 1);
  assert.equal(fates.length, 0);
});

/** A fetch that keeps the cookie, as a browser does. */
function keepCookie(): NonNullable<ClientOptions["fetch"]> {
  let cookie = "";
  return async (address, init) => {
    const headers = new Headers(init.headers);
    if (cookie !== "") headers.set("Cookie", cookie);
    const response = await fetch(address, { ...init, headers });
    for (const set of response.headers.getSetCookie())
      cookie = /; Max-Age=0;/.test(set) ? "" : set.slice(0, set.indexOf(";"));
    return response;
  };
}

/** A client in a browser of its own, where nobody is signed in. */
const openBrowser = (url: string, options: Partial<ClientOptions> = {}) =>
  createClient({ url, fetch: keepCookie(), ...options });

const PASSWORD = "correct horse battery";
const DAY_MS = 24 * 60 * 60 * 1_000;

let aheadMs = 0;
/** Below a base path, and with a clock that the tests put forward. */
const { url: houseUrl, port: housePort } = await startServer(
  { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_BASE_PATH: "/pods" },
  () => new Date(Date.now() + aheadMs),
);
const house = `${houseUrl}/pods`;

/** What a refusal says, in short. */
async function refusalOf(call: Promise<unknown>): Promise<[number, string]> {
  const { status, title } = await failureOf(call, EarmarkError);
  return [status, title];
}

test("a person signs up, and out, and in again", async () => {
  const client = openBrowser(house);
  assert.equal(await client.signUp({ name: "Ada", password: PASSWORD, invitation: undefined }), undefined);
  const { name, credential } = await client.me();
  assert.deepEqual([name, credential?.kind, credential?.scope], ["ada", "session", "write"]);
  assert.deepEqual(wordsOf(await client.subscribe(feedsOf(2))), ["added", "added"]);

  assert.equal(await client.signOut(), undefined);
  assert.deepEqual(await refusalOf(client.me()), [401, "Unauthorized"]);
  // Nobody is signed in, so there is nothing to end.
  await client.signOut();

  assert.equal(await client.signIn({ name: "ADA", password: PASSWORD }), undefined);
  assert.deepEqual((await client.me()).counts, { subscriptions: 2, tokens: 0, sessions: 1 });
});

test("a name that is taken and a password that is wrong are refused, with the reason", async () => {
  const person = { name: "grace", password: PASSWORD };
  await openBrowser(house).signUp(person);
  const client = openBrowser(house);
  assert.deepEqual(await refusalOf(client.signUp(person)), [409, "Name Taken"]);
  const short = await failureOf(client.signUp({ name: "hopper", password: "short" }), EarmarkError);
  assert.deepEqual([short.status, short.errors[0]?.source?.pointer], [422, "/data/attributes/password"]);
  const wrong = await failureOf(client.signIn({ ...person, password: "wrong horse battery" }), EarmarkError);
  assert.deepEqual(
    [wrong.status, wrong.title, wrong.detail, wrong.errors.length],
    [401, "Unauthorized", "Name or password is wrong.", 1],
  );
  assert.deepEqual(await refusalOf(client.sessions()), [401, "Unauthorized"]);
});

test("an invitation makes one account", async () => {
  const { url, store } = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "false" });
  const opened = await new Accounts(store.accounts, { signUp: false }).invite(7, new Date());
  assert.ok(!isRefused(opened));
  const invitation = opened.secret;
  const client = openBrowser(url);
  assert.deepEqual(await refusalOf(client.signUp({ name: "ann", password: PASSWORD })), [403, "Sign-Up Closed"]);
  await client.signUp({ name: "ann", password: PASSWORD, invitation });
  assert.equal((await client.me()).name, "ann");
  const late = openBrowser(url).signUp({ name: "bob", password: PASSWORD, invitation });
  assert.deepEqual(await refusalOf(late), [403, "Invitation Not Valid"]);
});

test("a token is made, used by an app, listed, and revoked once", async () => {
  const client = openBrowser(house);
  await client.signUp({ name: "edith", password: PASSWORD });
  const { secret, ...phone } = await client.createToken({ label: "phone" });
  assert.match(secret, /^emk_/);
  assert.ok(Math.abs(phone.createdAt.getTime() - Date.now() - aheadMs) < 60_000);
  const { id, createdAt } = phone;
  assert.deepEqual(phone, {
    id,
    kind: "token",
    label: "phone",
    scope: "write",
    createdAt,
    lastUsedAt: null,
    expiresAt: null,
    isCurrent: false,
  });
  const expiresAt = new Date(Date.now() + aheadMs + 30 * DAY_MS);
  // The list is in the order of their moments.
  aheadMs += 1_000;
  const radio = await client.createToken({ label: "radio", scope: "read", expiresAt });
  assert.deepEqual([radio.scope, radio.expiresAt], ["read", expiresAt]);

  const app = createClient({ url: house, token: secret });
  assert.deepEqual(wordsOf(await app.subscribe(feedsOf(1))), ["added"]);
  const reader = createClient({ url: house, token: radio.secret });
  assert.deepEqual(await refusalOf(reader.subscribe(feedsOf(1))), [403, "Insufficient Scope"]);
  // A token is not the person.
  assert.deepEqual(await refusalOf(app.tokens()), [403, "Sign In Needed"]);
  assert.deepEqual(await refusalOf(app.signOut()), [403, "Sign In Needed"]);

  const listed = await client.tokens();
  assert.deepEqual(
    listed.map(({ label, isCurrent }) => [label, isCurrent]),
    [
      ["phone", false],
      ["radio", false],
    ],
  );
  assert.deepEqual({ ...listed[0], lastUsedAt: null }, phone);
  assert.equal(await client.revoke(phone), true);
  assert.equal(await client.revoke(phone), false);
  assert.deepEqual(await refusalOf(app.me()), [401, "Unauthorized"]);
  assert.equal((await client.tokens()).length, 1);

  assert.deepEqual(await refusalOf(client.createToken({ label: "" })), [422, "Validation Failed"]);
  assert.deepEqual(await refusalOf(client.createToken({ label: "late", expiresAt: new Date(0) })), [
    422,
    "Validation Failed",
  ]);
  // It would have become a token that never ends.
  await failureOf(client.createToken({ label: "never", expiresAt: new Date(Number.NaN) }), RangeError);
  assert.equal((await client.tokens()).length, 1);
});

test("all pages of tokens and sessions are read", async () => {
  const browser = keepCookie();
  const asked: string[] = [];
  const client = openBrowser(house, {
    fetch: (address, init) => {
      const short = address.replace("page[size]=100", "page[size]=2");
      asked.push(short.slice(house.length));
      return browser(short, init);
    },
  });
  await client.signUp({ name: "joan", password: PASSWORD });
  for (const label of ["a", "b", "c", "d", "e"]) {
    aheadMs += 1_000;
    await client.createToken({ label });
  }
  asked.length = 0;
  assert.equal((await client.tokens()).map(({ label }) => label).join(""), "abcde");
  assert.deepEqual(
    asked.map((path) => decodeURI(path)),
    [1, 2, 3].map((number) => `/v1/tokens?page[number]=${number}&page[size]=2`),
  );
  assert.equal((await client.sessions()).length, 1);
});

test("sessions are listed, one ends another, and a new password ends all others", async () => {
  const person = { name: "mary", password: PASSWORD };
  const [desk, sofa, train] = [openBrowser(house), openBrowser(house), openBrowser(house)];
  await desk.signUp(person);
  await sofa.signIn(person);
  const sessions = await sofa.sessions();
  assert.deepEqual(
    sessions.map(({ kind, scope, label, isCurrent }) => [kind, scope, label, isCurrent]),
    [
      ["session", "write", "node", false],
      ["session", "write", "node", true],
    ],
  );
  const [first] = sessions;
  assert.ok(first?.expiresAt instanceof Date);
  assert.equal(first.expiresAt.getTime() - first.createdAt.getTime(), 90 * DAY_MS);
  assert.equal(await sofa.revoke(first), true);
  assert.deepEqual(await refusalOf(desk.me()), [401, "Unauthorized"]);
  await desk.signOut();

  await train.signIn(person);
  const wanted = "a longer one this time";
  const wrong = train.changePassword({ current: wanted, wanted });
  assert.deepEqual(await refusalOf(wrong), [403, "Wrong Password"]);
  assert.equal(await train.changePassword({ current: PASSWORD, wanted }), undefined);
  assert.deepEqual(await refusalOf(sofa.me()), [401, "Unauthorized"]);
  assert.deepEqual(
    (await train.sessions()).map(({ isCurrent }) => isCurrent),
    [true],
  );
  assert.deepEqual(await refusalOf(sofa.signIn(person)), [401, "Unauthorized"]);
  await sofa.signIn({ ...person, password: wanted });
});

test("an account is exported, and deleted within ten minutes of a sign-in", async () => {
  const person = { name: "hedy", password: PASSWORD };
  const client = openBrowser(house);
  await client.signUp(person);
  const { secret } = await client.createToken({ label: "phone" });
  await client.subscribe(feedsOf(3));
  const { data } = JSON.parse(await client.exportAccount());
  assert.deepEqual(
    data.map(({ type }: { readonly type: string }) => type),
    ["account", "token", "session", "subscription", "subscription", "subscription"],
  );

  aheadMs += 11 * 60 * 1_000;
  assert.deepEqual(await refusalOf(client.deleteAccount()), [403, "Sign In Again"]);
  await client.signIn(person);
  assert.equal(await client.deleteAccount(), undefined);
  assert.deepEqual(await refusalOf(client.me()), [401, "Unauthorized"]);
  assert.deepEqual(await refusalOf(createClient({ url: house, token: secret }).me()), [401, "Unauthorized"]);
  assert.deepEqual(await refusalOf(client.signIn(person)), [401, "Unauthorized"]);
  await client.signUp(person);
  assert.equal((await client.me()).counts.subscriptions, 0);
});

test("without accounts there is nobody to sign in or out, and the list can be exported", async () => {
  const { url } = await startServer();
  const client = createClient({ url });
  await client.signOut();
  assert.equal((await failureOf(client.signIn({ name: "ann", password: PASSWORD }), EarmarkError)).status, 404);
  assert.equal((await failureOf(client.tokens(), EarmarkError)).status, 404);
  assert.equal(JSON.parse(await client.exportAccount()).data.length, 1);
});

test("what would be done twice is sent once, and again only if nothing was done", async () => {
  const fates: Fate[] = [];
  const wire = await startWire(({ method }) => (method !== "GET" && fates.shift()) || "pass", housePort);
  const client = openBrowser(`${wire.url}/pods`);
  const busy = { status: 429, headers: { "Retry-After": "0" } };
  const away = { status: 503, headers: { "Retry-After": "0" } };
  const sent = () => wire.all.splice(0).filter(({ method }) => method !== "GET").length;
  const person = { name: "radia", password: PASSWORD };
  const wanted = "a longer one this time";

  fates.push("cut after");
  await failureOf(client.signUp(person), NetworkError);
  assert.equal(sent(), 1);
  // It is there all the same. Whoever signs in may do so twice.
  fates.push("cut after", away);
  await client.signIn(person);
  assert.equal(sent(), 3);

  const unsure: (() => Promise<unknown>)[] = [
    () => client.signUp({ ...person, name: "perlman" }),
    () => client.createToken({ label: "phone" }),
    () => client.changePassword({ current: PASSWORD, wanted }),
    () => client.deleteAccount(),
  ];
  for (const call of unsure) {
    fates.push(busy, away);
    assert.equal((await failureOf(call(), EarmarkError)).status, 503);
    fates.push("cut before");
    await failureOf(call(), NetworkError);
    assert.equal(sent(), 3);
  }

  fates.push("cut after");
  await failureOf(client.createToken({ label: "phone" }), NetworkError);
  assert.deepEqual(
    (await client.tokens()).map(({ label }) => label),
    ["phone"],
  );
  fates.push("cut after");
  await failureOf(client.changePassword({ current: PASSWORD, wanted }), NetworkError);
  await client.signIn({ ...person, password: wanted });
  sent();
  fates.push("cut after");
  await failureOf(client.deleteAccount(), NetworkError);
  assert.equal(sent(), 1);
  assert.deepEqual(await refusalOf(client.me()), [401, "Unauthorized"]);
});

test("who signs out is signed out, though the answer was lost", async () => {
  const fates: Fate[] = ["cut after", { status: 503, headers: { "Retry-After": "0" } }];
  const wire = await startWire(({ method }) => (method === "DELETE" && fates.shift()) || "pass", housePort);
  const client = openBrowser(`${wire.url}/pods`);
  const person = { name: "barbara", password: PASSWORD };
  await client.signUp(person);
  await client.signOut();
  assert.equal(fates.length, 0);
  await client.signIn(person);
  assert.equal((await client.sessions()).length, 1);

  fates.push({ status: 500 });
  assert.equal((await failureOf(client.signOut(), EarmarkError)).status, 500);
  const stopped = new AbortController();
  stopped.abort();
  assert.equal((await failureOf(client.signOut({ signal: stopped.signal }), DOMException)).name, "AbortError");
  assert.equal((await client.sessions()).length, 1);
});

test("what is published is one file without imports, of less than 5 kB as it is sent", async () => {
  const { folder } = await packed;
  const built = readFileSync(join(folder, "dist", "index.js"));
  assert.doesNotMatch(built.toString(), /\bimport\b\s*[\w{("'*.]|\brequire\(/);
  assert.ok(gzipSync(built).length < 5_000, `${gzipSync(built).length} bytes with gzip`);
  assert.ok(brotliCompressSync(built).length < 4_500, `${brotliCompressSync(built).length} bytes with Brotli`);
});

test("what is published compiles in a strict project, and runs on every Node from 20 on", async () => {
  const folder = await installed;
  writeFileSync(join(folder, "main.ts"), CONSUMER);
  const readme = readFileSync(join(ROOT, "client", "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text);
  assert.ok(blocks.length >= 5);
  writeFileSync(join(folder, "readme.ts"), blocks.join(""));
  const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, "tsconfig.json"), "utf8"));
  const { allowImportingTsExtensions, lib, module, noEmit, target, types, ...strict } = compilerOptions;
  assert.equal(strict.strict, true);
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  for (const options of [
    { module: "nodenext", lib: ["es2022"], types: ["node"], outDir: "out" },
    { module: "nodenext", lib: ["es2022", "dom"], types: ["node"], noEmit },
    { module: "esnext", moduleResolution: "bundler", lib: ["es2022"], types: ["node"], noEmit },
  ]) {
    const config = {
      compilerOptions: { ...strict, target: "es2022", skipLibCheck: false, ...options },
      files: ["main.ts", "readme.ts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    await run(process.execPath, [tsc], { cwd: folder }).catch(({ stdout }) => assert.fail(stdout));
  }
  const nodes = await everyNode();
  assert.ok(nodes.length > 0);
  for (const node of nodes) {
    const { stdout } = await run(node, [join(folder, "out", "main.js"), serverUrl, await newPerson()]);
    assert.deepEqual(stdout.split("\n"), [
      "3,3,2,0,1",
      "https://podnews.net/rss",
      "https://feeds.example/daily",
      "refused 422 Validation Failed",
      `${guid("podnews.net/rss")}true,${guid("feeds.example/daily")}true`,
      "true",
      "undefined 1",
      `person-${people} 1000000`,
      "401 Unauthorized 1 undefined",
      "",
    ]);
  }
});
