import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import pg from "pg";
import { DISTRIBUTED_TABLES } from "../../src/store/postgres/cluster.ts";
import { createDistributedDatabase } from "../support/citus.ts";
import type { Statement } from "../support/record-statements.ts";

/** Not the work of one shard by their nature. */
const ELSEWHERE = {
  "event streams: the state of all connected users, every two seconds":
    /^select user_id, sequence from earmark.lists where user_id = any/,
  "podcasts of a page, or of a list that is searched for duplicates: by their keys, which are on several shards":
    /^select [^()]* from earmark.podcasts where feed = any/,
  "set-up: whether there is an account, until there is one":
    /^select 1 from earmark.accounts (where is_admin = 1 )?limit 1$/,
  "administration: accounts, the audit log, whether there is another administrator":
    /from earmark.accounts a left join .* order by|^select user_id from earmark.accounts order by created_at|^select count\(\*\) as n from earmark.(accounts|audit_log)$|from earmark.audit_log\s+order by|from earmark.accounts where user_id <> /s,
  "deletion of an account: podcasts that nobody else subscribes to":
    /^select feed from earmark.subscriptions where feed = any|^delete from earmark.(podcasts|artwork) where feed = any/,
  "fetching: feeds that are due": /from earmark.podcasts\s+where next_at <= /,
  "fetching: feeds with private addresses, at a start": /^update earmark.podcasts set next_at = \$2 where failure = /,
  "fetching: subscribers of a feed, whether one is active, and who has given it the title that it had":
    /^select user_id, (feed_url|id) from earmark.subscriptions where feed = |where user_id = any\(\$1::bigint\[\]\)/,
  "fetching: records of new feeds":
    /^select feed from earmark.podcasts where feed = any|^insert into earmark.podcasts .* unnest/s,
  "fetching: all subscriptions, podcasts and lists, every hour":
    /where \(feed, user_id\) > |^select feed from earmark.podcasts where feed > |^select user_id from earmark.lists where user_id > /,
  "moves: former URLs that are to be looked at, every ten minutes; all subscribers of a feed that moves":
    /from earmark.feed_urls as former|^select user_id from earmark.subscriptions where feed = \$1 and user_id > /,
  "sweep: old removals of all users": /from earmark.removals\s+where removed_at < /,
  "sweep: all users":
    /^select user_id from earmark.credentials where (expires_at|kind)|^delete from earmark.(rate_limits|leases|commits|audit_log) where (moment|until|written_at|acted_at)|^select user_id from earmark.erasures$/,
  "doctor, and which node has a user: nodes and shards, from the catalogue": /from pg_dist_(node|shard)/,
  "metrics: a sample of users, and the number of podcasts": /as some_accounts|count\(\*\) filter/,
};

const folder = process.env["TEST_STATEMENTS"] ?? assert.fail("npm run test:cluster records the statements");
const recorded = new Map<string, Statement>();
for (const file of readdirSync(folder))
  for (const statement of JSON.parse(readFileSync(join(folder, file), "utf8")) as Statement[])
    recorded.set(statement.text, statement);

const client = new pg.Client({ connectionString: await createDistributedDatabase() });
await client.connect();
after(() => client.end());

/** Buffers become objects in JSON. */
function revive(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(revive);
  const { type, data } = (value ?? {}) as { type?: unknown; data?: number[] };
  return type === "Buffer" && data !== undefined ? Buffer.from(data) : value;
}

async function explain({ text, values }: Statement): Promise<string> {
  const { rows } = await client.query(`explain (costs off) ${text}`, values.map(revive));
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

/** Why a plan is not the work of one shard; undefined if it is. */
function faultOf(plan: string): string | undefined {
  if (/pull to coordinator|Distributed Subplan|repartition/i.test(plan)) return "pulls rows to the coordinator";
  const tasks = [...plan.matchAll(/Task Count: (\d+)/g)].map(([, count]) => Number(count));
  // A plan without tables has no tasks.
  return plan === "Result" || (tasks.length === 1 && tasks[0] === 1)
    ? undefined
    : `has ${tasks.join(" + ") || "no"} tasks`;
}

test("statements of requests: plans → one task on one shard", async () => {
  const faults: string[] = [];
  let count = 0;
  for (const statement of recorded.values()) {
    if (Object.values(ELSEWHERE).some((pattern) => pattern.test(statement.text))) continue;
    const plan = await explain(statement);
    count += 1;
    const fault = faultOf(plan);
    if (fault !== undefined) faults.push(`${fault}: ${statement.text}\n${plan}`);
  }
  assert.deepEqual(faults, []);
  process.stdout.write(
    `measured: ${count} statements, each the work of one shard; ${recorded.size - count} exceptions\n`,
  );
});

if (process.env["TEST_STATEMENTS_COMPLETE"] === "true") {
  test("statements of requests: all tests have run → every table occurs", () => {
    const texts = [...recorded.keys()];
    const isUsed = (table: string) => texts.some((text) => text.includes(`earmark.${table}`));
    const unused = DISTRIBUTED_TABLES.map(([table]) => table).filter((table) => !isUsed(table));
    assert.deepEqual(unused, []);
  });
}

test("checker: plans of several shards → faults", async () => {
  const cases = {
    "select count(*) from earmark.lists": /has 4 tasks/,
    "select user_id from earmark.lists order by 1 limit 1": /has 4 tasks/,
    "insert into earmark.erasures select n, 0 from generate_series(1, 9) as n": /pulls rows/,
    "select (select count(*) from earmark.lists), user_id from earmark.erasures where user_id = 1": /pulls rows/,
  };
  for (const [text, fault] of Object.entries(cases))
    assert.match(faultOf(await explain({ text, values: [] })) ?? "", fault);
  assert.equal(
    faultOf(await explain({ text: "select * from earmark.lists where user_id = $1", values: [1] })),
    undefined,
  );
});
