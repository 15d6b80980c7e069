import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { createClient, openReplica } from "../client/src/index.ts";
import { fileStorage } from "../client/src/node.ts";
import { cleanEnvironment } from "./support/process.ts";
import { temporaryFolder } from "./support/server.ts";

const client = createClient({ url: "http://127.0.0.1:1", retries: 0 });
const open = (folder: string) => openReplica({ client, storage: fileStorage(folder) });

/** Adds feeds without end, and prints each when it is saved. */
const ADDER = `
import { createClient, openReplica } from ${JSON.stringify(new URL("../client/src/index.ts", import.meta.url).href)};
import { fileStorage } from ${JSON.stringify(new URL("../client/src/node.ts", import.meta.url).href)};
const client = createClient({ url: "http://127.0.0.1:1" });
const replica = await openReplica({ client, storage: fileStorage(process.argv[2]) });
for (let index = replica.list().length; ; index += 1) {
  await replica.add(["https://a.example/" + index]);
  console.log(index);
}
`;

test("file storage: process killed while it writes → every saved edit is there", async () => {
  const folder = join(temporaryFolder(), "list");
  const program = join(temporaryFolder(), "adder.mjs");
  writeFileSync(program, ADDER);
  for (const wanted of [1, 7, 30]) {
    const child = spawn(process.execPath, [program, folder], {
      stdio: ["ignore", "pipe", "inherit"],
      env: cleanEnvironment({}),
    });
    let saved = -1;
    let lines = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      saved = Number(line);
      lines += 1;
      if (lines === wanted) child.kill("SIGKILL");
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    assert.equal(child.signalCode, "SIGKILL");
    const replica = await open(folder);
    const feeds = replica.list().map(({ feedUrl }) => feedUrl);
    assert.ok(saved >= 0 && feeds.length > saved, `${saved} saved, ${feeds.length} found`);
    assert.deepEqual(
      feeds,
      Array.from(feeds, (_, index) => `https://a.example/${index}`),
    );
    assert.equal(replica.pending, feeds.length);
  }
});

test("file storage: edits at the same time → all saved, in order", async () => {
  const folder = temporaryFolder();
  const feeds = Array.from({ length: 50 }, (_, index) => `https://a.example/${index}`);
  const replica = await open(folder);
  await Promise.all(feeds.map((feed) => replica.add([feed])));
  assert.deepEqual(
    (await open(folder)).list().map(({ feedUrl }) => feedUrl),
    feeds,
  );
});

test("file storage: an unfinished file → ignored", async () => {
  const folder = temporaryFolder();
  await (await open(folder)).add(["https://a.example/"]);
  writeFileSync(join(folder, "queue.json.new"), '{"next');
  assert.equal((await open(folder)).list().length, 1);
});

test("file storage: folder is a file, or a text is damaged → an error, not an empty list", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "file"), "");
  await assert.rejects(open(join(folder, "file")), { code: "ENOTDIR" });
  mkdirSync(join(folder, "damaged"));
  writeFileSync(join(folder, "damaged", "base.json"), "{");
  await assert.rejects(open(join(folder, "damaged")), SyntaxError);
});

test("file storage: feed URLs may contain passwords → files readable only by their owner", async (t) => {
  if (process.platform === "win32") return t.diagnostic("Windows has no file modes.");
  const folder = join(temporaryFolder(), "new");
  await (await open(folder)).add(["https://ann:secret@a.example/"]);
  const modes = [folder, ...readdirSync(folder).map((name) => join(folder, name))].map((path) => statSync(path).mode);
  assert.deepEqual(
    modes.map((mode) => (mode & 0o777).toString(8)),
    ["700", "600"],
  );
});
