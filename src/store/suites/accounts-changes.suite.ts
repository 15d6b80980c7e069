import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { addTo, findOne, removeFrom } from "../../../test/support/lists.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { asUser, type Caller, type UserId } from "../../accounts/caller.ts";

import {
  type AccountsContext,
  addition,
  additions,
  countOf,
  credential,
  later,
  MEMBER,
  NOW,
  newAccountNamed,
  newHash,
  SERVER,
  times,
  ZERO_HASH,
} from "./accounts-test-support.ts";

export function describeAccountChanges(context: AccountsContext): void {
  const {
    accounts,
    subscriptions,
    newUser,
    newAccount,
    add,
    invite,
    idsOf,
    listOf,
    EMPTY,
    everythingOf,
    newAccountWithData,
    isAccessRevoked,
    assertDoneOrRevoked,
  } = context;

  describe("passwords", () => {
    test("passwords: changed meanwhile → not overwritten", async () => {
      const [{ user }, other] = [await newAccount(), await newAccount()];
      const current = (await accounts.get(user))?.passwordHash ?? "";
      const others = (await accounts.get(other.user))?.passwordHash ?? "";
      for (const expectedHash of ["", "hash of another", others])
        assert.equal(await accounts.setPassword(asUser(user), { passwordHash: "hash new", expectedHash }, NOW), false);
      assert.equal((await accounts.get(user))?.passwordHash, current);
      assert.equal(
        await accounts.setPassword(asUser(user), { passwordHash: `hash ${user}`, expectedHash: current }, NOW),
        true,
      );
      assert.equal((await accounts.get(user))?.passwordHash, `hash ${user}`);
      assert.equal((await accounts.get(other.user))?.passwordHash, others);
    });

    test("passwords: changed → other sessions end, tokens stay", async () => {
      const { user } = await newAccount();
      const other = await newAccountWithData();
      const before = await everythingOf(other.account.user);
      const token = await add(user);
      const [ended, kept] = [await add(user, { kind: "session" }), await add(user, { kind: "session" })];
      await add(user, { kind: "session" });
      assert.equal(
        await accounts.setPassword(asUser(user), { passwordHash: "new", keepSession: kept.credential.id }, NOW),
        true,
      );
      assert.equal((await accounts.get(user))?.passwordHash, "new");
      assert.equal((await accounts.find(`name-${user}`, ""))?.passwordHash, "new");
      assert.deepEqual(await accounts.listCredentials(user, "session"), [kept.credential]);
      assert.equal(await accounts.findCredential(ended.hash), undefined);
      assert.deepEqual(await accounts.findCredential(kept.hash), kept.credential);
      assert.deepEqual(await accounts.listCredentials(user, "token"), [token.credential]);
      assert.deepEqual(await everythingOf(other.account.user), before);
    });

    test("passwords: changed without a session to keep → all sessions end", async () => {
      const other = await newAccountWithData();
      for (const keepSession of [undefined, other.session.credential.id, randomUUID()]) {
        const { user } = await newAccount();
        await add(user, { kind: "session" });
        await add(user, { kind: "session" });
        assert.equal(await accounts.setPassword(asUser(user), { passwordHash: "new", keepSession }, NOW), true);
        assert.deepEqual(await accounts.listCredentials(user, "session"), []);
      }
      assert.deepEqual(await idsOf(other.account.user, "session"), [other.session.credential.id]);
    });

    test("passwords: no such account → false", async () => {
      const { user } = await newAccount();
      await accounts.delete(asUser(user), NOW);
      for (const nobody of [newUser(), NOBODY, user]) {
        assert.equal(await accounts.setPassword(asUser(nobody), { passwordHash: "new" }, NOW), false);
        assert.equal(await accounts.get(nobody), undefined);
      }
    });

    test("passwords: an old one → no session", async () => {
      const { user, passwordHash } = await newAccount();
      const session = () => credential(user, { kind: "session" });
      assert.equal(await accounts.addCredential(SERVER, { ...session(), password: { passwordHash: "wrong" } }), "gone");
      assert.equal(await accounts.addCredential(SERVER, { ...session(), password: { passwordHash: "" } }), "gone");
      assert.equal(await accounts.addCredential(SERVER, { ...session(), password: { passwordHash } }), "added");
      await accounts.setPassword(asUser(user), { passwordHash: "new" }, NOW);
      assert.equal(await accounts.addCredential(SERVER, { ...session(), password: { passwordHash } }), "gone");
      assert.equal((await accounts.listCredentials(user, "session")).length, 0);
      assert.equal(await accounts.addCredential(SERVER, { ...session(), password: { passwordHash: "new" } }), "added");
      assert.equal(
        await accounts.addCredential(SERVER, { ...credential(newUser()), password: { passwordHash: "" } }),
        "gone",
      );
    });

    test("passwords: changed while users sign in → no session with the old one remains", async () => {
      for (let round = 0; round < 5; round += 1) {
        const { user, passwordHash } = await newAccount();
        const open = () =>
          accounts.addCredential(SERVER, { ...credential(user, { kind: "session" }), password: { passwordHash } });
        const earlier = Promise.all(times(10, open));
        const changed = accounts.setPassword(asUser(user), { passwordHash: "new" }, NOW);
        const outcomes = [...(await Promise.all(times(10, open))), ...(await earlier)];
        assert.equal(await changed, true);
        assert.equal(countOf(outcomes, "added") + countOf(outcomes, "gone"), 20);
        assert.deepEqual(await accounts.listCredentials(user, "session"), []);
      }
    });
  });

  describe("deletion", () => {
    test("deletion: an account → all its data is gone, others keep theirs", async () => {
      const [{ account, token, session }, other] = [await newAccountWithData(), await newAccountWithData()];
      const invitation = await invite();
      const before = await everythingOf(other.account.user);
      assert.equal(before.list.total, 17);
      assert.equal(await accounts.delete(asUser(account.user), NOW), "deleted");

      assert.equal(await accounts.find(account.name, account.issuer), undefined);
      assert.equal(await accounts.get(account.user), undefined);
      for (const { hash } of [token, session]) assert.equal(await accounts.findCredential(hash), undefined);
      assert.deepEqual(await everythingOf(account.user), {
        account: undefined,
        list: EMPTY,
        tokens: [],
        sessions: [],
      });
      for (const { id } of additions(0, 20)) assert.equal(await findOne(subscriptions, account.user, id), undefined);

      assert.deepEqual(await everythingOf(other.account.user), before);
      assert.deepEqual(await accounts.findCredential(other.token.hash), other.token.credential);
      assert.deepEqual(await accounts.findCredential(invitation.hash), invitation.credential);
    });

    test("deletion: a second time → gone", async () => {
      const { user } = await newAccount();
      const outcomes = await Promise.all(times(10, () => accounts.delete(asUser(user), NOW)));
      assert.equal(countOf(outcomes, "deleted"), 1);
      assert.equal(await accounts.delete(asUser(user), NOW), "gone");
      assert.equal(await accounts.delete(asUser(newUser()), NOW), "gone");
      assert.equal(await accounts.delete(asUser(NOBODY), NOW), "gone");
    });

    test("deletion: a new account with the same name → starts empty", async () => {
      for (const issuer of ["", "https://id.example"]) {
        const name = `name-${newUser()}`;
        const [first, second] = [newUser(), newUser()];
        assert.equal(await accounts.create(first, newAccountNamed(name, { issuer }), NOW), first);
        await addTo(subscriptions, asUser(first), additions(0, 3), NOW);
        await add(first);
        await accounts.delete(asUser(first), NOW);
        assert.equal(
          await accounts.create(second, newAccountNamed(name, { issuer, passwordHash: "other" }), later(1)),
          second,
        );
        const account = {
          account: { user: second, name, issuer, createdAt: later(1), ...MEMBER },
          passwordHash: "other",
        };
        assert.deepEqual(await accounts.find(name, issuer), account);
        assert.deepEqual(await everythingOf(second), { account, list: EMPTY, tokens: [], sessions: [] });
        assert.equal(await accounts.get(first), undefined);
        await assert.rejects(addTo(subscriptions, asUser(first), additions(0, 1), NOW), isAccessRevoked);
      }
    });

    test("deletion: writes for a deleted user → rejected", async () => {
      const { account } = await newAccountWithData();
      await accounts.delete(asUser(account.user), NOW);
      await assert.rejects(addTo(subscriptions, asUser(account.user), additions(50, 1), NOW), isAccessRevoked);
      await assert.rejects(addTo(subscriptions, asUser(account.user), additions(0, 30), NOW), isAccessRevoked);
      await assert.rejects(removeFrom(subscriptions, asUser(account.user), addition(0).id, NOW), isAccessRevoked);
      await assert.rejects(removeFrom(subscriptions, asUser(account.user), addition(99).id, NOW), isAccessRevoked);
      for (const kind of ["token", "session"] as const) {
        const refused = credential(account.user, { kind });
        assert.equal(await accounts.addCredential(SERVER, refused), "gone");
        assert.equal(await accounts.findCredential(refused.hash), undefined);
      }
      assert.deepEqual(await listOf(account.user), EMPTY);
      assert.deepEqual(await idsOf(account.user, "token"), []);
      assert.deepEqual(await idsOf(account.user, "session"), []);
    });

    test("deletion: writes of others in the same batch → applied", async () => {
      const [gone, here] = [await newAccount(), await newAccount()];
      await accounts.delete(asUser(gone.user), NOW);
      const outcomes = await Promise.allSettled(
        times(40, (index) =>
          addTo(subscriptions, asUser((index % 2 === 0 ? gone : here).user), additions(10 * index, 10), NOW),
        ),
      );
      for (const [index, { status }] of outcomes.entries())
        assert.equal(status, index % 2 === 0 ? "rejected" : "fulfilled");
      assertDoneOrRevoked(outcomes);
      assert.equal((await listOf(here.user)).total, 200);
    });

    test("deletion: concurrent writes → leave nothing behind", async () => {
      for (let round = 0; round < 3; round += 1) {
        const { user } = await newAccount();
        await addTo(subscriptions, asUser(user), additions(0, 100), NOW);
        const write = (index: number): Promise<unknown> =>
          index % 3 === 2
            ? removeFrom(subscriptions, asUser(user), addition(index).id, NOW)
            : addTo(subscriptions, asUser(user), additions(1_000 + 50 * index, 1 + ((index * 17) % 100)), NOW);
        const earlier = Promise.allSettled(times(20, write));
        // Every other round waits for one write before it deletes.
        if (round % 2 === 1) await addTo(subscriptions, asUser(user), [addition(900)], NOW);
        const deleted = accounts.delete(asUser(user), NOW);
        const meanwhile = Promise.allSettled(times(20, (index) => write(20 + index)));
        assert.equal(await deleted, "deleted");
        const after = await Promise.allSettled(times(5, (index) => write(40 + index)));
        assertDoneOrRevoked([...(await earlier), ...(await meanwhile), ...after]);
        assert.ok(after.every(({ status }) => status === "rejected"));
        assert.deepEqual(await listOf(user), EMPTY);
        for (const { id } of additions(0, 100)) assert.equal(await findOne(subscriptions, user, id), undefined);
      }
    });

    test("deletion of a large account: another user writes → written before the deletion ends", async () => {
      const [large, other] = [await newAccount(), await newAccount()];
      const count = 10_000;
      for (let from = 0; from < count; from += 2_000)
        await addTo(subscriptions, asUser(large.user), additions(from, 2_000), NOW);
      await removeFrom(subscriptions, asUser(large.user), addition(1).id, NOW);
      const isLeft = async () => (await findOne(subscriptions, large.user, addition(0).id)) !== undefined;
      let isDeleted = false;
      const deleting = accounts.delete(asUser(large.user), NOW).finally(() => {
        isDeleted = true;
      });
      await addTo(subscriptions, asUser(other.user), additions(0, 3), NOW);
      assert.equal(isDeleted, false, "written while some of the list was still to be erased");
      while ((await accounts.get(large.user)) !== undefined) await setImmediate();
      assert.deepEqual(await listOf(large.user), EMPTY, "none of it is shown meanwhile");
      await assert.rejects(addTo(subscriptions, asUser(large.user), additions(count, 1), NOW), isAccessRevoked);
      assert.equal(await deleting, "deleted");
      assert.equal(await isLeft(), false);
      assert.equal((await listOf(other.user)).total, 3);
    });

    test("deletion: concurrent credentials → leave nothing behind", async () => {
      for (let round = 0; round < 5; round += 1) {
        const { user } = await newAccount();
        const added = times(20, () => credential(user));
        const earlier = Promise.all(added.slice(0, 10).map((one) => accounts.addCredential(SERVER, one)));
        const deleted = accounts.delete(asUser(user), NOW);
        const meanwhile = Promise.all(added.slice(10).map((one) => accounts.addCredential(SERVER, one)));
        assert.equal(await deleted, "deleted");
        const outcomes = [...(await earlier), ...(await meanwhile)];
        assert.equal(countOf(outcomes, "added") + countOf(outcomes, "gone"), 20);
        assert.deepEqual(await idsOf(user, "token"), []);
        for (const { hash } of added) assert.equal(await accounts.findCredential(hash), undefined);
      }
    });
  });

  describe("access", () => {
    const callerOf = (user: UserId, { hash }: { readonly hash: string }) => ({
      ...asUser(user),
      credentialHash: hash,
    });

    /** Every write that a request can ask for. `target` is a token that it may revoke. */
    const WRITES: Record<string, (caller: Caller, target: string, at: Date) => Promise<unknown>> = {
      "add, the first time": (caller, _, at) => addTo(subscriptions, caller, additions(100, 2), at),
      "add, another new feed": (caller, _, at) => addTo(subscriptions, caller, [addition(200)], at),
      "add, a conflict": (caller, _, at) => addTo(subscriptions, caller, [addition(0)], at),
      remove: (caller, _, at) => removeFrom(subscriptions, caller, addition(1).id, at),
      "remove, not there": (caller, _, at) => removeFrom(subscriptions, caller, addition(99).id, at),
      addCredential: (caller, _, at) => accounts.addCredential(caller, credential(caller.user, { createdAt: at })),
      removeCredential: (caller, target, at) => accounts.removeCredential(caller, "token", target, at),
      "removeCredential, not there": (caller, _, at) => accounts.removeCredential(caller, "token", randomUUID(), at),
      setPassword: (caller, _, at) => accounts.setPassword(caller, { passwordHash: newHash() }, at),
      delete: (caller, _, at) => accounts.delete(caller, at),
    };

    test("access: the credential is valid → every write is done", async () => {
      const { account, token, session } = await newAccountWithData();
      const caller = callerOf(account.user, session);
      for (const [name, write] of Object.entries(WRITES)) {
        if (name !== "setPassword") assert.ok((await write(caller, token.credential.id, NOW)) !== undefined, name);
      }
      assert.equal(await accounts.get(account.user), undefined, "the last write deleted it");
    });

    test("access: the credential is revoked, expired or unknown → no write is done", async () => {
      for (const kind of ["token", "session"] as const) {
        const { account, token } = await newAccountWithData();
        const { user } = account;
        const [revoked, expired] = [await add(user, { kind }), await add(user, { kind, expiresAt: later(1_000) })];
        assert.equal(await accounts.removeCredential(asUser(user), kind, revoked.credential.id, NOW), true);
        // After a successful addition, an engine might skip its checks.
        await addTo(subscriptions, callerOf(user, expired), [addition(50)], later(999));
        const before = await everythingOf(user);
        for (const [name, write] of Object.entries(WRITES)) {
          for (const hash of [revoked.hash, expired.hash, newHash(), ZERO_HASH]) {
            const written = write(callerOf(user, { hash }), token.credential.id, later(1_000));
            await assert.rejects(written, isAccessRevoked, `${kind}, ${name}`);
          }
        }
        assert.deepEqual(await everythingOf(user), before);
      }
    });

    test("access: password changed or account deleted → its sessions cannot write", async () => {
      for (const end of [
        (user: UserId) => accounts.setPassword(asUser(user), { passwordHash: "another hash" }, NOW),
        (user: UserId) => accounts.delete(asUser(user), NOW),
      ]) {
        const { account, session, token } = await newAccountWithData();
        assert.ok([true, "deleted"].includes(await end(account.user)));
        const before = await everythingOf(account.user);
        for (const [name, write] of Object.entries(WRITES))
          await assert.rejects(write(callerOf(account.user, session), token.credential.id, NOW), isAccessRevoked, name);
        assert.deepEqual(await everythingOf(account.user), before);
      }
    });

    test("access: concurrent writes with and without access → only those without are rejected", async () => {
      const { user } = await newAccount();
      const tokens = await Promise.all(times(4, () => add(user)));
      const [gone] = tokens;
      assert.ok(gone);
      await addTo(subscriptions, callerOf(user, tokens[1] ?? gone), additions(500, 2), NOW);
      await accounts.removeCredential(asUser(user), "token", gone.credential.id, NOW);
      const outcomes = await Promise.allSettled(
        times(40, (index) => {
          const caller = callerOf(user, tokens[index % 4] ?? gone);
          return index % 8 > 3
            ? removeFrom(subscriptions, caller, addition(index - 4).id, NOW)
            : addTo(subscriptions, caller, additions(index, 1), NOW);
        }),
      );
      for (const [index, outcome] of outcomes.entries())
        assert.equal(outcome.status, index % 4 === 0 ? "rejected" : "fulfilled", String(index));
      assertDoneOrRevoked(outcomes);
      assert.equal((await listOf(user)).total, 2);
    });

    test("access: two sessions end each other at once → one succeeds", async () => {
      for (let round = 0; round < 5; round += 1) {
        const { user } = await newAccount();
        const [one, other] = [await add(user, { kind: "session" }), await add(user, { kind: "session" })];
        const outcomes = await Promise.allSettled([
          accounts.removeCredential(callerOf(user, one), "session", other.credential.id, NOW),
          accounts.removeCredential(callerOf(user, other), "session", one.credential.id, NOW),
        ]);
        assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
        assertDoneOrRevoked(outcomes);
        assert.equal((await idsOf(user, "session")).length, 1);
      }
    });

    test("access: a session ends itself → done, and only once", async () => {
      const { user } = await newAccount();
      const session = await add(user, { kind: "session" });
      const end = () => accounts.removeCredential(callerOf(user, session), "session", session.credential.id, NOW);
      assert.equal(await end(), true);
      await assert.rejects(end(), isAccessRevoked);
    });
  });
}
