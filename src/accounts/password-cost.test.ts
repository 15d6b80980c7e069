import assert from "node:assert/strict";
import { argon2Sync } from "node:crypto";
import { test } from "node:test";
import { hashPassword } from "./passwords.ts";

const PASSWORD = "correct horse battery staple";

test("hash: a password → PHC format, at least the OWASP cost", async () => {
  const hashed = await hashPassword(PASSWORD);
  const parts = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hashed);
  assert.ok(parts !== null, hashed);
  const [, memory, passes, lanes, salt = "", hash = ""] = parts;
  assert.ok(Number(memory) >= 19 * 1024);
  assert.ok(Number(passes) >= 2);
  assert.ok(Number(lanes) >= 1);
  const nonce = Buffer.from(salt, "base64");
  assert.ok(nonce.length >= 16);
  const parameters = { memory: Number(memory), passes: Number(passes), parallelism: Number(lanes) };
  const expected = argon2Sync("argon2id", { message: Buffer.from(PASSWORD), nonce, tagLength: 32, ...parameters });
  assert.equal(hash, expected.toString("base64").replaceAll("=", ""));
});
