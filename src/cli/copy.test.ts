import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { runInProcess, serveInProcess, withStore } from "../../test/support/commands.ts";
import { addTo, removeFrom } from "../../test/support/lists.ts";
import { play } from "../../test/support/plays.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { start } from "../../test/support/process.ts";
import { temporaryFolder } from "../../test/support/server.ts";
import { asUser } from "../accounts/caller.ts";
import { feedKeyHex } from "../lists/feed-url.ts";
import type { Addition } from "../lists/subscription.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const postgres = await sharedPostgres();
const newFile = () => `file:${temporaryFolder()}/earmark.db`;
const pathOf = (url: string) => url.slice("file:".length);

function additions(count: number): Addition[] {
  return Array.from({ length: count }, (_, number) => {
    const id = `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
    return {
      kind: "add",
      id,
      feedUrl: `https://Feeds.example/é🎧/${number}`,
      normalizedUrl: `feeds.example/${number}`,
    };
  });
}

const MOVED = additions(2)[1] as Addition;
const NEW_URL = "https://new.example/";
const SEEN = { feed: feedKeyHex("seen.example"), url: "https://seen.example/" };

/** Two users with several thousand subscriptions, some removals, and a feed that has moved. */
const from = newFile();
await withStore(from, async (store) => {
  await addTo(store, asUser(1), additions(7_000), NOW);
  await addTo(store, asUser(2 ** 40), additions(10), NOW);
  for (const { id } of additions(7_000).filter((_, index) => index % 500 === 0))
    await removeFrom(store, asUser(1), id, NOW);
  // A feed that moves while an app has it.
  await store.move(asUser(1), { kind: "sight", feed: feedKeyHex("feeds.example/1"), to: SEEN }, NOW);
  await store.move(asUser(1), { kind: "tell", client: "phone", since: 0, from: 0 }, NOW);
  await store.change(
    asUser(1),
    [{ kind: "update", id: MOVED.id, feedUrl: NEW_URL, normalizedUrl: "new.example" }],
    NOW,
  );
  await store.apps.changeFollowsMoves(asUser(1), false, NOW);
  await store.duplicates.dismiss(asUser(1), MOVED.id, NOW);
  await play(store, [{ podcast: NEW_URL, name: "one", title: "One", at: NOW }], 1);
});

const everything = (url: string) =>
  withStore(url, async (store) => ({
    ann: await store.page(1, { offset: 0, size: 10_000 }),
    middle: await store.page(1, { offset: 3_333, size: 10 }),
    bob: await store.page(2 ** 40, { offset: 0, size: 10_000 }),
    // By the former URL.
    moved: await store.find(1, [{ kind: "feed", normalizedUrl: MOVED.normalizedUrl }]),
    movedFeeds: await store.apps.movedFeeds(1, "phone"),
    followsMoves: [await store.apps.followsMoves(1), await store.apps.followsMoves(2 ** 40)],
    dismissals: await store.duplicates.dismissals(1),
    actions: await store.apps.actions(1, { after: 0, upTo: 10, limit: 10, feed: undefined }),
  }));

/** Waits for ten seconds, while other tests run. */
const waiting = runInProcess(["serve"], { DATABASE_URL: "postgres://me:canary@127.0.0.1:1/earmark" });

test("copy: SQLite to PostgreSQL and back → the same content", async () => {
  const [there, back] = [await postgres.database(), newFile()];
  const expected = await everything(from);
  assert.equal(expected.ann.total, 6_986);
  assert.deepEqual([expected.moved[0]?.id, expected.moved[0]?.feedUrl], [MOVED.id, NEW_URL]);
  assert.deepEqual(
    expected.movedFeeds.map(({ url }) => url),
    [MOVED.feedUrl],
    "the URL that the app has",
  );
  assert.deepEqual(expected.followsMoves, [false, true]);
  assert.deepEqual(
    expected.dismissals.map(({ id }) => id),
    [MOVED.id],
  );
  assert.deepEqual(
    expected.actions.map(({ title }) => title),
    ["One"],
  );
  for (const [source, target] of [
    [from, there],
    [there, back],
  ] as const) {
    const { code, stdout, stderr } = await runInProcess(["copy", "--from", source, "--to", target]);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, /^Copied 7022 rows from .* to .*; row counts and checksums match\.\n$/);
    if (target === back) assert.deepEqual(readdirSync(dirname(pathOf(back))).sort(), ["earmark.db", "earmark.db-lock"]);
    assert.deepEqual(await everything(target), expected);
  }
  await withStore(back, async (store) => {
    const [again, added] = await addTo(
      store,
      asUser(1),
      [...additions(2).slice(1), { ...(additions(1)[0] as Addition) }],
      NOW,
    );
    assert.deepEqual(
      [again && "code" in again, added && "code" in added],
      [true, false],
      "the copy knows which feeds it has",
    );
  });
});

