import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { type Credential, isValidAt, type NewCredential, NOBODY } from "../../accounts/account-store.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";

import {
  type AccountsContext,
  countOf,
  credential,
  later,
  NOW,
  newHash,
  SERVER,
  times,
  ZERO_HASH,
} from "./accounts-test-support.ts";

const IDLE_MS = 14 * 24 * 60 * 60_000;

export function describeCredentials(context: AccountsContext): void {
  const { accounts, newUser, newAccount, add, invite, idsOf } = context;

  describe("credentials", () => {
    test("credentials: added → stored exactly", async () => {
      const { user } = await newAccount();
      const labels = [
        "",
        "My phone",
        "é e\u0301 'quotes\" \\ ; -- %_",
        "👩‍👩‍👧 名前\u202e\t\n\u0001",
        "🎧".repeat(255),
      ];
      for (const label of labels) {
        for (const more of [
          {},
          { scope: "read" },
          { kind: "session" },
          { usedAt: later(1), expiresAt: later(999) },
          { createdAt: new Date("1999-12-31T23:59:59.999Z"), expiresAt: new Date("2999-12-31T23:59:59.999Z") },
        ] as const) {
          const { hash, credential } = await add(user, { label, ...more });
          assert.deepEqual(await accounts.findCredential(hash), credential);
          const listed = await accounts.listCredentials(user, credential.kind);
          assert.deepEqual(
            listed.find(({ id }) => id === credential.id),
            credential,
          );
        }
      }
      for (const kind of ["invitation", "setup"] as const) {
        const { hash, credential } = await add(NOBODY, { kind, expiresAt: later(1) });
        assert.deepEqual(await accounts.findCredential(hash), credential);
      }
    });

    test("credentials: find → by the whole hash only", async () => {
      const { user } = await newAccount();
      const [{ hash }, { hash: other, credential }] = [await add(user), await add(user)];
      const near = Buffer.from(hash, "base64url");
      near[31] = (near[31] ?? 0) ^ 1;
      for (const unknown of [near.toString("base64url"), newHash(), hash.slice(0, 40), ZERO_HASH, ""])
        assert.equal(await accounts.findCredential(unknown), undefined);
      assert.deepEqual(await accounts.findCredential(other), credential);
    });

    test("credentials: list → oldest first, by user and kind", async () => {
      const [ann, bob] = [await newAccount(), await newAccount()];
      const ages = [3, 0, 4, 1, 2];
      const tokens: NewCredential[] = [];
      for (const age of ages) {
        tokens[age] = await add(ann.user, { createdAt: later(age) });
        await add(ann.user, { kind: "session", createdAt: later(age) });
        await add(bob.user, { createdAt: later(age) });
      }
      assert.deepEqual(
        await accounts.listCredentials(ann.user, "token"),
        tokens.map(({ credential }) => credential),
      );
      assert.equal((await accounts.listCredentials(ann.user, "session")).length, 5);
      assert.equal((await accounts.listCredentials(bob.user, "token")).length, 5);
      assert.deepEqual(await accounts.listCredentials(bob.user, "session"), []);
      assert.deepEqual(await accounts.listCredentials(ann.user, "invitation"), []);
      assert.deepEqual(await accounts.listCredentials(newUser(), "token"), []);
    });

    test("credentials: more than the maximum of their kind → rejected, by user and kind", async () => {
      const [ann, bob] = [await newAccount(), await newAccount()];
      const addTo = (user: UserId, kind: Credential["kind"] = "linked-user") =>
        accounts.addCredential(SERVER, credential(user, { kind }));
      for (let count = 0; count < 10; count += 1) assert.equal(await addTo(ann.user), "added");
      const refused = credential(ann.user, { kind: "linked-user" });
      assert.equal(await accounts.addCredential(SERVER, refused), "full");
      assert.equal(await accounts.findCredential(refused.hash), undefined);
      assert.equal(await addTo(ann.user, "passkey"), "added");
      assert.equal(await addTo(bob.user), "added");
      const [oldest = ""] = await idsOf(ann.user, "linked-user");
      await accounts.removeCredential(asUser(ann.user), "linked-user", oldest, NOW);
      assert.equal(await addTo(ann.user), "added");
      assert.equal(await addTo(ann.user), "full");
      assert.equal((await idsOf(ann.user, "linked-user")).length, 10);
    });

    test("credentials: removed with its sessions → only the session in `except` stays", async () => {
      const [ann, bob] = [await newAccount(), await newAccount()];
      const addTo = async (user: UserId, kind: Credential["kind"]) => {
        const added = credential(user, { kind });
        assert.equal(await accounts.addCredential(SERVER, added), "added");
        return added.credential.id;
      };
      const passkey = await addTo(ann.user, "passkey");
      const kept = await addTo(ann.user, "session");
      for (const user of [ann.user, bob.user])
        for (const kind of ["session", "token"] as const) await addTo(user, kind);
      const remove = () => accounts.removeCredential(asUser(ann.user), "passkey", passkey, NOW, { except: kept });
      assert.equal(await accounts.removeCredential(asUser(bob.user), "passkey", passkey, NOW, { except: kept }), false);
      assert.equal((await idsOf(bob.user, "session")).length, 1, "nothing was removed");
      assert.equal(await remove(), true);
      assert.deepEqual(await idsOf(ann.user, "session"), [kept]);
      assert.deepEqual([(await idsOf(ann.user, "token")).length, (await idsOf(bob.user, "session")).length], [1, 1]);
      assert.equal(await remove(), false);
    });

    test("credentials: counter replaced → only if it is the expected one", async () => {
      const { user } = await newAccount();
      const added = credential(user, { kind: "passkey", passkey: { id: "a", publicKey: "b", counter: 1 } });
      assert.equal(await accounts.addCredential(SERVER, added), "added");
      assert.equal(await accounts.replaceCounter(added.hash, 0, 2), false);
      assert.equal(await accounts.replaceCounter(added.hash, 1, 2), true);
      assert.equal((await accounts.findCredential(added.hash))?.passkey?.counter, 2);
      // Another credential with the same hash is not taken for a repeated attempt.
      const again = { ...added, credential: { ...added.credential, id: credential(user).credential.id } };
      assert.equal(await accounts.addCredential(SERVER, again), "gone");
    });

    test("credentials: many added at once → no more than allowed", async () => {
      const { user } = await newAccount();
      const outcomes = await Promise.all(
        times(30, () => accounts.addCredential(SERVER, credential(user, { kind: "linked-user" }))),
      );
      assert.equal(countOf(outcomes, "added"), 10);
      assert.equal(countOf(outcomes, "full"), 20);
      assert.equal((await idsOf(user, "linked-user")).length, 10);
    });

    test("credentials: no account → rejected, except invitations", async () => {
      const nobody = newUser();
      for (const kind of ["token", "session"] as const) {
        const refused = credential(nobody, { kind });
        assert.equal(await accounts.addCredential(SERVER, refused), "gone");
        assert.equal(await accounts.findCredential(refused.hash), undefined);
        assert.deepEqual(await idsOf(nobody, kind), []);
      }
      const { credential: invitation } = await invite();
      assert.ok((await idsOf(NOBODY, "invitation")).includes(invitation.id));
    });

    test("credentials: remove → by user, kind and id only", async () => {
      const [ann, bob] = [await newAccount(), await newAccount()];
      const { hash, credential } = await add(ann.user);
      const kept = await add(ann.user);
      const remove = (user: UserId, kind: Credential["kind"], id: string) =>
        accounts.removeCredential(asUser(user), kind, id, NOW);
      assert.equal(await remove(bob.user, "token", credential.id), false);
      assert.equal(await remove(NOBODY, "token", credential.id), false);
      assert.equal(await remove(ann.user, "session", credential.id), false);
      assert.equal(await remove(ann.user, "invitation", credential.id), false);
      assert.equal(await remove(ann.user, "token", randomUUID()), false);
      assert.deepEqual(await accounts.findCredential(hash), credential);
      assert.equal(await remove(ann.user, "token", credential.id), true);
      assert.equal(await remove(ann.user, "token", credential.id), false);
      assert.equal(await accounts.findCredential(hash), undefined);
      assert.deepEqual(await idsOf(ann.user, "token"), [kept.credential.id]);
      const { credential: invitation } = await invite();
      assert.equal(await remove(ann.user, "invitation", invitation.id), false);
      assert.equal(await remove(NOBODY, "invitation", invitation.id), true);
    });

    test("credentials: used → the latest use is stored", async () => {
      const { user } = await newAccount();
      const [{ hash, credential }, other] = [await add(user), await add(user)];
      for (const [used, expected] of [
        [1_001, 1_001],
        [500, 1_001],
        [1_001, 1_001],
        [86_400_001, 86_400_001],
      ] as const) {
        await accounts.touchCredential(hash, later(used));
        assert.deepEqual(await accounts.findCredential(hash), { ...credential, usedAt: later(expected) });
      }
      await Promise.all([5, 9, 7, 1, 8].map((day) => accounts.touchCredential(hash, later(day * 86_400_000))));
      assert.deepEqual((await accounts.findCredential(hash))?.usedAt, later(9 * 86_400_000));
      assert.deepEqual(await accounts.findCredential(other.hash), other.credential);
    });

    test("credentials: use of an unknown one → ignored", async () => {
      const { user } = await newAccount();
      const removed = await add(user);
      await accounts.removeCredential(asUser(user), "token", removed.credential.id, NOW);
      for (const hash of [newHash(), removed.hash]) {
        await accounts.touchCredential(hash, NOW);
        assert.equal(await accounts.findCredential(hash), undefined);
      }
      assert.deepEqual(await idsOf(user, "token"), []);
    });

    test("sweep: expired credentials → deleted, others stay", async () => {
      const { user } = await newAccount();
      const at = later(400 * 86_400_000);
      const idle = (ms: number) => new Date(at.getTime() - IDLE_MS + ms);
      const variants: Partial<Credential>[] = [
        {},
        { expiresAt: later(-1, at) },
        { expiresAt: at },
        { expiresAt: later(1, at) },
        { kind: "session", createdAt: idle(-1) },
        { kind: "session", createdAt: idle(0) },
        { kind: "session", createdAt: idle(1) },
        { kind: "session", usedAt: idle(-1) },
        { kind: "session", usedAt: idle(0) },
        { kind: "session", usedAt: idle(1) },
        { kind: "session", usedAt: at, expiresAt: at },
        { kind: "session", usedAt: at, expiresAt: later(1, at) },
        { usedAt: later(1) },
      ];
      const created: NewCredential[] = [];
      for (const variant of variants) created.push(await add(user, variant));
      for (const kind of ["invitation", "setup"] as const) {
        created.push(await add(NOBODY, { kind, expiresAt: later(-1, at) }));
        created.push(await add(NOBODY, { kind, expiresAt: later(1, at) }));
      }
      await accounts.sweep(at);
      for (const { hash, credential } of created)
        assert.deepEqual(
          await accounts.findCredential(hash),
          isValidAt(credential, at) ? credential : undefined,
          JSON.stringify(credential),
        );
      const left = created.filter(({ credential }) => credential.kind === "token" && isValidAt(credential, at));
      assert.equal((await idsOf(user, "token")).length, left.length);
      assert.equal((await accounts.get(user))?.account.user, user);
      await accounts.sweep(at);
    });
  });

  describe("shared limits", () => {
    test("limits: a key without state → undefined, then whatever replaced it", async () => {
      if (accounts.sharedRateLimits === undefined) return;
      const { read, replace } = accounts.sharedRateLimits;
      const key = `key ${randomUUID()}`;
      assert.equal(await read(key), undefined);
      assert.equal(await replace(key, undefined, NOW.getTime() + 0.1), true);
      assert.equal(await read(key), NOW.getTime() + 0.1);
      assert.equal(await read(`${key} `), undefined);
      assert.equal(await replace(key, NOW.getTime() + 0.1, NOW.getTime() + 1 / 3), true);
      assert.equal(await read(key), NOW.getTime() + 1 / 3);
    });

    test("limits: the state is not the expected one → not replaced", async () => {
      if (accounts.sharedRateLimits === undefined) return;
      const { read, replace } = accounts.sharedRateLimits;
      const key = `key ${randomUUID()}`;
      assert.equal(await replace(key, undefined, 1), true);
      assert.equal(await replace(key, undefined, 2), false);
      assert.equal(await replace(key, 3, 2), false);
      assert.equal(await read(key), 1);
    });

    test("limits: many replace the same state at once → one succeeds", async () => {
      if (accounts.sharedRateLimits === undefined) return;
      const { replace } = accounts.sharedRateLimits;
      const key = `key ${randomUUID()}`;
      const outcomes = await Promise.all(times(20, (index) => replace(key, undefined, index)));
      assert.equal(countOf(outcomes, true), 1);
    });

    test("limits: a sweep → removes what has expired and keeps the rest", async () => {
      if (accounts.sharedRateLimits === undefined) return;
      const { read, replace } = accounts.sharedRateLimits;
      const [expired, current] = [`key ${randomUUID()}`, `key ${randomUUID()}`];
      await replace(expired, undefined, later(8_000).getTime());
      await replace(current, undefined, later(10_000).getTime());
      await accounts.sweep(later(9_000));
      assert.deepEqual([await read(expired), await read(current)], [undefined, later(10_000).getTime()]);
    });
  });
}
