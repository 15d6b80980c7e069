import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { asUser } from "../src/accounts/caller.ts";
import { openStore } from "../src/store/open.ts";
import { additionsOf, addTo, idOf, removeFrom } from "./support/lists.ts";
import { start } from "./support/process.ts";
import { temporaryFolder } from "./support/server.ts";

const DAY_MS = 86_400_000;

test("start: removals older than EARMARK_REMOVAL_RETENTION_DAYS → erased, later ones kept", async () => {
  const file = `${temporaryFolder()}/earmark.db`;
  const store = await openStore(`file:${file}`, { connections: 1 });
  const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);
  await addTo(store, asUser(1), additionsOf(1, 3), daysAgo(40));
  await removeFrom(store, asUser(1), idOf(1), daysAgo(31));
  await removeFrom(store, asUser(1), idOf(2), daysAgo(29));
  await store.close();
  await start({ DATABASE_URL: `file:${file}`, EARMARK_REMOVAL_RETENTION_DAYS: "30" });
  const database = new DatabaseSync(file, { readOnly: true });
  const urls = () =>
    database
      .prepare("select feed_url from removals")
      .all()
      .map((row) => row["feed_url"]);
  while (urls().length > 1) await sleep(10);
  assert.deepEqual(urls(), ["https://feeds.example/2"]);
  database.close();
});
