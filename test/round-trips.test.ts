import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { feedUrl } from "./apps/app.ts";
import { startCountingProxy } from "./support/counting-proxy.ts";
import { newUser, start } from "./support/http-accounts.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { ATOMIC, add, newId } from "./support/server.ts";

/** Longer than credentials are cached, so that each request looks them up. */
const NOT_CACHED_MS = 70;

const postgres = await sharedPostgres();
const proxy = await startCountingProxy(postgres.port);
const url = (await postgres.migratedDatabase()).replace(`:${postgres.port}`, `:${proxy.port}`);
const server = await start({ DATABASE_URL: url });
const ann = await newUser(server);

/** Trips to the database and statements of a request. */
async function count(work: () => Promise<unknown>): Promise<string> {
  await sleep(NOT_CACHED_MS);
  const { trips, statements } = await proxy.measure(work);
  return `${trips} trips, ${statements} statements`;
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
  await addFeeds(1);
  await addFeeds(1);
  await getPage();
  assert.deepEqual(
    { one: await count(() => addFeeds(1)), hundred: await count(() => addFeeds(100)), page: await count(getPage) },
    { one: "3 trips, 7 statements", hundred: "3 trips, 7 statements", page: "2 trips, 2 statements" },
  );
});
