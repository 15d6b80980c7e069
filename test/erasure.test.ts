import assert from "node:assert/strict";
import { test } from "node:test";
import { asUser, type UserId } from "../src/accounts/caller.ts";
import { feedKeyHex } from "../src/lists/feed-url.ts";
import { DELETED, linkKey } from "../src/store/shared/keys.ts";
import { type Row, TABLES } from "../src/store/shared/tables.ts";
import { readAll } from "../src/store/suites/archive.suite.ts";
import { basic, newUser } from "./support/http-accounts.ts";
import { add, newId, operate, startServer, type TestServer } from "./support/server.ts";

const url = (name: string) => `https://${name}.example/feed`;
const keyed = (name: string) => ({ feed: feedKeyHex(`${name}.example/feed`), url: url(name) });

interface Data {
  readonly Cookie: string;
  readonly user: UserId;
  /** Of a link. */
  readonly secret: string;
}

/** An account with rows in every table that users have rows in. Returns its session. */
async function createData(server: TestServer): Promise<Data> {
  const { name, Authorization, Cookie } = await newUser(server);
  const headers = { Authorization };
  const call: TestServer["call"] = (method, path, options) =>
    server.call(method, path, { ...options, headers: { ...headers, ...options?.headers } });
  const user: UserId = Number((await call("GET", "/v1/me")).json.data.id);
  const app = async (method: string, path: string, body?: object) => {
    const given = body === undefined ? {} : { body: JSON.stringify(body) };
    const token = Authorization.slice("Bearer ".length);
    const response = await server.call(method, `/api/2/${path}`, { headers: basic(name, token), ...given });
    assert.equal(response.status, 200, response.text);
    return response.json;
  };
  const ids = [newId(), newId(), newId(), newId()];
  const [moved, merged, removed] = ids;
  await operate(
    call,
    ["moved", "merged", "removed", "target"].map((each, index) => add(ids[index], url(each))),
  );
  await app("POST", `subscriptions/${name}/phone.json`, { add: [url("spelled").toUpperCase()], remove: [] });
  const play = { episode: "https://media.example/1", action: "play", timestamp: "2026-01-01T00:00:00", position: 1 };
  await app("POST", `episodes/${name}.json`, [
    { ...play, podcast: url("moved") },
    { ...play, podcast: url("target") },
  ]);
  await app("GET", `subscriptions/${name}/phone.json?since=0`);
  await app("GET", `episodes/${name}.json?since=0`);
  const move = (feed_url: string) => ({
    op: "update",
    data: { type: "subscription", id: moved, attributes: { feed_url } },
  });
  const results = await operate(call, [
    ...["elsewhere", "moved", "again"].map((each) => move(url(each))),
    { op: "remove", ref: { type: "subscription", id: merged }, meta: { merge_into: ids[3] } },
    { op: "remove", ref: { type: "subscription", id: removed } },
  ]);
  for (const result of results) assert.ok("data" in result);
  const secret = newId();
  const link = { id: newId(), user, secret, kind: "list", title: "t", language: "en", folder: "f" } as const;
  const more = { except: [newId()], ownTitles: true, createdAt: new Date() };
  assert.equal(await server.store.links.add(asUser(user), { ...link, ...more }), "added");
  const sight = { kind: "sight", feed: keyed("again").feed, to: keyed("seen") } as const;
  await server.store.move(asUser(user), sight, new Date());
  await server.store.duplicates.dismiss(asUser(user), newId(), new Date());
  return { Cookie, user, secret };
}

const USER_TABLES = TABLES.filter(({ columns }) => columns[0]?.[0] === "user_id");

test("erasure: an account is deleted → no table has a row of it, others keep theirs", async () => {
  const server = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
  const [ann, bob] = [await createData(server), await createData(server)];
  assert.equal((await server.call("DELETE", "/v1/me", { headers: { Cookie: ann.Cookie } })).status, 204);
  await server.close();
  const all = await readAll(server.databaseUrl);
  const rowsOf = (user: UserId) =>
    Object.fromEntries(
      USER_TABLES.map(({ name }) => [name, (all[name] ?? []).filter(([owner]) => owner === user)] as const),
    );
  const { lists = [], ...others } = rowsOf(ann.user);
  assert.deepEqual(
    lists.map(([, sequence]: Row) => sequence),
    [DELETED],
  );
  for (const [name, rows] of Object.entries(others)) assert.deepEqual(rows, [], name);
  assert.deepEqual(
    (all["link_users"] ?? []).map(([key]) => key),
    [linkKey(bob.secret)],
  );
  const { erasures, ...kept } = rowsOf(bob.user);
  assert.deepEqual(erasures, []);
  for (const [name, rows] of Object.entries(kept)) assert.ok(rows.length > 0, `no rows in ${name}`);
});
