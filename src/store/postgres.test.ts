import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { startPostgres, suiteDatabase } from "../../test/postgres.ts";
import { startProxy, type Wire } from "../../test/proxy.ts";
import type { Store } from "../account-store.ts";
import {
  AccessRevoked,
  asUser,
  type Draft,
  isRefusal,
  type Outcome,
  StoreUnavailable,
  type SubscriptionStore,
} from "../subscriptions.ts";
import { UserError } from "../user-error.ts";
import { describeArchive, fill } from "./archive.suite.ts";
import { describeStore } from "./contract.suite.ts";
import { engineFor, inspectDatabase, openStore } from "./engines.ts";
import type { StoreOptions } from "./store-options.ts";
import { TABLES } from "./tables.ts";

const NOW = new Date();
const USER = 1;
const server = await startPostgres(["max_connections=40"]);

async function open(url: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openStore(url, { connections: 5, ...options });
  after(() => store.close());
  return store;
}

/** A store that reaches its server over a wire that can be cut, and one that reaches it straight. */
async function openOverProxy(): Promise<{
  store: Store;
  other: Store;
  proxy: Wire;
  url: string;
}> {
  const proxy = await startProxy(server.port);
  const url = await server.database();
  const store = await open(url.replace(`:${server.port}`, `:${proxy.port}`));
  return { store, other: await open(url), proxy, url };
}

/** Takes connections that nobody else can have. */
async function occupy(url: string, count: number): Promise<pg.Client[]> {
  const hogs = Array.from({ length: count }, () => new pg.Client({ connectionString: url }));
  await Promise.all(hogs.map((hog) => hog.connect()));
  return hogs;
}

function drafts(from: number, count = 1): Draft[] {
  return Array.from({ length: count }, (_, index) => {
    const number = from + index;
    const id = `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
    return { id, guid: id, feedUrl: `https://feeds.example/${number}`, feed: `feeds.example/${number}` };
  });
}
const idOf = (number: number) => drafts(number)[0]?.id ?? "";
const wordOf = (outcome: Outcome | undefined) =>
  outcome === undefined || isRefusal(outcome) ? outcome?.refused : "added";
const total = async (store: SubscriptionStore) => (await store.page(USER, { offset: 0, size: 1 })).total;
const isUnavailable = (error: unknown) => error instanceof StoreUnavailable;
const isRefused = (error: unknown) => error instanceof StoreUnavailable && !error.unknown;
const nameOf = (url: string) => new URL(url).pathname.slice(1);

describeStore("PostgreSQL", await open(await suiteDatabase(server)));
describeArchive("PostgreSQL", () => suiteDatabase(server));

test("many processes may start at once on an empty database", async () => {
  const url = await server.database();
  const stores = await Promise.all(Array.from({ length: 8 }, () => open(url, { connections: 1 })));
  await Promise.all(stores.map((store, index) => store.add(asUser(USER), drafts(index), NOW)));
  for (const store of stores) assert.equal(await total(store), 8);
  await Promise.all(stores.map((store) => store.close()));
});

test("a database of a newer version is refused", async () => {
  const url = await server.database();
  await (await open(url)).close();
  await server.query("update earmark.schema set version = 99", new URL(url).pathname.slice(1));
  await assert.rejects(
    open(url),
    (error: Error) => error instanceof UserError && error.message.includes("newer Earmark"),
  );
});

test("a database that is not there, or a wrong password, is named without the password", async () => {
  const refused = async (url: string) => {
    const error = await open(url).then(
      () => assert.fail("should be refused"),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof UserError, String(error));
    assert.match(error.message, /Check DATABASE_URL/);
    assert.doesNotMatch(error.message, /canary/);
  };
  await refused(`postgres://earmark:canary@127.0.0.1:${server.port}/nothing`);
  await refused(`postgres://nobody:canary@127.0.0.1:${server.port}/postgres`);
});

test("a server that does not sync is refused, one that syncs late is warned about", async () => {
  const reckless = await startPostgres(["fsync=off"]);
  await assert.rejects(
    open(await reckless.database()),
    (error: Error) => error instanceof UserError && error.message.includes("fsync=off"),
  );
  const url = await server.database();
  const name = new URL(url).pathname.slice(1);
  await server.query(`alter database ${name} set synchronous_commit = off`);
  const warnings: string[] = [];
  await open(url, { onWarning: (warning) => warnings.push(warning) });
  assert.match(warnings.join(), /synchronous_commit=off/);
});

test("a database is looked at without changing it", async () => {
  const url = await server.database();
  const states = async () => (await inspectDatabase(url)).map(({ state, what }) => `${state}: ${what}`);
  const [answers, schema, clock, free] = await states();
  assert.match(answers ?? "", /^ok: PostgreSQL \d+\.\d+ answers and can be written to$/);
  assert.equal(schema, "ok: The next start brings the database from schema 0 to 3");
  assert.equal(clock, "ok: Its clock agrees with ours");
  assert.match(free ?? "", /^ok: \d+ more connections are free$/);
  assert.deepEqual(await engineFor(url).migrate(url, { distribute: false }), { distributed: undefined });
  assert.equal((await states())[1], "ok: The database is of this version (schema 3)");
  const name = new URL(url).pathname.slice(1);
  await server.query("update earmark.schema set version = 4", name);
  assert.equal((await states())[1], "wrong: The database was made by a newer Earmark (schema 4, this one knows 3)");
  await server.query("update earmark.schema set version = 3", name);
  await server.query(`alter database ${name} set synchronous_commit = off`);
  assert.match((await states())[2] ?? "", /^warning: PostgreSQL runs with synchronous_commit=off/);
});

