import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { runInProcess, serveInProcess, withStore } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { callServer, temporaryFolder } from "../../test/support/server.ts";

const postgres = await sharedPostgres();
const newFile = async () => `file:${join(temporaryFolder(), "earmark.db")}`;

const epochOf = (url: string) => withStore(url, async ({ epoch }) => Buffer.from(epoch).toString("hex"));

async function succeed(args: readonly string[], DATABASE_URL: string): Promise<string> {
  const { code, stderr } = await runInProcess(args, { DATABASE_URL });
  assert.equal(code, 0, stderr);
  return stderr;
}

// These tests mostly wait for servers to stop, so they run concurrently.
for (const [engine, newUrl] of [
  ["SQLite", newFile],
  ["PostgreSQL", () => postgres.database()],
] as const)
  describe(`epochs on ${engine}`, { concurrency: 3 }, () => {
    test(`epoch on ${engine}: the same database opened again → the same; another database → another`, async () => {
      const url = await newUrl();
      const epoch = await epochOf(url);
      assert.match(epoch, /^[0-9a-f]{16}$/);
      await succeed(["migrate"], url);
      assert.equal(await epochOf(url), epoch);
      assert.notEqual(await epochOf(await newUrl()), epoch);
    });

    test(`epoch on ${engine}: restore, copy, migrate --new-epoch → a new one each time`, async () => {
      const [url, target] = [await newUrl(), await newUrl()];
      const backup = join(temporaryFolder(), "backup.db");
      await succeed(["add", "https://a.example/1"], url);
      await succeed(["backup", backup], url);
      const epochs = [await epochOf(url), await epochOf(target)];
      await succeed(["restore", backup, "--yes"], target);
      epochs.push(await epochOf(target));
      if (engine === "SQLite") {
        await succeed(["restore", backup, "--yes"], url);
        epochs.push(await epochOf(url));
      }
      const copy = await newUrl();
      epochs.push(await epochOf(copy));
      await succeed(["copy", "--from", url, "--to", copy], url);
      epochs.push(await epochOf(copy));
      assert.match(await succeed(["migrate", "--new-epoch"], copy), /has a new epoch/);
      epochs.push(await epochOf(copy));
      assert.equal(new Set(epochs).size, epochs.length, epochs.join(", "));
    });

    for (const command of ["restore", "copy"] as const)
      test(`state on ${engine}: from before a ${command} → 410 and never 304, even when the new history is longer`, async () => {
        const [url, target] = [await newUrl(), await newUrl()];
        const old = await serveInProcess({ DATABASE_URL: url });
        const stateOf = async (port: number) => (await callServer(port, "GET", "/v1/me")).json.meta.state as string;
        const add = (number: number) => ["add", `https://a.example/${number}`, "--server"];
        await succeed([...add(1), old.url], url);
        const states = [await stateOf(old.port)];
        const backup = join(temporaryFolder(), "backup.db");
        await succeed(["backup", backup], url);
        // A change that is not in the backup and is lost.
        if (command === "restore") await succeed([...add(2), old.url], url);
        states.push(await stateOf(old.port));
        await old.stop();
        await succeed(
          command === "restore" ? ["restore", backup, "--yes"] : ["copy", "--from", url, "--to", target],
          target,
        );
        const { port, url: server } = await serveInProcess({ DATABASE_URL: target });
        for (const number of [3, 4, 5]) {
          for (const state of states) {
            const changes = await callServer(port, "GET", `/v1/changes?page[after]=${state}`);
            assert.deepEqual([changes.status, changes.json.errors[0].code], [410, "state-expired"]);
            const headers = { "If-None-Match": `"${state}"` };
            assert.equal((await callServer(port, "GET", "/v1/subscriptions", { headers })).status, 200);
          }
          await succeed([...add(number), server], target);
        }
        const { data } = (await callServer(port, "GET", "/v1/changes")).json;
        assert.equal(data.length, 4);
      });
  });
