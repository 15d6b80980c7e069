import assert from "node:assert/strict";
import { test } from "node:test";
import { addTo } from "../../../test/support/lists.ts";
import { asUser } from "../../accounts/caller.ts";
import { MAX_INSTALLATIONS } from "../../apps/app-store.ts";
import { MAX_ACTIONS } from "../../apps/episode-actions.ts";
import { KEPT_MARKS } from "../../apps/marks.ts";
import { AppSync } from "../../apps/sync.ts";
import type { Store } from "../shared/contract.ts";
import { play } from "./apps-test-support.ts";

const [USER, MOVER, FULL_DAYS] = [1, 2, 3];
const DAY = 86_400;
const ID = "00000000-0000-4000-8000-000000000001";

const feedAt = (number: number) => ({
  feedUrl: `https://feeds.example/${number}`,
  normalizedUrl: `feeds.example/${number}`,
});

/** Direct access to the database of a store. */
export interface Database {
  readonly run: (sql: string) => Promise<readonly Record<string, unknown>[]>;
  /** An expression for a different key for each number `n`. */
  readonly key: string;
}

/** What happens at the limits of an account. Direct access fills it faster than a client could. */
export function describeAppLimits(engine: string, store: Store, { run, key }: Database): void {
  test(`apps on ${engine}: more actions and marks than are kept → the oldest are deleted`, async () => {
    await run(`insert into lists (user_id, sequence, total) values (${USER}, 0, 0)`);
    await run(
      `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${MAX_ACTIONS})
       insert into episode_actions (user_id, sequence, feed, episode, kind, podcast, media_url, guid, device,
         position, started, total, acted_at, beaten_at, beaten_position)
       select ${USER}, n, ${key}, ${key}, case when n % 10000 = 0 then 'download' else 'play' end,
         'https://feeds.example/1', 'https://media.example/' || n, '', '', -1, -1, -1, 1000, -1, -1 from numbers`,
    );
    // The first mark of each day, and one more on each of them; then as many as are kept.
    const old = Array.from({ length: FULL_DAYS }, (_, day) => [
      [day * DAY + 10, 2 * day + 1],
      [day * DAY + 20, 2 * day + 2],
    ]).flat();
    const recent = Array.from({ length: KEPT_MARKS - 1 }, (_, index) => [9 * DAY + 2 * index, 100 + index]);
    const marks = [...old, ...recent].map(([stamp, sequence]) => `(${USER}, 'actions', ${stamp}, ${sequence})`);
    await run(`insert into sync_marks (user_id, kind, stamp, sequence) values ${marks}`);

    const sync = new AppSync(store);
    const client = { key: "a", device: undefined };
    const added = play("new", 1, { actedAt: undefined });
    await sync.actionsSince(asUser(USER), client, 0, undefined, new Date());
    await sync.addActions(asUser(USER), client, [added], new Date());
    const counts = await run(
      `select kind, count(*) as number from episode_actions where user_id = ${USER} group by kind`,
    );
    assert.deepEqual(
      counts.map(({ kind }) => kind),
      ["play"],
    );
    const kept = Number(counts[0]?.["number"]);
    assert.ok(kept <= MAX_ACTIONS && kept > 0.98 * MAX_ACTIONS, `${kept} actions`);
    const { items } = await sync.actionPage(USER, { offset: kept - 1, size: 2 }, undefined);
    assert.deepEqual(
      items.map(({ episode }) => episode),
      [added.episode],
    );
    const stamps = [];
    for (const since of [DAY * 2 + 15, DAY * 2 + 25]) {
      const { marks } = await store.apps.state(USER, "actions", client, since);
      stamps.push(marks.findLast(({ stamp }) => stamp <= since)?.stamp);
    }
    // Two marks were added, so the two before the kept ones were checked; only the second of the day was dropped.
    assert.deepEqual(stamps, [2 * DAY + 10, 2 * DAY + 10]);
  });

  test(`apps on ${engine}: more installations than are kept → what the oldest held of moved feeds is deleted`, async () => {
    const sync = new AppSync(store);
    const [old, current] = [feedAt(1), feedAt(2)];
    await addTo(store, asUser(MOVER), [{ kind: "add", id: ID, ...old }], new Date(0));
    const poll = async (client: string, at: number) =>
      (await sync.feedsSince(asUser(MOVER), { key: client, device: undefined }, 0, new Date(at))).timestamp();
    await poll("1", 1);
    await store.change(asUser(MOVER), [{ kind: "update", id: ID, ...current }], new Date(2));
    const states = Array.from(
      { length: MAX_INSTALLATIONS - 1 },
      (_, n) => `(${MOVER}, 'feeds', 'many-${n}', 1, 0, 0, 3)`,
    );
    await run(
      `insert into sync_clients (user_id, kind, client, sequence, since, start_sequence, seen_at) values ${states}`,
    );
    const holders = async () =>
      (await run(`select distinct client from holdings where user_id = ${MOVER} order by client`)).map(
        ({ client }) => client,
      );
    assert.deepEqual(await holders(), ["1"]);
    await poll("2", 4);
    assert.deepEqual(await holders(), ["2"]);
  });
}