test("a clock that is off, and too few connections, are warned about", async (t) => {
  const url = await server.database();
  const { now } = Date;
  t.mock.method(Date, "now", () => now() + 5_000);
  const [row] = await server.query("select 40 - count(*)::int as free from pg_stat_activity");
  const hogs = await occupy(url, Number(row?.["free"]) - 5);
  const findings = (await inspectDatabase(url)).slice(2);
  await Promise.all(hogs.map((hog) => hog.end()));
  assert.deepEqual(findings[0], {
    state: "warning",
    what: "Its clock is 5 s off ours",
    advice: "Let both follow a time server.",
  });
  assert.equal(findings[1]?.state, "warning");
  assert.match(findings[1]?.what ?? "", /^Only -?\d more connections are free$/);
  assert.equal(findings[1]?.advice, "Raise max_connections, or use PgBouncer.");
});

test("nobody stays connected to a database that was prepared, looked at, or holds nothing to copy", async () => {
  const url = await server.database();
  await assert.rejects(
    engineFor(url)
      .archive(url)
      .then((archive) => archive.read()),
    (error: Error) =>
      error instanceof UserError &&
      error.message.startsWith("There is no Earmark of this version at ") &&
      error.message.endsWith(`/${nameOf(url)}.`),
  );
  await engineFor(url).migrate(url, { distribute: false });
  await inspectDatabase(url);
  const connected = `select 1 from pg_stat_activity where datname = '${nameOf(url)}'`;
  for (let tries = 0; tries < 200 && (await server.query(connected)).length > 0; tries += 1) await sleep(10);
  assert.deepEqual(await server.query(connected), []);
});

test("while a database is filled nobody else writes to it, and what is copied bears no mark", async () => {
  const url = await server.database();
  const target = await (await engineFor(url).archive(url)).replaceEmpty();
  for (const { name } of TABLES) {
    const write = `lock table earmark.${name} in row exclusive mode nowait`;
    await assert.rejects(server.query(`begin; ${write}`, nameOf(url)), /could not obtain lock/, name);
  }
  await target.close();
  await fill(url, 2);
  for (const table of ["subscriptions", "removals"]) {
    const marks = await server.query(`select distinct written_by::int as mark from earmark.${table}`, nameOf(url));
    assert.deepEqual(marks, [{ mark: 0 }]);
  }
});

test("a database that was made newer or older meanwhile is not ready, and one that is damaged is not read", async () => {
  const url = await server.database();
  const store = await open(url);
  for (const version of [2, 4]) {
    await server.query(`update earmark.schema set version = ${version}`, nameOf(url));
    await assert.rejects(store.ready(), isUnavailable);
  }
  await store.add(asUser(USER), drafts(0, 3), NOW);
  await server.query("delete from earmark.subscriptions where sequence = 2", nameOf(url));
  for (const offset of [0, 1]) await assert.rejects(store.page(USER, { offset, size: 10 }), isUnavailable);
});

test("what waits is counted, is written before the store closes, and nothing is taken afterwards", async () => {
  const url = await server.database();
  const store = await open(url);
  const adding = store.add(asUser(USER), drafts(0, 3), NOW);
  const removing = store.remove(asUser(USER), idOf(1), NOW);
  const closing = store.close();
  await assert.rejects(store.add(asUser(USER), drafts(9), NOW), isUnavailable);
  assert.deepEqual((await adding).map(wordOf), ["added", "added", "added"]);
  assert.equal(await removing, true);
  await closing;
  assert.equal(await total(await open(url)), 2);
});

test("a database that is no cluster is not spread, and it is said why", async () => {
  const url = await server.database();
  await assert.rejects(
    engineFor(url).migrate(url, { distribute: true }),
    (error: Error) => error instanceof UserError && error.message.includes("create extension citus"),
  );
});

/** How many statements go over the wire while this is done. */
async function statementsOf(proxy: Wire, work: () => Promise<unknown>): Promise<number> {
  const before = proxy.statements();
  await work();
  return proxy.statements() - before;
}

/** Statements that read what is there, of a group that does so before it writes, and of one that does not. */
const READ = 5;
const READ_FIRST = READ + 3;
const UNREAD = 4;

test("a batch takes as many statements as a single addition, and fewer while nothing stands against it", async () => {
  const { store, proxy } = await openOverProxy();
  const adding = (from: number, count?: number) =>
    statementsOf(proxy, () => store.add(asUser(USER), drafts(from, count), NOW));
  assert.equal(await adding(0), READ + 2 + READ_FIRST, "the first of all makes the list");
  assert.equal(await adding(1), UNREAD);
  assert.equal(await adding(2, 5_000), UNREAD);
  assert.equal(await adding(5_001, 2), UNREAD + READ_FIRST, "tried, taken back, and done again");
  assert.equal(await adding(6_000, 5_000), READ_FIRST, "not tried after a conflict");
  assert.equal(await adding(11_000), UNREAD, "tried again after a group without one");
  assert.equal(await total(store), 10_004);
});