test("copy: the target is not empty → rejected, unchanged", async () => {
  for (const target of [newFile(), await postgres.database()]) {
    await withStore(target, (store) => addTo(store, asUser(1), additions(1), NOW));
    const { code, stderr } = await runInProcess(["copy", "--from", from, "--to", target]);
    assert.equal(code, 1);
    assert.match(stderr, /is not empty; nothing was copied/);
    assert.equal((await everything(target)).ann.total, 1);
  }
});

test("copy: it fails halfway → the target stays empty", async () => {
  const source = newFile();
  copyFileSync(pathOf(from), pathOf(source));
  // Rows that the target rejects: the same feed twice.
  const database = new DatabaseSync(pathOf(source));
  database.exec(
    "drop index subscriptions_by_feed; update subscriptions set feed = zeroblob(16) where sequence between 6002 and 6003",
  );
  database.close();
  for (const target of [newFile(), await postgres.database()]) {
    const { code } = await runInProcess(["copy", "--from", source, "--to", target]);
    assert.equal(code, 1);
    assert.equal((await everything(target)).ann.total, 0);
    if (target.startsWith("file:")) assert.equal(existsSync(`${pathOf(target)}-copying`), false);
  }
});

test("copy: an invalid source or target → an error that names it", async () => {
  const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [["copy", "--from", newFile(), "--to", newFile()], 1, /No database at/],
    [
      ["copy", "--from", await postgres.database(), "--to", newFile()],
      1,
      /does not have the tables of this Earmark version.*earmark migrate/,
    ],
    [["copy", "--from", from, "--to", from], 1, /are the same database/],
    [["copy", "--from", from], 64, /--to must be file:PATH/],
    [["copy", "--from", "mysql://x", "--to", from], 64, /--from must be file:PATH/],
    [["copy", "--distribute"], 64, /unknown option for "copy": --distribute/],
  ];
  for (const [args, code, message] of cases) {
    const ended = await runInProcess(args);
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, message);
  }
  const server = await start({ DATABASE_URL: from });
  const { code, stderr } = await runInProcess(["copy", "--from", from, "--to", newFile()]);
  server.child.kill("SIGKILL");
  assert.equal(code, 1);
  assert.match(stderr, /Another Earmark process is using/);
});

test("migrate: a new or current database → up to date", async () => {
  for (const url of [newFile(), await postgres.database()]) {
    for (let time = 0; time < 2; time += 1) {
      const { code, stderr } = await runInProcess(["migrate"], { DATABASE_URL: url });
      assert.equal(code, 0, stderr);
      assert.match(stderr, /is up to date/);
    }
  }
});

test("migrate --distribute: no Citus → an error", async () => {
  const plain = await runInProcess(["migrate", "--distribute"], { DATABASE_URL: await postgres.database() });
  assert.equal(plain.code, 1);
  assert.match(plain.stderr, /has no Citus extension/);
  const file = await runInProcess(["migrate", "--distribute"], { DATABASE_URL: newFile() });
  assert.equal(file.code, 1);
  assert.match(file.stderr, /A SQLite file cannot be distributed/);
});

test("healthcheck: a running or stopped server → exit code 0 or 1", async () => {
  const server = await serveInProcess({ DATABASE_URL: newFile() });
  const settings = { PORT: String(server.port) };
  assert.deepEqual(await runInProcess(["healthcheck"], settings), { code: 0, stdout: "", stderr: "ready\n" });
  assert.equal(
    (await runInProcess(["healthcheck"], { ...settings, HOST: "0.0.0.0", EARMARK_ALLOW_ANONYMOUS: "true" })).code,
    0,
  );
  await server.stop();
  const { code, stderr } = await runInProcess(["healthcheck"], settings);
  assert.equal(code, 1);
  assert.match(stderr, /^not ready: .* is unreachable/);
});

test("serve: PostgreSQL → ready, and no password in the log", async () => {
  const url = (await postgres.database()).replace("earmark@", "earmark:canary@");
  const server = await serveInProcess({ DATABASE_URL: url });
  assert.doesNotMatch(server.output(), /canary/);
  const response = await fetch(`${server.url}/readyz`);
  assert.equal(response.status, 200);
  assert.equal(await server.stop(), 0);
});

test("serve: PostgreSQL is unreachable → waits, then fails with an error that does not contain the password", async () => {
  const { code, stderr } = await waiting;
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^Waiting for the database at postgres:\/\/127\.0\.0\.1:1\/earmark…\nearmark: Cannot use the database at/,
  );
  assert.doesNotMatch(stderr, /canary/);
});
