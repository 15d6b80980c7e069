import assert from "node:assert/strict";
import { test } from "node:test";
import { unsafeAnswers, unsyncedAnswers, watchStatements } from "./power.ts";
import { inRun } from "./proof.ts";

test("an answer without a commit before it, or after one that does not sync, is found", () => {
  assert.deepEqual(unsafeAnswers("committed 1\nbegun\ncommitted 2\nanswered 200\ncommitted on\nanswered 200\n", 2), []);
  for (const [trace, requests] of [
    ["committed 2\nbegun\nanswered 200\n", 1],
    ["begun\nanswered 200\ncommitted 2\n", 1],
    ["begun\ncommitted 2\nanswered 200\nanswered 200\n", 2],
    ["begun\ncommitted 1\nanswered 200\n", 1],
    ["begun\ncommitted off\nanswered 200\n", 1],
    ["begun\ncommitted undefined\nanswered 200\n", 1],
    ["begun\ncommitted 2\nanswered 200\n", 2],
  ] as const)
    assert.equal(unsafeAnswers(trace, requests).length, 1, trace);
});

const FOLDER = "7 fsync(9</d>) = 0\n";
const ASKED = '6 read(5<socket:[1]>, "POST /v1/operatio"..., 65536) = 400\n';
const WRITTEN = '7 pwrite64(8</d/earmark.db-wal>, "x"..., 24, 0) = 24\n';
const SYNCED = "7 fdatasync(8</d/earmark.db-wal>) = 0\n";
const ANSWERED = '6 write(5<socket:[1]>, "HTTP/1.1 200 OK\\r"..., 99) = 99\n';

test("an answer that begins before the log and its folder are synced is found", () => {
  assert.deepEqual(unsyncedAnswers(FOLDER + WRITTEN + SYNCED + ANSWERED, "/d", 1), []);
  const begins = "7 fdatasync(8</d/earmark.db-wal> <unfinished ...>\n";
  const ends = "7 <... fdatasync resumed>) = 0\n";
  assert.deepEqual(unsyncedAnswers(FOLDER + WRITTEN + begins + ends + ANSWERED, "/d", 1), []);
  for (const trace of [
    FOLDER + WRITTEN + ANSWERED + SYNCED,
    FOLDER + WRITTEN + begins + ANSWERED + ends,
    FOLDER + WRITTEN + SYNCED + WRITTEN + ANSWERED,
    FOLDER + WRITTEN + SYNCED.replace("= 0", "= -1 EIO (Input/output error) (INJECTED)") + ANSWERED,
    WRITTEN + SYNCED + ANSWERED,
    FOLDER + SYNCED + ANSWERED,
    FOLDER + WRITTEN + SYNCED + ASKED + ANSWERED,
  ])
    assert.equal(unsyncedAnswers(trace, "/d", 1).length, 1, trace);
});

test("a server that answers before its commit is found by its statements", async () => {
  const { violations } = await inRun({ isQuick: true, seed: 1, say: () => undefined }, (run) =>
    watchStatements(run, "SQLite", `file:${run.folder}/earmark.db`, "answer before the commit"),
  );
  assert.match(violations.join("\n"), /before its commit had returned/);
});