test("a removal takes two statements more than an addition, and what changes nothing writes nothing", async () => {
  const { store, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  const removing = () => statementsOf(proxy, () => store.remove(asUser(USER), idOf(0), NOW));
  assert.equal(await removing(), READ_FIRST + 2);
  assert.equal(await removing(), READ + 1);
  const taken = [{ ...(drafts(10)[0] as Draft), id: idOf(1) }];
  assert.equal(await statementsOf(proxy, () => store.add(asUser(USER), taken, NOW)), UNREAD + READ + 1);
  assert.equal(
    await statementsOf(proxy, () => store.add(asUser(USER), drafts(11), NOW)),
    READ_FIRST,
    "an id in use is a conflict",
  );
});

test("what collides with another of its batch, or comes with a removal, is not tried without reading", async () => {
  const { store, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  const [four, five, six] = drafts(4, 3) as [Draft, Draft, Draft];
  const wished = [
    four,
    { ...five, feed: four.feed },
    { ...six, id: four.id },
    { ...six, ...drafts(0)[0], id: four.id },
  ];
  let outcomes: Outcome[] = [];
  const statements = await statementsOf(proxy, async () => {
    outcomes = await store.add(asUser(USER), wished, NOW);
  });
  assert.deepEqual(outcomes.map(wordOf), ["added", "already-subscribed", "id-in-use", "already-subscribed"]);
  assert.equal(statements, READ_FIRST);
  await store.add(asUser(USER), drafts(10), NOW);
  const together = await statementsOf(proxy, async () => {
    const answers = await Promise.all([
      store.add(asUser(USER), drafts(11), NOW),
      store.add(asUser(USER), drafts(12), NOW),
      store.remove(asUser(USER), idOf(12), NOW),
      store.add(asUser(USER), drafts(12), NOW),
    ]);
    assert.deepEqual(
      answers.flat().map((answer) => (typeof answer === "boolean" ? answer : wordOf(answer))),
      ["added", "added", true, "added"],
    );
  });
  assert.equal(together, READ_FIRST + 2, "a removal and its gaps are two more");
});

test("what was tried without reading and taken back leaves no trace", async () => {
  const { store, url } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  const wished = [...drafts(10, 2), ...drafts(1), ...drafts(12, 2), { ...(drafts(20)[0] as Draft), id: idOf(2) }];
  const outcomes = await store.add(asUser(USER), wished, NOW);
  assert.deepEqual(outcomes.map(wordOf), ["added", "added", "already-subscribed", "added", "added", "id-in-use"]);
  await store.add(asUser(USER), drafts(30), NOW);
  await store.add(asUser(USER), drafts(31, 2), NOW);
  const name = new URL(url).pathname.slice(1);
  assert.deepEqual(
    await server.query("select sequence::int, id from earmark.subscriptions order by sequence", name),
    [0, 1, 2, 10, 11, 12, 13, 30, 31, 32].map((number, index) => ({ sequence: index + 1, id: idOf(number) })),
  );
  assert.deepEqual(await server.query("select sequence::int, total::int from earmark.lists", name), [
    { sequence: 10, total: 10 },
  ]);
});

test("processes that add to one list at once add each feed once, number without holes, and keep the order of batches", async () => {
  const url = await server.database();
  const stores = [await open(url), await open(url), await open(url)];
  for (const [index, store] of stores.entries()) await store.add(asUser(USER), drafts(index), NOW);
  const added: string[][] = [];
  await Promise.all(
    stores.map(async (store, side) => {
      for (let round = 0; round < 40; round += 1) {
        // Mostly one's own, and some that the others want as well.
        const isShared = round % 5 === 4;
        const from = isShared ? 100_000 + 100 * round : 1_000 * (1 + round) + 100 * side;
        const batch = side === 1 ? drafts(from, 20).toReversed() : drafts(from, 20);
        const outcomes = await store.add(asUser(USER), batch, NOW);
        const taken = batch.filter((_, index) => wordOf(outcomes[index]) === "added").map(({ id }) => id);
        if (!isShared) assert.equal(taken.length, 20);
        added.push(taken);
      }
    }),
  );
  const rows = await server.query(
    "select sequence::int, id from earmark.subscriptions order by sequence",
    new URL(url).pathname.slice(1),
  );
  const places = new Map(rows.map(({ id }, index) => [String(id), index]));
  assert.deepEqual(
    rows.map(({ sequence }) => sequence),
    rows.map((_, index) => index + 1),
  );
  assert.equal(rows.length, 3 + 3 * 32 * 20 + 8 * 20);
  assert.equal(added.flat().length, rows.length - 3);
  for (const ids of added) {
    const [first = 0] = ids.map((id) => places.get(id));
    assert.deepEqual(
      ids.map((id) => places.get(id)),
      ids.map((_, index) => first + index),
    );
  }
  for (const store of stores) assert.equal(await total(store), rows.length);
});

test("a user whom another process deletes between two additions is gone, and nothing is left", async () => {
  const { store, other, url } = await openOverProxy();
  const account = { name: "ann", issuer: "", password: "hash", isOwner: false, invitation: undefined };
  const user = Number(await other.accounts.create(4_711, account, NOW));
  await store.add(asUser(user), drafts(0, 3), NOW);
  await store.add(asUser(user), drafts(3, 3), NOW);
  assert.equal(await other.accounts.delete(asUser(user), NOW), true);
  await assert.rejects(store.add(asUser(user), drafts(6, 3), NOW), AccessRevoked);
  const name = new URL(url).pathname.slice(1);
  assert.deepEqual(await server.query("select * from earmark.subscriptions", name), []);
  assert.deepEqual(await server.query("select sequence::int, total::int from earmark.lists", name), [
    { sequence: -1, total: 0 },
  ]);
});

test("a list that was there and is not any more is begun anew", async () => {
  const { store, url } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  await store.add(asUser(USER), drafts(3, 3), NOW);
  await server.query("delete from earmark.subscriptions; delete from earmark.lists", new URL(url).pathname.slice(1));
  assert.deepEqual((await store.add(asUser(USER), drafts(2, 3), NOW)).map(wordOf), ["added", "added", "added"]);
  const { items } = await store.page(USER, { offset: 1, size: 10 });
  assert.deepEqual(
    items.map(({ id }) => id),
    [idOf(3), idOf(4)],
  );
});

test("a page is found by its place, also with the plan that the server keeps", async () => {
  const url = await server.database();
  const store = await openStore(url, { connections: 1 });
  for (const user of [USER, 2, 3]) await store.add(asUser(user), drafts(0, 10_000), NOW);
  await server.query("analyze", nameOf(url));
  const readRows = async () => {
    const [row] = await server.query(
      `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read from pg_stat_user_tables
       where schemaname = 'earmark' and relname = 'subscriptions'`,
      nameOf(url),
    );
    return Number(row?.["read"]);
  };
  await store.close();
  const before = await readRows();
  const reader = await openStore(url, { connections: 1 });
  for (let round = 0; round < 10; round += 1) {
    for (const offset of [0, 5_000, 9_975]) assert.equal((await reader.page(2, { offset, size: 25 })).items.length, 25);
  }
  // What was read is told when the connection ends.
  await reader.close();
  let read = 0;
  for (let tries = 0; tries < 100 && read === 0; tries += 1) {
    await sleep(50);
    read = (await readRows()) - before;
  }
  assert.ok(read >= 30 * 25 && read < 60 * 25, `${read} rows were read for ${30 * 25}`);
});

test("a page takes one statement, and two after another process has removed something", async () => {
  const { store, other, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 5_000), NOW);
  let left = drafts(0, 5_000).map(({ id }) => id);
  const reading = (offset: number) =>
    statementsOf(proxy, async () => {
      const page = await store.page(USER, { offset, size: 100 });
      assert.deepEqual(
        page.items.map(({ id }) => id),
        left.slice(offset, offset + 100),
      );
      assert.equal(page.total, left.length);
    });
  const remove = async (from: SubscriptionStore, ...numbers: number[]) => {
    for (const number of numbers) assert.equal(await from.remove(asUser(USER), idOf(number), NOW), true);
    left = left.filter((id) => !numbers.some((number) => idOf(number) === id));
  };
  assert.equal(await reading(4_000), 1);
  await remove(store, 7, 8, 4_500);
  assert.equal(await reading(4_000), 1, "we know of our own removals");
  await remove(other, 9, 300, 4_501);
  assert.equal(await reading(4_000), 2);
  assert.equal(await reading(2_000), 1);
  await remove(other, 10);
  assert.equal(await reading(0), 1, "the first page needs no gaps, and learns of them");
  assert.equal(await reading(4_900), 1);
  for (let offset = 0; offset < 5_000; offset += 100) assert.equal(await reading(offset), 1);
});

test("pages are right also when a list has fewer gaps than it had, as after a backup was restored", async () => {
  const { store, other, url } = await openOverProxy();
  const firstOf = async (from: SubscriptionStore, offset: number) =>
    (await from.page(USER, { offset, size: 10 })).items[0]?.id;
  await store.add(asUser(USER), drafts(0, 400), NOW);
  await Promise.all(drafts(0, 300).map(({ id }) => store.remove(asUser(USER), id, NOW)));
  for (const each of [store, other]) assert.equal(await firstOf(each, 50), idOf(350));
  await server.query(
    `delete from earmark.subscriptions; delete from earmark.gaps; delete from earmark.removals;
     update earmark.lists set sequence = 400, total = 400;
     insert into earmark.subscriptions (user_id, sequence, id, feed, subscribed_at, written_by, feed_url)
     select 1, number, ('00000000-0000-4000-8000-' || lpad(to_hex(number - 1), 12, '0'))::uuid, gen_random_uuid(), 0, 0, 'x'
     from generate_series(1, 400) as number`,
    new URL(url).pathname.slice(1),
  );
  assert.equal(await firstOf(store, 0), idOf(0));
  assert.equal(await firstOf(other, 200), idOf(200));
});

for (const [way, from, words] of [
  ["without reading", 3, ["added", "added"]],
  ["after reading", 2, ["already-subscribed", "added"]],
] as const) {
  for (const isAlone of [true, false]) {
    const whose = isAlone ? "" : ", though another process has written meanwhile,";
    const add = async (store: SubscriptionStore, other: SubscriptionStore) => {
      await store.add(asUser(USER), drafts(0, 3), NOW);
      if (!isAlone) await other.add(asUser(USER), drafts(100, 7), NOW);
    };
    const expected = (isAlone ? 3 : 10) + words.filter((word) => word === "added").length;

    test(`a commit ${way} that never reached the server is${whose} carried out again`, async () => {
      const { store, other, proxy } = await openOverProxy();
      await add(store, other);
      const cut = proxy.cutAtCommit("before");
      assert.deepEqual((await store.add(asUser(USER), drafts(from, 2), NOW)).map(wordOf), words);
      await cut;
      assert.equal(await total(other), expected);
    });

    test(`a commit ${way} whose answer was lost is${whose} found to have happened, and not carried out again`, async () => {
      const { store, other, proxy } = await openOverProxy();
      await add(store, other);
      const cut = proxy.cutAtCommit("after");
      assert.deepEqual((await store.add(asUser(USER), drafts(from, 2), NOW)).map(wordOf), words);
      await cut;
      assert.equal(
        wordOf((await other.add(asUser(USER), drafts(200), NOW))[0]),
        "added",
        "the list is free for others",
      );
      assert.equal(await total(other), expected + 1);
    });
  }
}

/** Lets each addition to the database wait or fail when it is carried out, or only when it is committed. */
async function troubleAdditions(url: string, when: "at once" | "at commit", trouble: string): Promise<void> {
  const trigger =
    when === "at once"
      ? "trigger trouble before insert on earmark.subscriptions for each statement"
      : "constraint trigger trouble after insert on earmark.subscriptions deferrable initially deferred for each row";
  await server.query(
    `create sequence tries;
     create function trouble() returns trigger language plpgsql as $$ begin ${trouble}; return new; end $$;
     create ${trigger} execute function trouble()`,
    nameOf(url),
  );
}
const fails = (code: string) => `raise exception 'no' using errcode = '${code}'`;
/** Resembles a lost connection (08) and is none. */
const FINAL = "22008";

test("a commit that is still under way when its connection is lost is waited for, and no other user", async () => {
  const { store, other, proxy, url } = await openOverProxy();
  for (const user of [USER, 2]) await store.add(asUser(user), drafts(0), NOW);
  await troubleAdditions(url, "at commit", "perform pg_sleep(0.4)");
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; select 1 from earmark.lists where user_id = 2 for update");
  const adding = store.add(asUser(USER), drafts(1), NOW);
  const committing = `select 1 from pg_stat_activity where datname = '${nameOf(url)}' and query = 'commit' and state = 'active'`;
  while ((await server.query(committing)).length === 0) await sleep(5);
  proxy.mode = "refuse";
  proxy.mode = "pass";
  assert.deepEqual((await adding).map(wordOf), ["added"]);
  await blocker.end();
  assert.equal(await total(other), 2);
});

test("a commit that never reached the server and is then refused is known not to have happened", async () => {
  const { store, proxy, url } = await openOverProxy();
  await store.add(asUser(USER), drafts(0), NOW);
  const cut = proxy.cutAtCommit("before", () => troubleAdditions(url, "at once", fails(FINAL)));
  await assert.rejects(store.add(asUser(USER), drafts(1), NOW), isRefused);
  await cut;
});

test("what the server refuses for good is not tried again", async () => {
  const { store, proxy, url } = await openOverProxy();
  await store.add(asUser(USER), drafts(0), NOW);
  await troubleAdditions(url, "at once", fails(FINAL));
  const refused = async (user: number) => {
    // A connection that saw an error is replaced before it is counted.
    await total(store);
    return statementsOf(proxy, () => assert.rejects(store.add(asUser(user), drafts(1), NOW), isRefused));
  };
  assert.equal(await refused(USER), UNREAD - 1);
  assert.equal(await refused(2), READ + 2 + READ_FIRST, "the first of a user");
});

test("where a transaction does not begin, what follows it is stored whole or not at all, and is told from what others have", async () => {
  const url = await server.database();
  const store = await open(url, { connections: 1 });
  await store.add(asUser(USER), drafts(0, 3), NOW);
  const refuseNextBegin = () => {
    const { query } = pg.Client.prototype;
    pg.Client.prototype.query = function (this: pg.Client, ...values: unknown[]) {
      if (values[0] !== "begin") return Reflect.apply(query, this, values);
      pg.Client.prototype.query = query;
      return Reflect.apply(query, this, ["do $$ begin raise exception 'no' using errcode = '53200'; end $$"]);
    } as typeof query;
  };
  refuseNextBegin();
  assert.deepEqual((await store.add(asUser(USER), drafts(3, 2), NOW)).map(wordOf), ["added", "added"]);
  assert.equal(await total(store), 5);
  refuseNextBegin();
  assert.deepEqual((await store.add(asUser(USER), drafts(4, 2), NOW)).map(wordOf), ["already-subscribed", "added"]);
  const { items, total: count } = await store.page(USER, { offset: 0, size: 100 });
  assert.deepEqual([items.length, count], [6, 6]);
  await store.add(asUser(USER), drafts(10), NOW);
  await server.query("delete from earmark.subscriptions; delete from earmark.lists", nameOf(url));
  refuseNextBegin();
  assert.deepEqual((await store.add(asUser(USER), drafts(0), NOW)).map(wordOf), ["added"]);
});

test("a connection that is lost while something is added without reading leaves nothing, and it is done again", async () => {
  const { store, other, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  proxy.mode = "stall";
  setTimeout(() => {
    proxy.mode = "refuse";
    proxy.mode = "pass";
  }, 100);
  assert.deepEqual((await store.add(asUser(USER), drafts(3, 2), NOW)).map(wordOf), ["added", "added"]);
  assert.equal(await total(other), 5);
});

test("a removal whose commit was lost is settled like an addition", async () => {
  const { store, other, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  for (const [number, when] of (["before", "after"] as const).entries()) {
    const cut = proxy.cutAtCommit(when);
    assert.equal(await store.remove(asUser(USER), idOf(number), NOW), true);
    await cut;
    assert.equal(await other.find(USER, idOf(number)), undefined);
  }
  await store.add(asUser(USER), drafts(3), NOW);
  const cut = proxy.cutAtCommit("before", async () => {
    await other.remove(asUser(USER), idOf(2), NOW);
  });
  assert.equal(await store.remove(asUser(USER), idOf(3), NOW), true);
  await cut;
  assert.equal(await total(other), 0, "another process has removed something else meanwhile");
});

test("what was done to an account is not done twice when the answer was lost", async () => {
  const { store, proxy, url } = await openOverProxy();
  const { accounts } = store;
  const lose = async <T>(work: () => Promise<T>) => {
    const cut = proxy.cutAtCommit("after");
    const answer = await work();
    await cut;
    return answer;
  };
  const account = { name: "ann", issuer: "", password: "hash", isOwner: false, invitation: undefined };
  assert.equal(await lose(() => accounts.create(4_711, account, NOW)), 4_711);
  assert.equal(
    await lose(() => accounts.setPassword(asUser(4_711), { password: "other", expectedHash: "hash" }, NOW)),
    true,
  );
  const credential = { id: idOf(1), kind: "token", user: 4_711, scope: "write", label: "", createdAt: NOW } as const;
  const token = { ...credential, usedAt: undefined, expiresAt: undefined };
  const added = { credential: token, hash: Buffer.alloc(32, 1).toString("base64url"), atMost: 1 };
  assert.equal(await lose(() => accounts.addCredential(asUser(4_711), added)), "added");
  assert.equal((await accounts.listCredentials(4_711, "token")).length, 1);
  const kept = await server.query("select used_at::int, expires_at::int from earmark.credentials", nameOf(url));
  assert.deepEqual(kept, [{ used_at: 0, expires_at: 0 }], "never is the same on every engine");
  assert.equal(await lose(() => accounts.removeCredential(asUser(4_711), "token", idOf(1), NOW)), true);
  assert.equal(await lose(() => accounts.delete(asUser(4_711), NOW)), true);
  assert.equal(await accounts.delete(asUser(4_711), NOW), false);
});

/** An account with some subscriptions and two tokens, and the callers that come with them. */
async function newCallers(store: Store) {
  const account = { name: "ann", issuer: "", password: "hash", isOwner: false, invitation: undefined };
  assert.equal(await store.accounts.create(4_711, account, NOW), 4_711);
  const callerOf = async (number: number) => {
    const credential = { id: idOf(number), kind: "token", user: 4_711, scope: "write", label: "" } as const;
    const token = { ...credential, createdAt: NOW, usedAt: undefined, expiresAt: undefined };
    const hash = Buffer.alloc(32, number).toString("base64url");
    assert.equal(await store.accounts.addCredential(asUser(4_711), { credential: token, hash, atMost: 9 }), "added");
    return { ...asUser(4_711), credentialHash: hash };
  };
  // One after the other, over one connection: a second one would not notice that the first is cut.
  const callers = { first: await callerOf(1), second: await callerOf(2) };
  await store.add(asUser(4_711), drafts(0, 3), NOW);
  return callers;
}

test("access: a caller with a credential → one statement more, and no more turns", async () => {
  const { store, proxy } = await openOverProxy();
  const { first } = await newCallers(store);
  await store.add(first, drafts(10), NOW);
  assert.equal(await statementsOf(proxy, () => store.add(first, drafts(11, 100), NOW)), UNREAD + 1);
  assert.equal(await statementsOf(proxy, () => store.remove(first, idOf(10), NOW)), READ_FIRST + 3);
});

for (const [way, from] of [
  ["without reading", 3],
  ["after reading", 2],
] as const) {
  test(`access: revoked while a commit ${way} is lost on its way → nothing is written`, async () => {
    const { store, other, proxy } = await openOverProxy();
    const { first } = await newCallers(store);
    const cut = proxy.cutAtCommit("before", async () => {
      assert.equal(await other.accounts.removeCredential(asUser(4_711), "token", idOf(1), NOW), true);
    });
    await assert.rejects(store.add(first, drafts(from, 2), NOW), AccessRevoked);
    await cut;
    assert.equal((await other.page(4_711, { offset: 0, size: 1 })).total, 3);
  });

  test(`access: revoked after a commit ${way} whose answer was lost → it is told as done`, async () => {
    const { store, other, proxy } = await openOverProxy();
    const { first } = await newCallers(store);
    const cut = proxy.cutAtCommit("after", async () => {
      assert.equal(await other.accounts.removeCredential(asUser(4_711), "token", idOf(1), NOW), true);
    });
    assert.equal((await store.add(first, drafts(from, 2), NOW)).map(wordOf).at(-1), "added");
    await cut;
    await assert.rejects(store.add(first, drafts(20, 2), NOW), AccessRevoked);
  });
}

test("access: a change that ends its own credential, its answer lost → it is told as done", async () => {
  const { store, proxy } = await openOverProxy();
  const { first, second } = await newCallers(store);
  const lose = async (work: () => Promise<boolean>) => {
    const cut = proxy.cutAtCommit("after");
    assert.equal(await work(), true);
    await cut;
  };
  await lose(() => store.accounts.removeCredential(first, "token", idOf(1), NOW));
  await assert.rejects(store.accounts.removeCredential(first, "token", idOf(1), NOW), AccessRevoked);
  await lose(() => store.accounts.setPassword(second, { password: "other", expectedHash: "hash" }, NOW));
  await lose(() => store.accounts.delete(second, NOW));
  await assert.rejects(store.accounts.delete(second, NOW), AccessRevoked);
});

test("access: a write holds the credential → a revocation waits for it", async () => {
  const { store, other, url } = await openOverProxy();
  const { first } = await newCallers(store);
  await troubleAdditions(url, "at commit", "perform pg_sleep(0.5)");
  const order: string[] = [];
  const written = store.add(first, drafts(30, 1), NOW).then(() => order.push("written"));
  await sleep(100);
  const revoked = other.accounts
    .removeCredential(asUser(4_711), "token", idOf(1), NOW)
    .then(() => order.push("revoked"));
  await Promise.all([written, revoked]);
  assert.deepEqual(order, ["written", "revoked"]);
});

test("removals: more than 100,000 changes → only those among the latest are recorded", async () => {
  const url = await server.database();
  const store = await open(url);
  await store.add(asUser(USER), drafts(0, 4), NOW);
  await store.remove(asUser(USER), idOf(0), NOW);
  const recorded = async () =>
    (await server.query("select sequence::int from earmark.removals order by sequence", nameOf(url))).map(
      ({ sequence }) => sequence,
    );
  assert.deepEqual(await recorded(), [5]);
  await server.query("update earmark.lists set sequence = 100003", nameOf(url));
  await store.remove(asUser(USER), idOf(1), NOW);
  assert.deepEqual(await recorded(), [5, 100_004]);
  await store.remove(asUser(USER), idOf(2), NOW);
  assert.deepEqual(await recorded(), [100_004, 100_005]);
  assert.deepEqual(
    (await store.page(USER, { offset: 0, size: 9 })).items.map(({ id }) => id),
    [idOf(3)],
  );
});

test("when another process takes the place of a lost commit, only that one is told that it added the feed", async () => {
  const { store, other, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0, 3), NOW);
  let theirs: Outcome[] = [];
  const cut = proxy.cutAtCommit("before", async () => {
    theirs = await other.add(asUser(USER), drafts(9), NOW);
  });
  const ours = await store.add(asUser(USER), drafts(9), NOW);
  await cut;
  assert.deepEqual([wordOf(theirs[0]), wordOf(ours[0])], ["added", "already-subscribed"]);
});

test("when the server is gone before a commit is settled, the answer says that it is not known", async () => {
  const { store, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0), NOW);
  void proxy.cutAtCommit("after", () => sleep(4_000));
  await assert.rejects(
    store.add(asUser(USER), drafts(1), NOW),
    (error: unknown) => error instanceof StoreUnavailable && error.unknown,
  );
});

test("a server that cannot be reached is given up, and found again within two seconds", async () => {
  const { store, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0), NOW);
  proxy.mode = "refuse";
  await assert.rejects(
    store.add(asUser(USER), drafts(1), NOW),
    (error: unknown) => error instanceof StoreUnavailable && !error.unknown,
  );
  await assert.rejects(store.page(USER, { offset: 0, size: 1 }), isUnavailable);
  await assert.rejects(store.ready(), isUnavailable);
  proxy.mode = "pass";
  await sleep(1_000);
  assert.equal(wordOf((await store.add(asUser(USER), drafts(1), NOW))[0]), "added");
  await store.ready();
});

