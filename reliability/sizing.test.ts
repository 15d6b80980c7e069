import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { engineFor } from "../src/store/open.ts";
import { TABLES } from "../src/store/shared/tables.ts";
import { sharedPostgres } from "../test/support/postgres.ts";
import { query } from "../test/support/postgres-cluster.ts";

/** Checks the arithmetic of docs/scaling.md, and its row sizes against measured ones. */
const text = readFileSync(new URL("../docs/scaling.md", import.meta.url), "utf8");

/** The rows of the table that follows a line, as cells. */
function tableAfter(marker: string): string[][] {
  const [, after = ""] = text.split(marker, 2);
  const lines = after.slice(after.indexOf("|")).split("\n");
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(2, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** "10 million" → 10,000,000; "0.2 TB" → 200,000,000,000. */
function numberOf(cell: string): number {
  const units = { million: 1e6, billion: 1e9, GB: 1e9, TB: 1e12 };
  const [digits = "", unit = ""] = cell.replaceAll(",", "").split(" ");
  return Number(digits) * (units[unit as keyof typeof units] ?? 1);
}

/** Rows of a user or of a feed, and their sizes. */
const sizesAfter = (marker: string) =>
  tableAfter(marker).map(([table = "", count = "", bytes = ""]) => ({
    table,
    count: numberOf(count),
    bytes: numberOf(bytes),
  }));
const sum = (sizes: ReturnType<typeof sizesAfter>) => sizes.reduce((all, { count, bytes }) => all + count * bytes, 0);
const rows = sizesAfter("Row sizes, including indexes");
const feedRows = sizesAfter("once per feed");
const bytesPerUser = sum(rows);
const isClose = (one: number, other: number, tolerance: number) => Math.abs(one - other) <= tolerance * other;

const ROWS = 10_000;
/** Fewer, because they are large: of each feed, an image of 5 kB and one of 40 kB. */
const IMAGES = 200;
/** Random but stable, so that index pages are as full as with real users. */
const HASH = (of: string) => `md5(${of} || 'x')`;
const USER = `('x' || substr(${HASH("(n / 50)::text")}, 1, 12))::bit(48)::bigint`;
const LONE_USER = `('x' || substr(${HASH("n::text")}, 1, 12))::bit(48)::bigint`;
const FEED_URL = `'https://feeds.example.com/shows/' || substr(${HASH("n::text")}, 1, 8) || '/episodes.xml'`;
const TIME = "1750000000000 + n";
const VALUES: Readonly<Record<string, string>> = {
  lists: `${LONE_USER}, 50, 50, 0`,
  accounts: `${LONE_USER}, ${TIME}, 'name-' || n, '', repeat('p', 96), 0, 0, ${TIME}`,
  names: `gen_random_uuid(), ${LONE_USER}`,
  credentials: `sha256(n::text::bytea), ${USER}, gen_random_uuid(), ${TIME}, ${TIME}, 0, 'token', 'write', 'AntennaPod'`,
  credential_users: `sha256(n::text::bytea), ${USER}`,
  subscriptions: `${USER}, n % 50, gen_random_uuid(), gen_random_uuid(), ${TIME}, 4711, ${FEED_URL}, 0, null, null`,
  removals: `${USER}, n % 50, gen_random_uuid(), ${TIME}, 4711, 1, ${FEED_URL}`,
  devices: `${USER}, 'phone-' || n % 50, 'My phone', 'mobile', 'AntennaPod/3.9.0', ${TIME}`,
  sync_marks: `${USER}, 'feeds', ${TIME}, n % 50`,
  sync_clients: `${USER}, 'feeds', 'client-' || n % 50, 10, 1750000000, 0, ${TIME}`,
  feed_spellings: `${USER}, n % 50, gen_random_uuid(), ${TIME}, 'phone', ${FEED_URL}`,
  feed_urls: `${USER}, gen_random_uuid(), ${FEED_URL}, gen_random_uuid(), 'yes', 1, 0, 4711, 4712, ${TIME}, 0, 0, null`,
  holdings: `${USER}, gen_random_uuid(), 'phone', ${FEED_URL}, 4711, 0, 0, 1, 0`,
  resends: `${USER}, 'phone', gen_random_uuid(), 4711`,
  refused_moves: `${USER}, gen_random_uuid(), gen_random_uuid()`,
  change_sets: `${USER}, n % 50, n % 50, ${TIME}, ${TIME}, 'app', 'My phone', 'app phone', '', 50, 1, 0, 0, 0, ''`,
  edits: `${USER}, n % 50, gen_random_uuid(), ${TIME}, 100, ${FEED_URL}, ${TIME}, null, null, null`,
  dismissed_duplicates: `${USER}, gen_random_uuid(), ${TIME}`,
  links: `${USER}, gen_random_uuid(), ${TIME}, 0, ${HASH("n::text")}, 'list', 'My podcasts', null, 'en', null`,
  link_users: `gen_random_uuid(), ${USER}`,
  sign_ins: `${USER}, gen_random_uuid(), ${TIME}, ${TIME}, 'session', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko'`,
  audit_log: `${TIME}, gen_random_uuid(), 'account-signed-up', 'name-' || n, '192.0.2.' || n % 250, 'name-' || n`,
  podcasts: `md5(n::text)::uuid, md5(n::text)::uuid, ${TIME}, ${TIME}, ${TIME}, 0, ${TIME}, 0, 0, 0, 0, 0, 0, 'ok',
    'The title of show ' || n, 'Ann and Bob', (select string_agg(${HASH("(n * 100 + i)::text")}, ' ') from generate_series(1, 12) i),
    'https://www.example.com/shows/' || n, 'en-US', gen_random_uuid()::text, null,
    'https://images.example.com/' || ${HASH("n::text")} || '/3000.jpg', '"' || ${HASH("n::text")} || '"',
    'Mon, 16 Nov 2026 12:00:00 GMT', null, null, null`,
  artwork: `${HASH("(n / 2)::text")}::uuid, (n % 2)::text, gen_random_uuid(),
    (select decode(string_agg(md5(n || '-' || i), ''), 'hex') from generate_series(1, case n % 2 when 0 then 312 else 2500 end) i)`,
  episode_actions: `${USER}, n % 50, gen_random_uuid(), gen_random_uuid(), 60, 0, 3600, ${TIME}, -1, -1, 'play', ${FEED_URL},
    'https://media.example.com/shows/' || ${HASH("n::text")} || '/audio.mp3', 'guid-' || ${HASH("n::text")}, 'phone'`,
};

test("sizing: bytes per row → as measured", async () => {
  const postgres = await sharedPostgres();
  const url = await postgres.database();
  await engineFor(url).migrate(url, { distribute: false });
  const all = [...rows, ...feedRows];
  // `erasures` is empty but for deletions in progress. The other two are not part of backups.
  const lasting = TABLES.map(({ name }) => name).filter((name) => name !== "erasures");
  assert.deepEqual(all.map(({ table }) => table).sort(), [...lasting, "artwork", "credential_users"].sort());
  const measured: Record<string, number> = {};
  for (const { table } of all) {
    const count = table === "artwork" ? IMAGES : ROWS;
    await query(
      url,
      `insert into earmark.${table} select ${VALUES[table]} from generate_series(1, ${count}) as n order by random()`,
    );
    const [size] = await query(url, `select pg_total_relation_size('earmark.${table}')::int as bytes`);
    measured[table] = Math.round(Number(size?.["bytes"]) / count);
  }
  for (const { table, bytes } of all)
    assert.ok(isClose(bytes, measured[table] ?? 0, 0.15), `${table}: ${bytes}, measured ${JSON.stringify(measured)}`);
});

test("sizing: every row of the table → follows from the row sizes", () => {
  const sizes = tableAfter("Sizes by number of users");
  assert.ok(sizes.length >= 4);
  for (const [users = "", subscriptions = "", actions = "", bytes = ""] of sizes) {
    const count = numberOf(users);
    const perUser = (name: string) => rows.find(({ table }) => table === name)?.count ?? 0;
    assert.ok(isClose(numberOf(subscriptions), count * perUser("subscriptions"), 0.05), users);
    assert.ok(isClose(numberOf(actions), count * perUser("episode_actions"), 0.05), users);
    assert.ok(
      isClose(numberOf(bytes), count * bytesPerUser, 0.1),
      `${users}: ${bytes}, computed ${count * bytesPerUser}`,
    );
  }
  const [, feeds = "", gigabytes = ""] = /([\d,]+) different feeds take (\d+ GB)/.exec(text) ?? [];
  assert.ok(isClose(numberOf(gigabytes), numberOf(feeds) * sum(feedRows), 0.1), `${sum(feedRows)} bytes per feed`);
});
