import assert from "node:assert/strict";
import { test } from "node:test";
import { tellStory } from "../../../test/support/move-stories.ts";
import { SEED } from "../../../test/support/properties.ts";
import { createRandom } from "../../../test/support/random.ts";
import type { Store } from "../shared/contract.ts";

/** Stories that are told at once and share transactions; each has a user of its own. */
const CONCURRENT_STORIES = 10;

const users = { next: 6_000_000 };

/** Apps, a person, publishers and the server do things in any order. In the end, all apps have what the list has. */
export function describeMoveStories(engine: string, store: Store, runs: number): void {
  test(`moves on ${engine}: ${runs} stories (SEED=${SEED}) → all apps have all podcasts and positions`, async () => {
    for (let start = 0; start < runs; start += CONCURRENT_STORIES) {
      const length = Math.min(CONCURRENT_STORIES, runs - start);
      const seeds = Array.from({ length }, (_, index) => SEED + start + index);
      await Promise.all(
        seeds.map(async (seed) => {
          users.next += 1;
          const { faults, log } = await tellStory(store, users.next, createRandom(seed));
          assert.deepEqual(faults, [], `SEED=${seed}\n${log.join("\n")}`);
        }),
      );
    }
  });
}
