import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AppHttp, basic, feedUrl, mediaUrl, readTimestamp } from "./apps/app.ts";
import { startCountingProxy, type Traffic } from "./support/counting-proxy.ts";
import { newUser, PASSWORD, start } from "./support/http-accounts.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { ATOMIC, add, newId } from "./support/server.ts";

/** Longer than credentials are cached, so that each request looks them up. */
const NOT_CACHED_MS = 70;
const ROUNDS = 4;

const postgres = await sharedPostgres();
/** After a change, it is looked whether feeds of the list have moved; nobody waits for that. */
const LOOKS = /earmark\.feed_urls as former/;
const proxy = await startCountingProxy(postgres.port, LOOKS);
const url = (await postgres.migratedDatabase()).replace(`:${postgres.port}`, `:${proxy.port}`);
const server = await start({ DATABASE_URL: url });
const ann = await newUser(server);

/** Trips to the database and statements of requests: the fewest of several rounds, because others may go on meanwhile. */
async function count(requests: Readonly<Record<string, () => Promise<unknown>>>): Promise<Record<string, string>> {
  const counts = new Map<string, Traffic>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, work] of Object.entries(requests)) {
      await sleep(NOT_CACHED_MS);
      const traffic = await proxy.measure(work);
      // The first round creates rows and prepares statements.
      if (round > 0 && traffic.statements < (counts.get(name)?.statements ?? Number.POSITIVE_INFINITY))
        counts.set(name, traffic);
    }
  }
  return Object.fromEntries(
    [...counts].map(([name, { trips, statements }]) => [name, `${trips} trips, ${statements} statements`]),
  );
}

let feeds = 0;
const newFeeds = (number: number) =>
  Array.from({ length: number }, () => {
    feeds += 1;
    return feedUrl(`feed-${feeds}`);
  });

async function send(method: string, path: string, body?: string): Promise<void> {
  const headers = { Authorization: ann.Authorization, "Content-Type": ATOMIC };
  const response = await server.call(method, path, body === undefined ? { headers } : { headers, body });
  assert.equal(response.status, 200, response.text);
}

const addFeeds = (number: number) =>
  send(
    "POST",
    "/v1/operations",
    JSON.stringify({ "atomic:operations": newFeeds(number).map((feed) => add(newId(), feed)) }),
  );
const getPage = () => send("GET", "/v1/subscriptions?page[size]=25");

test("round trips: adds, pages → the same for any number of feeds", async () => {
  const counts = await count({ one: () => addFeeds(1), hundred: () => addFeeds(100), page: getPage });
  assert.deepEqual(counts, {
    one: "3 trips, 7 statements",
    hundred: "3 trips, 7 statements",
    page: "2 trips, 2 statements",
  });
});

test("round trips: a podcast app → few, and two for a poll without news", async () => {
  const app = new AppHttp(server.port, { "User-Agent": "AntennaPod/3.9.0" });
  const path = `/api/2/subscriptions/${ann.name}/phone.json`;
  await app.ok("POST", `/api/2/auth/${ann.name}/login.json`, "", basic(ann.name, PASSWORD));
  let since = 0;
  // Marks are issued at most every two seconds.
  const poll = async () => {
    server.wait(10_000);
    since = readTimestamp(await app.ok("GET", `${path}?since=${since}`));
  };
  const upload = () => app.ok("POST", path, { add: newFeeds(1), remove: [] });
  let episodes = 0;
  const uploadActions = () =>
    app.ok(
      "POST",
      `/api/2/episodes/${ann.name}.json`,
      Array.from({ length: 100 }, () => {
        episodes += 1;
        return {
          ...{ podcast: feedUrl("feed-1"), episode: mediaUrl(`episode-${episodes}`), device: "phone", action: "play" },
          ...{ timestamp: "2026-01-01T10:00:00", started: 0, position: 10, total: 600 },
        };
      }),
    );
  const counts = await count({ upload, uploadActions, poll, acknowledge: poll, emptyPoll: poll });
  assert.equal(counts["upload"], "9 trips, 31 statements");
  assert.equal(counts["uploadActions"], "6 trips, 23 statements");
  assert.equal(counts["emptyPoll"], "2 trips, 3 statements");
});
