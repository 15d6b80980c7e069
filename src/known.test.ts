import assert from "node:assert/strict";
import { test } from "node:test";
import type { Verified } from "./accounts.ts";
import { forgottenByAll, KnownCredentials } from "./known.ts";

const CREDENTIAL: Verified = {
  id: "00000000-0000-4000-8000-000000000001",
  kind: "token",
  user: 1,
  scope: "read",
  label: "",
  createdAt: new Date(0),
  usedAt: undefined,
  expiresAt: undefined,
  hash: "hash",
};

/** What is known of a credential that was asked for so long ago, and how often it is to be renewed. */
function look(ageMs: number, times = 1): { readonly found: Verified | undefined; readonly renewals: number } {
  const known = new KnownCredentials();
  known.set("secret", CREDENTIAL, performance.now() - ageMs);
  let renewals = 0;
  let found: Verified | undefined;
  for (let time = 0; time < times; time += 1) {
    found = known.get("secret", () => {
      renewals += 1;
    });
  }
  return { found, renewals };
}

test("a credential is known by its secret, for a moment", () => {
  // From the future: whatever this machine does meanwhile, it is fresh.
  assert.deepEqual(look(-60_000), { found: CREDENTIAL, renewals: 0 });
  assert.deepEqual(look(50), { found: undefined, renewals: 0 });
  assert.equal(
    new KnownCredentials().get("other", () => assert.fail("there is nothing to renew")),
    undefined,
  );
});

test("one that is used is read again before it is too old, once", () => {
  const deadline = performance.now() + 10_000;
  // A machine that stands still just then makes it too old.
  for (;;) {
    const { found, renewals } = look(26, 3);
    if (found === undefined && performance.now() < deadline) continue;
    assert.deepEqual({ found, renewals }, { found: CREDENTIAL, renewals: 1 });
    break;
  }
});

test("when everybody has forgotten it, it is too old", async () => {
  const known = new KnownCredentials();
  known.set("secret", CREDENTIAL, performance.now());
  await forgottenByAll();
  assert.equal(
    known.get("secret", () => assert.fail("there is nothing to renew")),
    undefined,
  );
});
