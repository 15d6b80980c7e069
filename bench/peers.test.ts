import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startServer } from "../test/harness.ts";

const PEERS = fileURLToPath(new URL("peers.ts", import.meta.url));

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [PEERS, ...args]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

/** What this program needs of the gPodder API, with its lists in memory. `mangle` is what becomes of an address. */
async function startGpodder({ mangle = (feed: string) => feed, lose = 0 } = {}) {
  const lists = new Map<string, Set<string>>();
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const { method, url = "", headers } = request;
    const body = await readBody(request);
    asked.push(`${method} ${url}`);
    const answer = (status: number, value: unknown, extra = {}) =>
      response.writeHead(status, { "content-type": "application/json", ...extra }).end(JSON.stringify(value));
    if (method === "POST" && url === "/api/2/auth/ann/login.json") {
      if (headers.authorization !== `Basic ${Buffer.from("ann:secret").toString("base64")}`) return answer(401, {});
      return answer(200, {}, { "set-cookie": "sessionid=1" });
    }
    if (headers.cookie !== "sessionid=1" || headers.authorization !== undefined) return answer(400, {});
    const device = /^\/api\/2\/subscriptions\/ann\/([\w-]+)\.json(\?since=0)?$/.exec(url)?.[1];
    if (device === undefined) return answer(404, {});
    const list = lists.get(device) ?? new Set<string>();
    lists.set(device, list);
    if (method === "GET") return answer(200, { add: [...list].slice(lose), remove: [], timestamp: 1 });
    const { add, remove } = JSON.parse(body) as { add: string[]; remove: string[] };
    for (const feed of add) list.add(mangle(feed));
    for (const feed of remove) list.delete(feed);
    return answer(200, {
      timestamp: 1,
      update_urls: add.filter((feed) => mangle(feed) !== feed).map((feed) => [feed, mangle(feed)]),
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { lists, asked, options: ["--url", `http://127.0.0.1:${port}`, "--user", "ann", "--password", "secret"] };
}

test("a server of the gPodder API is measured, and its list is empty afterwards", async () => {
  const { options, lists, asked } = await startGpodder();
  const { code, stdout, stderr } = await run(...options, "--device", "phone", "--count", "30", "--seconds", "1");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /gPodder API at 127\.0\.0\.1:\d+ +upload 30 +[\d,.]+ +[\d,.]+ +[\d,.]+ \(/);
  assert.match(stdout, /list 30/);
  assert.deepEqual([...lists], [["phone", new Set()]]);
  assert.deepEqual(asked.slice(0, 4), [
    "POST /api/2/auth/ann/login.json",
    "GET /api/2/subscriptions/ann/phone.json?since=0",
    "POST /api/2/subscriptions/ann/phone.json",
    "GET /api/2/subscriptions/ann/phone.json?since=0",
  ]);
});

test("addresses that a server has put into another form are found again", async () => {
  const { options, lists } = await startGpodder({ mangle: (feed) => feed.replace("https:", "http:") });
  const { code, stderr } = await run(...options, "--count", "3", "--seconds", "1");
  assert.equal(code, 0, stderr);
  assert.deepEqual([...lists], [["earmark-bench", new Set()]]);
});

test("a server that loses a feed is found out", async () => {
  const { options } = await startGpodder({ lose: 1 });
  const { code, stderr } = await run(...options, "--count", "3");
  assert.equal(code, 1);
  assert.match(stderr, /lists 2 feeds, 2 of them distinct, after 3 were uploaded/);
});

test("a list that has something in it is left alone", async () => {
  const { options, lists } = await startGpodder();
  lists.set("phone", new Set(["https://kept.example/feed"]));
  const { code, stderr } = await run(...options, "--device", "phone");
  assert.equal(code, 1);
  assert.match(stderr, /lists 1 feeds already/);
  assert.deepEqual([...(lists.get("phone") ?? [])], ["https://kept.example/feed"]);
});

test("a wrong password, a missing server and a wrong option are told in words", async () => {
  const { options } = await startGpodder();
  const wrong = await run(...options.slice(0, -1), "guess");
  assert.deepEqual([wrong.code, /answered 401/.test(wrong.stderr)], [1, true], wrong.stderr);
  const missing = await run("--earmark", "http://127.0.0.1:1");
  assert.deepEqual([missing.code, /ECONNREFUSED|fetch failed/.test(missing.stderr)], [1, true], missing.stderr);
  const many = await run(...options, "--count", "1000000");
  assert.deepEqual([many.code, /--count is a number from 1 to 10000/.test(many.stderr)], [1, true], many.stderr);
});

test("Earmark does the same work beside it, and its list is empty afterwards", async () => {
  const { options } = await startGpodder();
  const { url, call } = await startServer();
  const { code, stdout, stderr } = await run(...options, "--earmark", url, "--count", "230", "--seconds", "1");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Earmark at 127\.0\.0\.1:\d+ +upload 230/);
  const { json } = await call("GET", "/v1/subscriptions");
  assert.equal(json.meta.total, 0);
});
