import assert from "node:assert/strict";
import { test } from "node:test";
import { EarmarkError } from "../client/src/index.ts";
import { failureOf, openBrowser, PASSWORD } from "./support/client.ts";
import { callServer, startServer } from "./support/server.ts";

const server = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_BASE_PATH: "/pods" });
const client = openBrowser(`${server.url}/pods`);
await client.signUp({ name: "ann", password: PASSWORD });
const { secret } = await client.createToken({ label: "phone" });

async function asApp(method: string, path: string, body?: unknown) {
  const headers = { Authorization: `Basic ${btoa(`ann:${secret}`)}`, "User-Agent": "AntennaPod/3.9.0" };
  const options = { headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await callServer(server.port, method, `/pods${path}`, options);
  assert.equal(response.status, 200, response.text);
  return response.json;
}

test("client: devices → listed, renamed, forgotten", async () => {
  await asApp("GET", "/api/2/subscriptions/ann/pixel.8.json?since=0");
  const [device] = await client.devices();
  assert.deepEqual(
    [device?.id, device?.caption, device?.app, device?.subscriptions],
    ["pixel.8", "pixel.8", "AntennaPod/3.9.0", 0],
  );
  assert.ok(device?.lastSyncAt instanceof Date);
  const renamed = await client.changeDevice("pixel.8", { caption: "My phone", deviceType: "mobile" });
  assert.deepEqual([renamed.caption, renamed.deviceType], ["My phone", "mobile"]);
  assert.equal((await failureOf(client.changeDevice("none", { caption: "x" }), EarmarkError)).status, 404);
  assert.equal(await client.forgetDevice("pixel.8"), true);
  assert.equal(await client.forgetDevice("pixel.8"), false);
});

test("client: episode actions → in pages, of one feed if asked", async () => {
  const action = { episode: "https://media.example/1", action: "play", timestamp: "2026-01-02T03:04:05", position: 7 };
  const podcasts = ["a", "b"].map((name) => `https://feeds.example/${name}`);
  await asApp(
    "POST",
    "/api/2/episodes/ann.json",
    podcasts.map((podcast) => ({ podcast, ...action })),
  );
  const page = await client.episodeActions({ size: 1 });
  assert.deepEqual([page.total, page.hasNext, page.items.length], [2, true, 1]);
  const [ofB] = (await client.episodeActions({ feedUrl: "https://feeds.example/b" })).items;
  assert.deepEqual(
    [ofB?.feedUrl, ofB?.mediaUrl, ofB?.position, ofB?.started, ofB?.actedAt.toISOString()],
    ["https://feeds.example/b", "https://media.example/1", 7, null, "2026-01-02T03:04:05.000Z"],
  );
});

test("client: app logins → shown, allowed or denied", async () => {
  const start = async () => String(new URL((await asApp("POST", "/index.php/login/v2")).login).hash.split("=")[1]);
  const [first, second] = [await start(), await start()];
  const login = await client.appLogin(first);
  assert.deepEqual([login?.app, login?.address, login?.status], ["AntennaPod/3.9.0", "127.0.0.1", "pending"]);
  assert.equal((await client.allowAppLogin(first, "AntennaPod")).label, "AntennaPod");
  assert.equal((await client.appLogin(first))?.status, "allowed");
  assert.equal(await client.denyAppLogin(first), false);
  assert.equal(await client.denyAppLogin(second), true);
  assert.equal((await client.appLogin(second))?.status, "denied");
  assert.equal(await client.appLogin("unknown"), undefined);
});
