import assert from "node:assert/strict";
import { test } from "node:test";
import { add, newId, statusOf } from "../test/harness.ts";
import { deniesAll, post, wrongRefusal } from "./api.ts";
import { createFaults, type Plant } from "./faulty.ts";
import { killAgainAndAgain, UNTIL_FOUND } from "./kill.ts";
import { Ledger } from "./ledger.ts";
import { placeInFile, tornRows } from "./place.ts";
import { inRun, type Run, serve } from "./proof.ts";
import { faultsAtEveryStep } from "./steps.ts";

const SCALE = { isQuick: true, seed: 1, say: () => undefined };
const fileOf = (run: Run) => placeInFile(`${run.folder}/earmark.db`);

for (const [plant, finding] of [
  ["answer before the commit", /acknowledged items are lost/],
  ["commit that is lost", /acknowledged items are lost/],
  ["torn batch", /the list says \d+ items and has \d+|there in part/],
] as const satisfies readonly (readonly [Plant, RegExp])[]) {
  test(`killing a server finds: ${plant}`, async () => {
    const { violations } = await inRun(SCALE, (run) => killAgainAndAgain(run, fileOf(run), UNTIL_FOUND, { plant }));
    assert.match(violations.join("\n"), finding);
  });
}

test("a fault at a step finds a 500 where 503 was due, and a commit that is lost", async () => {
  for (const [plant, finding] of [
    ["500 for 503", /500 where 503 was due/],
    ["commit that is lost", /neither as before nor as after/],
  ] as const) {
    const { violations } = await inRun(SCALE, (run) => faultsAtEveryStep(run, fileOf(run), ["error-before"], plant));
    assert.match(violations.join("\n"), finding);
  }
});

test("what may have been stored is not denied: a commit that was reported as failed, a writer that ended", async () => {
  await inRun(SCALE, async (run) => {
    const faults = createFaults(run);
    const server = await serve(run, { DATABASE_URL: fileOf(run).url, ...faults.settings });
    for (const how of ["error-after", "writer-ends-after"] as const) {
      const operations = [add(newId(), `https://feeds.example/${how}`)];
      for (let step = 1; faults.seen() !== "commit"; step += 1) {
        faults.arm(step, how);
        const answer = await post(server.port, operations);
        assert.equal(answer && wrongRefusal(answer), undefined);
        if (faults.seen() === "commit") assert.equal(answer && deniesAll(answer), false);
      }
      faults.disarm();
      const again = await post(server.port, operations);
      assert.equal(again && statusOf(again.json["atomic:results"][0]), "409");
    }
  });
});

test("a start that fails when the file is claimed and the writer runs already ends with a message for people", {
  timeout: 60_000,
}, async () => {
  // Of the connection that writes, and of the one that reads.
  for (const step of [30, 35]) {
    await inRun(SCALE, async (run) => {
      const faults = createFaults(run);
      faults.arm(step, "error-before");
      const starting = serve(run, { DATABASE_URL: fileOf(run).url, ...faults.settings });
      await assert.rejects(starting, /ended with 1: earmark: Cannot open the database .*\.\n$/);
    });
  }
});

test("a ledger tells what is lost, was never sent, is back, or is torn", () => {
  const ledger = new Ledger();
  ledger.noteBatch(["a", "b"], "acknowledged");
  ledger.noteBatch(["c", "d"], "unknown");
  ledger.noteBatch(["e", "f"], "denied");
  assert.deepEqual(ledger.compare(["a", "b"]), []);
  assert.deepEqual(ledger.compare(["a", "b", "c", "d"]), []);
  assert.match(ledger.compare(["a"]).join(), /1 acknowledged items are lost.*1 batches are there in part/);
  assert.match(ledger.compare(["a", "b", "x"]).join(), /1 items were never sent/);
  assert.match(ledger.compare(["a", "b", "c"]).join(), /1 batches are there in part/);
  assert.match(ledger.compare(["a", "b", "e", "f"]).join(), /though they were denied/);
  assert.match(ledger.compare(["a", "b", "b"]).join(), /twice/);
});

test("tables that are not of one piece are told", () => {
  const whole = { ids: ["a", "b"], total: 2, sequence: 4, removals: 1, integrity: "ok" };
  assert.deepEqual(tornRows(whole), []);
  for (const change of [{ total: 3 }, { sequence: 5 }, { removals: 2 }, { ids: ["a"] }, { integrity: "no" }])
    assert.notDeepEqual(tornRows({ ...whole, ...change }), []);
});
