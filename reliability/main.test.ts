import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

test("proofs that are ended early leave no server and no file behind", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "earmark-ended-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const main = new URL("./main.ts", import.meta.url).pathname;
  const proofs = spawn(process.execPath, [main, "--only", "slow clients"], {
    env: { ...process.env, TMPDIR: folder },
    stdio: "ignore",
  });
  t.after(() => proofs.kill("SIGKILL"));
  const ended = once(proofs, "exit");
  while (globSync(join(folder, "*", "earmark.db-wal")).length === 0) await sleep(20);
  const children = readFileSync(`/proc/${proofs.pid}/task/${proofs.pid}/children`, "utf8").trim().split(" ");
  assert.notDeepEqual(children, [""]);
  proofs.kill("SIGTERM");
  assert.deepEqual(await ended, [1, null]);
  assert.deepEqual(readdirSync(folder), []);
  // Of one that has ended and that nobody has asked after yet, the program is gone already.
  while (children.some((pid) => existsSync(`/proc/${pid}/exe`))) await sleep(20);
});
