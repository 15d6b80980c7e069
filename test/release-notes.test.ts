import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { otherVersions, readNotes } from "../packaging/notes.ts";

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const CHANGELOG = read("CHANGELOG.md");

test("release notes: a version → its section, without the heading and the other versions", () => {
  const text =
    "# Changelog\n\n## Unreleased\n\n- c\n\n## 0.2.0 – 2026-12-01\n\n### Added\n\n- b\n\n## 0.2.0-beta\n\n- a\n";
  assert.equal(readNotes(text, "0.2.0"), "### Added\n\n- b\n");
  assert.equal(readNotes(text, "0.2.0-beta"), "- a\n");
  assert.throws(() => readNotes(text, "0.2"), /no section for 0\.2\./);
  assert.throws(() => readNotes("## 0.2.0\n\n## 0.1.0\n- a", "0.2.0"), /is empty/);
});

test("release notes: CHANGELOG.md → notes for this version and the first one", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  assert.match(readNotes(CHANGELOG, version), /^\*\*Upgrading from 0\.1\.0:\*\* back up first\./);
  assert.match(readNotes(CHANGELOG, "0.1.0"), /^First version\.\n\n- `POST \/v1\/operations`/);
});

test("release notes: the version of a package → must be that of the tag", () => {
  const manifests = { "package.json": '{"version":"0.2.0"}', "client/package.json": '{"version":"0.1.0"}' };
  assert.deepEqual(otherVersions("0.2.0", manifests), ["client/package.json has version 0.1.0, not 0.2.0."]);
});
