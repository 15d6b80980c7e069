import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, EarmarkError } from "../client/src/index.ts";
import { newToken, signUp } from "./support/accounts.ts";
import { failureOf } from "./support/client.ts";
import { learn } from "./support/fetching.ts";
import { newId, startServer } from "./support/server.ts";

const PASSWORD = "correct horse battery";
const server = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_BASE_PATH: "/pods" });

async function newClients(name: string) {
  const session = await signUp(server.port, name, PASSWORD);
  const { token } = await newToken(server.port, session, { label: "w", scope: "write" });
  const { token: readToken } = await newToken(server.port, session, { label: "r", scope: "read" });
  const url = `${server.url}/pods`;
  return { client: createClient({ url, token }), reader: createClient({ url, token: readToken }), session };
}

const feeds = (count: number) => Array.from({ length: count }, () => `https://feeds.example/${newId()}`);

/** Subscribes to feeds whose podcasts have one GUID. Returns the ids of the subscriptions. */
async function subscribeTwice(client: ReturnType<typeof createClient>, urls: readonly string[]) {
  const ids = (await client.subscribe(urls)).map(({ id }) => id);
  const podcastGuid = newId();
  for (const url of urls) await learn(server.store, url, { title: "T", podcastGuid });
  return ids;
}

test("duplicates: any token reads them, in pages; merging ends them", async () => {
  const { client, reader } = await newClients("ann");
  const pairs = [];
  for (let count = 0; count < 3; count += 1) pairs.push(await subscribeTwice(client, feeds(2)));
  const found = await reader.duplicates();
  assert.deepEqual(
    found.map(({ reason, subscriptions }) => [reason, subscriptions]),
    pairs.map((pair) => ["same-guid", pair]),
  );
  const [[from = "", mergeInto = ""] = []] = pairs;
  await client.apply([{ op: "remove", id: from, mergeInto }]);
  assert.deepEqual(await client.duplicates(), found.slice(1));
});

test("duplicates: not the same → remembered for this account, in its export", async () => {
  const [{ client, reader, session }, { client: other }] = [await newClients("bob"), await newClients("carol")];
  const urls = feeds(2);
  await subscribeTwice(client, urls);
  await other.subscribe(urls);
  const [{ id } = assert.fail()] = await client.duplicates();
  assert.equal((await failureOf(reader.dismissDuplicate(id), EarmarkError)).code, "insufficient-scope");
  assert.equal(await other.dismissDuplicate(newId()), false);
  assert.equal((await client.duplicates()).length, 1);
  assert.equal(await client.dismissDuplicate(id), true);
  assert.equal(await client.dismissDuplicate(id), false);
  assert.deepEqual([(await client.duplicates()).length, (await other.duplicates()).length], [0, 1]);
  const { json } = await server.call("GET", "/pods/v1/me/export", { headers: { Cookie: session.cookie } });
  const exported = json.data.filter(({ type }: { type: string }) => type === "duplicate");
  assert.deepEqual(
    exported.map((each: { id: string; attributes: object }) => [each.id, Object.keys(each.attributes)]),
    [[id, ["dismissed_at"]]],
  );
});

test("duplicates: nothing is merged or removed by itself", async () => {
  const { client } = await newClients("dave");
  const ids = await subscribeTwice(client, feeds(3));
  assert.equal((await client.duplicates())[0]?.subscriptions.length, 3);
  const listed = [];
  for await (const { id } of client.subscriptions()) listed.push(id);
  assert.deepEqual(listed, ids);
});

test("duplicates: a group of 1,500 → 1,000 of them, with their number", async () => {
  const { client, session } = await newClients("eve");
  const urls = feeds(1_500);
  await client.subscribe(urls);
  const podcastGuid = newId();
  for (const url of urls) await learn(server.store, url, { podcastGuid });
  const { json } = await server.call("GET", "/pods/v1/duplicates", { headers: { Cookie: session.cookie } });
  const [{ relationships }] = json.data;
  assert.deepEqual(
    [relationships.subscriptions.data.length, relationships.subscriptions.meta],
    [1_000, { total: 1_500 }],
  );
});
