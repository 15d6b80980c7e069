import assert from "node:assert/strict";
import { test } from "node:test";
import { AppSync } from "../app-sync.ts";
import { MAX_ACTIONS, type UploadedAction } from "../episode-actions.ts";
import { asUser } from "../subscriptions.ts";
import { KEPT_MARKS } from "../sync-marks.ts";
import { engineFor, openStore } from "./engines.ts";
import { type Row, TABLES } from "./tables.ts";

const [USER, FULL_DAYS] = [1, 3];
const DAY = 86_400;

const key = (number: number) => number.toString(16).padStart(32, "0");
const NONE = [-1, -1, -1] as const;

function actionRow(sequence: number): Row {
  const kind = sequence % 10_000 === 0 ? "download" : "play";
  const texts = ["https://feeds.example/1", `https://media.example/${sequence}`, "", ""];
  return [USER, sequence, key(1), key(sequence), kind, ...texts, ...NONE, 1_000, -1, -1];
}

/** What happens at the limits of an account. `newUrl` returns the URL of an empty database. */
export function describeAppLimits(engine: string, newUrl: () => Promise<string>): void {
  test(`apps on ${engine}: more actions and marks than are kept → the oldest are deleted`, async () => {
    const url = await newUrl();
    const target = await (await engineFor(url).archive(url)).openEmpty();
    const write = async (name: string, rows: readonly Row[]) => {
      const table = TABLES.find((one) => one.name === name) ?? assert.fail();
      for (let start = 0; start < rows.length; start += 5_000)
        await target.write(table, rows.slice(start, start + 5_000));
    };
    await write("lists", [[USER, 0, 0, 0]]);
    await write(
      "episode_actions",
      Array.from({ length: MAX_ACTIONS }, (_, index) => actionRow(index + 1)),
    );
    // The first mark of each day, and one more on each of them; then as many as are kept.
    const old = Array.from({ length: FULL_DAYS }, (_, day) => [
      [USER, "actions", day * DAY + 10, 2 * day + 1],
      [USER, "actions", day * DAY + 20, 2 * day + 2],
    ]).flat();
    const recent = Array.from({ length: KEPT_MARKS - 1 }, (_, index) => [
      USER,
      "actions",
      9 * DAY + 2 * index,
      100 + index,
    ]);
    await write("sync_marks", [...old, ...recent]);
    await target.finish();
    await target.close();

    const store = await openStore(url, { connections: 2 });
    try {
      const sync = new AppSync(store);
      const play: UploadedAction = {
        ...{
          podcast: "https://feeds.example/1",
          episode: "https://media.example/new",
          guid: undefined,
          device: undefined,
        },
        ...{ kind: "play", actedAt: undefined, position: 1, started: 0, total: 9 },
      };
      const client = { key: "a", device: undefined };
      await sync.actionsSince(asUser(USER), client, 0, undefined, new Date());
      await sync.addActions(asUser(USER), client, [play], new Date());
      const kept = [];
      for await (const some of sync.everyAction(USER)) kept.push(...some);
      assert.ok(kept.length <= MAX_ACTIONS && kept.length > 0.98 * MAX_ACTIONS, `${kept.length} actions`);
      assert.equal(kept.filter(({ kind }) => kind !== "play").length, 0);
      assert.equal(kept.at(-1)?.episode, play.episode);
      const stamps = [];
      for (const since of [DAY * 2 + 15, DAY * 2 + 25]) {
        const { marks } = await store.apps.state(USER, "actions", client, since);
        stamps.push(marks.findLast(({ stamp }) => stamp <= since)?.stamp);
      }
      // Two marks were added, so the two before the kept ones were checked; only the second of the day was dropped.
      assert.deepEqual(stamps, [2 * DAY + 10, 2 * DAY + 10]);
    } finally {
      await store.close();
    }
  });
}
