import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { UserError } from "../../util/user-error.ts";
import { engineFor } from "../open.ts";
import { type Row, TABLES, type Table, type Value } from "../shared/tables.ts";

const key = (number: number) => number.toString(16).padStart(32, "0");

/** A row with values that no other row has. */
function rowOf({ columns }: Table, number: number): Row {
  const make = { number: (n: number) => n, text: String, key, bytes: (n: number) => Buffer.from(key(n), "hex") };
  return columns.map(([, kind], column): Value => make[kind](10 * number + column));
}

export async function fill(url: string, rows: number): Promise<void> {
  const target = await engineFor(url)
    .archive(url)
    .then((archive) => archive.openEmpty());
  for (const table of TABLES) {
    await target.write(
      table,
      Array.from({ length: rows }, (_, index) => rowOf(table, index + 1)),
    );
  }
  await target.finish();
  await target.close();
}

export async function readAll(url: string): Promise<Record<string, Row[]>> {
  const source = await engineFor(url)
    .archive(url)
    .then((archive) => archive.read());
  const all: Record<string, Row[]> = {};
  for (const table of TABLES) {
    const rows: Row[] = [];
    for await (const some of source.rows(table)) rows.push(...some);
    assert.equal(await source.count(table), rows.length);
    all[table.name] = rows;
  }
  await source.close();
  return all;
}

/** The contract of every engine's archive. `newUrl` returns the URL of an empty database. */
export function describeArchive(engine: string, newUrl: () => Promise<string>): void {
  describe(`archive on ${engine}`, () => {
    test("archive: rows of every table → read as written", async () => {
      const url = await newUrl();
      await fill(url, 3);
      const all = await readAll(url);
      assert.deepEqual(Object.keys(all), [
        "lists",
        "subscriptions",
        "removals",
        "change_sets",
        "edits",
        "erasures",
        "accounts",
        "names",
        "credentials",
        "devices",
        "sync_marks",
        "sync_clients",
        "feed_spellings",
        "episode_actions",
        "feed_urls",
        "holdings",
        "resends",
        "refused_moves",
        "dismissed_duplicates",
        "links",
        "link_users",
        "sign_ins",
        "podcasts",
        "audit_log",
      ]);
      const plain = (rows: readonly Row[]) =>
        rows.map((row) => row.map((one) => (one instanceof Uint8Array ? [...one] : one)));
      for (const table of TABLES) {
        const given = [1, 2, 3].map((number) => rowOf(table, number));
        assert.deepEqual(plain(all[table.name] ?? []), plain(given), table.name);
      }
    });

    test("archive: more rows than a batch → all of them, in order", async () => {
      const url = await newUrl();
      const target = await (await engineFor(url).archive(url)).openEmpty();
      const removals = TABLES.find(({ name }) => name === "removals") ?? assert.fail();
      const rows = Array.from({ length: 6_000 }, (_, index) => [
        1 + Math.floor(index / 3_000),
        index,
        key(1),
        index,
        0,
        "",
        null,
        null,
        null,
        null,
        null,
      ]);
      await target.write(removals, rows);
      await target.finish();
      assert.deepEqual((await readAll(url))["removals"], rows);
    });

    test("archive: the target is not empty → rejected, unchanged", async () => {
      const url = await newUrl();
      await fill(url, 1);
      const archive = await engineFor(url).archive(url);
      await assert.rejects(
        archive.openEmpty(),
        (error: Error) => error instanceof UserError && error.message.includes("is not empty; nothing was copied."),
      );
      assert.equal((await readAll(url))["lists"]?.length, 1);
    });

    test("archive: not finished → the target stays empty", async () => {
      const url = await newUrl();
      const target = await (await engineFor(url).archive(url)).openEmpty();
      for (const table of TABLES) await target.write(table, [rowOf(table, 1)]);
      await target.close();
      for (const rows of Object.values(await readAll(url))) assert.deepEqual(rows, []);
      await fill(url, 1);
    });
  });
}
