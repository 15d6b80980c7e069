import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/server.ts";
import { copy } from "../commands/copy.ts";
import { asUser, LOCAL_USER } from "../subscriptions.ts";
import { openStore } from "./engines.ts";
import { describePodcasts } from "./podcasts.suite.ts";
import { backUpFile } from "./sqlite-backup.ts";

describePodcasts("SQLite", () => openStore(`file:${join(temporaryFolder(), "earmark.db")}`, { connections: 1 }));

test("backup and restore: podcasts → kept and due at once; artwork → not in the backup", async () => {
  const folder = temporaryFolder();
  const [file, backup, restored] = ["one.db", "backup.db", "two.db"].map((name) => join(folder, name));
  const url = `file:${file}`;
  const store = await openStore(url, { connections: 1 });
  const feedUrl = "https://feeds.example/kept";
  const [{ id } = { id: "" }] = await store.podcasts.find([feedUrl]);
  const at = new Date();
  await store.change(
    asUser(LOCAL_USER),
    [{ kind: "add", id: "00000000-0000-4000-8000-000000000001", feedUrl, normalizedUrl: "feeds.example/kept" }],
    at,
  );
  await store.podcasts.create([id], at);
  const record = (await store.podcasts.claim(id, at, at)) ?? assert.fail();
  const hash = "0123456789abcdef".repeat(2);
  const artwork = { hash, small: Buffer.from("a small image"), large: Buffer.from("a large image") };
  const known = { ...record, title: "T", status: "ok", artwork: hash, etag: "e", nextAt: 8e15, checkedAt: 5 } as const;
  assert.equal(await store.podcasts.record(id, at, known, artwork), true);
  await store.close();
  assert.ok(readFileSync(file ?? "").includes("a large image"));

  await backUpFile(file ?? "", backup ?? "", () => undefined);
  assert.ok(!readFileSync(backup ?? "").includes("a large image"));
  await copy(`file:${file}`, `file:${restored}`, { show: () => undefined, end: () => undefined });
  const other = await openStore(`file:${restored}`, { connections: 1 });
  const [podcast] = await other.podcasts.find([feedUrl]);
  assert.deepEqual([podcast?.title, podcast?.status, podcast?.artwork], ["T", "ok", undefined]);
  const again = await other.podcasts.claim(id, at, new Date(at.getTime() + 1));
  assert.deepEqual([again?.nextAt, again?.etag, again?.artworkUrl], [0, null, null]);
  await other.close();
});