test("a server that falls silent is given up", async () => {
  const { store, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0), NOW);
  proxy.mode = "stall";
  await assert.rejects(store.page(USER, { offset: 0, size: 1 }), isUnavailable);
  proxy.mode = "refuse";
  proxy.mode = "pass";
  assert.equal(await total(store), 1);
});

test("a short interruption is not noticed", async () => {
  const { store, proxy } = await openOverProxy();
  await store.add(asUser(USER), drafts(0), NOW);
  proxy.mode = "refuse";
  setTimeout(() => (proxy.mode = "pass"), 300);
  assert.equal(wordOf((await store.add(asUser(USER), drafts(1), NOW))[0]), "added");
  proxy.mode = "refuse";
  setTimeout(() => (proxy.mode = "pass"), 300);
  assert.equal(await total(store), 2);
});

for (const mode of ["fast", "immediate"] as const) {
  test(`a server that is restarted (${mode}) in the middle of writing loses nothing that was answered`, async () => {
    const mine = await startPostgres();
    const store = await open(await mine.database());
    const acknowledged = new Set<string>();
    let next = 0;
    let stopping = false;
    const client = async (user: number) => {
      while (!stopping) {
        const batch = drafts(next, 20);
        next += 20;
        try {
          const outcomes = await store.add(asUser(user), batch, NOW);
          for (const outcome of outcomes) {
            assert.equal(wordOf(outcome), "added");
            if (!isRefusal(outcome)) acknowledged.add(`${user} ${outcome.id}`);
          }
        } catch (error) {
          assert.ok(error instanceof StoreUnavailable, String(error));
        }
      }
    };
    const clients = [1, 2, 3, 4].map(client);
    try {
      await sleep(300);
      await mine.stop(mode);
      await mine.start();
      const before = acknowledged.size;
      await sleep(2_000);
      assert.ok(acknowledged.size > before, "good again within two seconds");
    } finally {
      stopping = true;
      await Promise.all(clients);
    }
    const found = new Set<string>();
    for (const user of [1, 2, 3, 4]) {
      for (const { id } of (await store.page(user, { offset: 0, size: 1_000_000 })).items) found.add(`${user} ${id}`);
    }
    assert.deepEqual(
      [...acknowledged].filter((key) => !found.has(key)),
      [],
    );
  });
}

