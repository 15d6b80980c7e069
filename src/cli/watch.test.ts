import assert from "node:assert/strict";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { runInProcess, serveInProcess, startInProcess } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { temporaryFolder } from "../../test/support/server.ts";

const postgres = await sharedPostgres();
const [A, B] = ["https://a.example/feed", "https://b.example/feed"] as const;

/** A running `earmark watch` and what it prints, line by line. */
function watch(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const { stdout, stderr, stop, ended } = startInProcess(["watch", ...args], settings);
  const linesOf = (output: Readable) => createInterface({ input: output })[Symbol.asyncIterator]();
  const [data, messages] = [linesOf(stdout), linesOf(stderr)];
  return {
    line: async () => (await data.next()).value ?? "",
    message: async () => (await messages.next()).value ?? "",
    async end() {
      stop("SIGINT");
      return ended;
    },
  };
}

for (const engine of ["SQLite", "PostgreSQL", "a server"] as const) {
  test(`watch: changes by other processes on ${engine} → one line each`, { timeout: 60_000 }, async () => {
    const folder = temporaryFolder();
    const DATABASE_URL = engine === "PostgreSQL" ? await postgres.database() : `file:${join(folder, "earmark.db")}`;
    const settings = { DATABASE_URL };
    const location = engine === "a server" ? ["--server", (await serveInProcess(settings)).url] : [];
    const earmark = (...args: readonly string[]) => runInProcess([...args, ...location], settings, folder);
    await earmark("add", A);

    const [text, json] = [watch(location, settings), watch(["--json", ...location], settings)];
    for (const { message } of [text, json]) {
      let said = await message();
      if (said.startsWith("Database: ")) said = await message();
      assert.equal(said, "Watching 1 subscription. Press Ctrl-C to stop.");
    }
    const assertPrinted = async (change: string, feedUrl: string, title: string | null, folders: readonly string[]) => {
      const { id, ...rest } = JSON.parse(await json.line());
      assert.deepEqual(rest, { change, feed_url: feedUrl, title, folders });
      assert.equal(await text.line(), [change, id, feedUrl, title ?? ""].join("\t").trimEnd());
    };
    await earmark("add", B);
    await assertPrinted("added", B, null, []);
    await earmark("rename", B, "Bee");
    await assertPrinted("updated", B, "Bee", []);
    await earmark("move", B, "--folder", "News");
    await assertPrinted("updated", B, "Bee", ["News"]);
    await earmark("remove", A, "--yes");
    await assertPrinted("removed", A, null, []);
    assert.deepEqual([await text.end(), await json.end()], [0, 0]);
  });
}

test("watch: the state has expired → prints only the difference", { timeout: 60_000 }, async () => {
  const settings = { DATABASE_URL: `file:${join(temporaryFolder(), "earmark.db")}` };
  const first = await serveInProcess(settings);
  await runInProcess(["add", A, "--server", first.url]);
  const watching = watch(["--server", first.url], {});
  assert.match(await watching.message(), /^Watching/);
  await first.stop();
  await runInProcess(["migrate", "--new-epoch"], settings);
  await runInProcess(["add", B], settings);
  await serveInProcess({ ...settings, PORT: String(first.port) });
  assert.match(await watching.line(), /^added\t\S+\thttps:\/\/b/);
  assert.equal(await watching.end(), 0);
});

test("watch: invalid token → the reason and exit code 1", async () => {
  const { url } = await serveInProcess({
    EARMARK_ACCOUNTS: "true",
    DATABASE_URL: `file:${join(temporaryFolder(), "x.db")}`,
  });
  const { code, stderr } = await runInProcess(["watch", "--server", url], { EARMARK_TOKEN: "emk_nonsense" });
  assert.equal(code, 1);
  assert.match(stderr, /rejected the token/);
});
