import assert from "node:assert/strict";
import { test } from "node:test";
import { createFaults } from "./faulty.ts";
import { inRun, serve } from "./proof.ts";

test("start: opening the database fails halfway → a message for people and exit code 1", {
  timeout: 60_000,
}, async () => {
  // Step 30 belongs to the connection that writes, step 35 to the one that reads.
  for (const step of [30, 35]) {
    await inRun({ isQuick: true, seed: 1, say: () => undefined }, async (run) => {
      const faults = createFaults(run);
      faults.arm(step, "error-before");
      const starting = serve(run, { DATABASE_URL: `file:${run.folder}/earmark.db`, ...faults.settings });
      await assert.rejects(starting, /ended with 1: earmark: Cannot open the database .*\.\n$/);
    });
  }
});