test("killed backends are replaced, and nothing is lost or done twice", async () => {
  const url = await server.database();
  const store = await open(url);
  const name = new URL(url).pathname.slice(1);
  let killing = true;
  const killer = (async () => {
    while (killing) {
      await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      await sleep(150);
    }
  })();
  const words: (string | undefined)[] = [];
  try {
    for (let number = 0; number < 150; number += 1)
      words.push(wordOf((await store.add(asUser(USER), drafts(number), NOW))[0]));
  } finally {
    killing = false;
    await killer;
  }
  assert.deepEqual(new Set(words), new Set(["added"]));
  assert.equal(await total(store), 150);
});

test("after a failover the server that can be written to is found", async () => {
  const primary = await startPostgres(["wal_level=replica"]);
  const url = await primary.database();
  await (await open(url)).close();
  const standby = await primary.standby();
  const [, name] = url.split(/(?<=:\d+)\//);
  const both = await open(
    `postgres://earmark@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/${name}?target_session_attrs=read-write`,
  );
  assert.equal(wordOf((await both.add(asUser(USER), drafts(0), NOW))[0]), "added", "the standby is passed over");
  for (
    let tries = 0;
    tries < 100 && (await standby.query("select count(*)::int as n from earmark.subscriptions", name))[0]?.["n"] !== 1;
    tries += 1
  )
    await sleep(50);
  await primary.stop("immediate");
  await standby.query("select pg_promote()");
  assert.equal(wordOf((await both.add(asUser(USER), drafts(1), NOW))[0]), "added");
  assert.equal(await total(both), 2);
});

test("a primary that is stood down is left for the other", async () => {
  const url = await server.database();
  const name = new URL(url).pathname.slice(1);
  const store = await open(url, { connections: 1 });
  await store.add(asUser(USER), drafts(0), NOW);
  await server.query(`alter database ${name} set default_transaction_read_only = on`);
  await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  await assert.rejects(
    store.add(asUser(USER), drafts(1), NOW),
    (error: unknown) => error instanceof StoreUnavailable && !error.unknown,
  );
  const adding = store.add(asUser(USER), drafts(1), NOW);
  await sleep(100);
  await server.query(`alter database ${name} reset default_transaction_read_only`);
  assert.equal(wordOf((await adding)[0]), "added");
});

test("when the server has no connection to spare, the request is given up, and later ones are not", async () => {
  const tiny = await startPostgres(["max_connections=10", "superuser_reserved_connections=0"]);
  const url = await tiny.database();
  const store = await open(url, { connections: 2 });
  await store.close();
  const hogs = await occupy(url, 10);
  let waited = 0;
  const starved = openStore(url, { connections: 1, onWaiting: () => (waited += 1) });
  while (waited === 0) await sleep(10);
  await sleep(300);
  await Promise.all(hogs.map((hog) => hog.end()));
  const later = await starved;
  assert.equal(waited, 1, "it is said once that the server is waited for");
  after(() => later.close());
  assert.equal(wordOf((await later.add(asUser(USER), drafts(0), NOW))[0]), "added");
});

test("when all connections are in use, a read waits for one, and is given up when none comes", async () => {
  const url = await server.database();
  const store = await open(url, { connections: 1 });
  await store.add(asUser(USER), drafts(0), NOW);
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; lock table earmark.lists in access exclusive mode");
  const writing = assert.rejects(store.add(asUser(USER), drafts(1), NOW), isUnavailable);
  await assert.rejects(total(store), isUnavailable);
  await writing;
  await blocker.query("rollback");
  await blocker.end();
  assert.equal(wordOf((await store.add(asUser(USER), drafts(1), NOW))[0]), "added");
  assert.equal(await total(store), 2);
});

test("a user who is held up does not hold up another", async () => {
  const url = await server.database();
  const store = await open(url, { connections: 2 });
  await store.add(asUser(1), drafts(0), NOW);
  await store.add(asUser(2), drafts(0), NOW);
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; select 1 from earmark.lists where user_id = 1 for update");
  const held = Array.from({ length: 20 }, (_, index) => store.add(asUser(1), drafts(10 + index), NOW));
  assert.equal(wordOf((await store.add(asUser(2), drafts(1), NOW))[0]), "added");
  await blocker.query("rollback");
  await blocker.end();
  for (const outcomes of await Promise.all(held)) assert.equal(wordOf(outcomes[0]), "added");
});

for (const [what, code] of [
  ["a serialization failure", "40001"],
  ["a deadlock", "40P01"],
] as const) {
  const tryWithTrouble = async (when: "at once" | "at commit", isCalm: boolean) => {
    const url = await server.database();
    const store = await open(url);
    await store.add(asUser(USER), drafts(0), NOW);
    // After a conflict what is there is read first.
    if (!isCalm) await store.add(asUser(USER), drafts(0), NOW);
    await troubleAdditions(url, when, `if nextval('tries') <= 2 then ${fails(code)}; end if`);
    assert.equal(wordOf((await store.add(asUser(USER), drafts(1), NOW))[0]), "added");
    if (!isCalm) await store.add(asUser(USER), drafts(0), NOW);
    await server.query("alter sequence tries minvalue -1000000 restart with -1000000", nameOf(url));
    await assert.rejects(store.add(asUser(USER), drafts(2), NOW), isRefused);
    await server.query("drop trigger trouble on earmark.subscriptions", nameOf(url));
    assert.equal(wordOf((await store.add(asUser(USER), drafts(2), NOW))[0]), "added");
    assert.equal(await total(store), 3);
  };

  test(`${what} is tried again wherever it comes, and given up when it lasts`, async () => {
    await Promise.all([
      tryWithTrouble("at once", true),
      tryWithTrouble("at once", false),
      tryWithTrouble("at commit", true),
      tryWithTrouble("at commit", false),
    ]);
  });
}

test("two stores that write one user's list in serializable transactions both succeed", async () => {
  const url = await server.database();
  await server.query(
    `alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = 'serializable'`,
  );
  const [one, other] = [await open(url), await open(url)];
  const words: (string | undefined)[] = [];
  await Promise.all(
    [one, other].map(async (store, side) => {
      for (let number = 0; number < 40; number += 1)
        words.push(wordOf((await store.add(asUser(USER), drafts(2 * number + side), NOW))[0]));
    }),
  );
  assert.deepEqual(new Set(words), new Set(["added"]));
  assert.equal(await total(one), 80);
});

test("the connection can be encrypted, and the server's certificate checked", async () => {
  const secure = await startPostgres(["ssl=on"]);
  const url = (await secure.database()).replace("127.0.0.1", "localhost");
  const root = fileURLToPath(new URL("../../test/fixtures/localhost.crt", import.meta.url));
  for (const parameters of ["sslmode=require", `sslmode=verify-full&sslrootcert=${root}`]) {
    const store = await open(`${url}?${parameters}`, { connections: 1 });
    const [row] = await secure.query(
      "select bool_and(ssl) as encrypted, count(*)::int as connections from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'earmark'",
    );
    assert.deepEqual(row, { encrypted: true, connections: 1 });
    await store.close();
  }
  await assert.rejects(open(`${url}?sslmode=verify-full`), UserError, "a certificate that nobody vouches for");
});
