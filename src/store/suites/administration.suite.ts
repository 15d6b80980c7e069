import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addTo, removeFrom } from "../../../test/support/lists.ts";
import { type Credential, NOBODY } from "../../accounts/account-store.ts";
import { type AdminAction, AUDIT_MS, MAX_ROWS } from "../../accounts/administration-store.ts";
import { AccessRevoked, asUser, type Caller, LOCAL_USER, type UserId } from "../../accounts/caller.ts";
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
  SERVER,
  type Stores,
  times,
} from "./accounts-test-support.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

/** An administrator with a session. */
async function newAdmin({ accounts, administration }: Stores, user: UserId): Promise<Caller & { readonly id: string }> {
  const name = `admin-${user}`;
  assert.equal(await accounts.create(user, newAccountNamed(name, { isCreatedByOperator: false }), NOW), user);
  assert.equal(await administration.change(SERVER, user, "promote", NOW), "done");
  const session = credential(user, { kind: "session" });
  assert.equal(await accounts.addCredential(SERVER, session), "added");
  const actor = { name, address: "192.0.2.7" };
  return {
    ...asUser(user),
    credentialHash: session.hash,
    requiresAdmin: true,
    actor,
    id: session.credential.id,
  };
}

export function describeAdministration(context: AccountsContext): void {
  const {
    accounts,
    administration,
    subscriptions,
    openForTest,
    newUser,
    newAccount,
    add,
    invite,
    idsOf,
    newAccountWithData,
  } = context;
  const stores = { accounts, administration, subscriptions };
  const lastEntries = async (count: number) =>
    (await administration.auditLog({ offset: 0, size: count })).entries.map(({ action, actor, target, address }) => ({
      action,
      actor,
      target,
      address,
    }));
  /** Entries with this target, newest first. */
  const entriesOf = async (target: string) =>
    (await administration.auditLog({ offset: 0, size: 10_000 })).entries.filter((entry) => entry.target === target);

  describe("administration: pages", () => {
    test("administration: pages → oldest account first, each once, with the total", async (t) => {
      const fresh = await openForTest(t);
      const ids = times(7, (index) => 5_000 + index);
      for (const [age, user] of [3, 0, 6, 5, 1, 4, 2].map((age) => [age, ids[age] ?? 0] as const))
        await fresh.accounts.create(user, newAccountNamed(`n-${user}`, { isCreatedByOperator: false }), later(-age));
      for (const size of [1, 2, 3, 7, 8]) {
        const read: UserId[] = [];
        for (let offset = 0; offset < 9; offset += size) {
          const { accounts: some, total } = await fresh.administration.page({ offset, size });
          assert.equal(total, 7);
          read.push(...some.map(({ user }) => user));
        }
        assert.deepEqual(read, ids.toReversed());
      }
    });

    test("administration: an account → counts of its own data", async () => {
      const { account } = await newAccountWithData();
      const summary = { ...account, ...MEMBER, hasSecondFactor: false, seenAt: undefined, subscriptions: 17, rows: 20 };
      const { passwordHash: _, ...expected } = { passwordHash: "", ...summary };
      assert.deepEqual(await administration.get(account.user), expected);
      assert.equal(await administration.get(newUser()), undefined);
      const { accounts: all, total } = await administration.page({ offset: 0, size: 10_000 });
      assert.equal(all.length, total);
      assert.deepEqual(
        all.find(({ user }) => user === account.user),
        expected,
      );
    });

    test("administration: more rows than are counted → the maximum", async () => {
      const { user } = await newAccount();
      await addTo(subscriptions, asUser(user), additions(0, MAX_ROWS), NOW);
      await removeFrom(subscriptions, asUser(user), addition(1).id, NOW);
      const person = await administration.get(user);
      assert.deepEqual([person?.subscriptions, person?.rows], [MAX_ROWS - 1, MAX_ROWS]);
    });

    test("administration: seen on several days → the latest one is stored", async () => {
      const { user } = await newAccount();
      const day = new Date(Math.floor(NOW.getTime() / DAY_MS) * DAY_MS);
      for (const at of [day, later(-DAY_MS, day), day]) await administration.recordSeen(user, at);
      await administration.recordSeen(newUser(), day);
      assert.deepEqual((await administration.get(user))?.seenAt, day);
    });
  });

  describe("administration: changes", () => {
    test("administration: the first account of the operator → administrator, later ones not", async (t) => {
      const fresh = await openForTest(t);
      const isAdmin = async (user: UserId) => (await fresh.accounts.get(user))?.account.isAdmin;
      await fresh.accounts.create(4_711, newAccountNamed("stranger", { isCreatedByOperator: false }), NOW);
      assert.equal(await fresh.accounts.create(4_712, newAccountNamed("owner"), NOW), LOCAL_USER);
      await fresh.accounts.create(4_713, newAccountNamed("second"), NOW);
      assert.deepEqual([await isAdmin(4_711), await isAdmin(LOCAL_USER), await isAdmin(4_713)], [false, true, false]);
    });

    test("administration: disabled → no credential works, the data stays, and tokens work again when enabled", async () => {
      const { account, token, session } = await newAccountWithData();
      const { user } = account;
      const hash = (await accounts.get(user))?.passwordHash ?? "";
      const reset = await add(user, { kind: "password-reset" });
      const before = await subscriptions.page(user, { offset: 0, size: 100 });
      assert.equal(await administration.change(SERVER, user, "disable", later(5)), "done");
      assert.deepEqual((await accounts.get(user))?.account.disabledAt, later(5));
      assert.equal((await accounts.findCredential(token.hash))?.kind, "disabled-token");
      for (const gone of [session, reset]) assert.equal(await accounts.findCredential(gone.hash), undefined);
      assert.deepEqual(await idsOf(user, "token"), []);
      for (const caller of [
        { ...asUser(user), credentialHash: token.hash },
        { ...asUser(user), credentialHash: session.hash },
        { ...asUser(user), passwordHash: hash },
      ]) {
        await assert.rejects(addTo(subscriptions, caller, [addition(99)], NOW), AccessRevoked);
        await assert.rejects(accounts.delete({ ...caller, user }, NOW), AccessRevoked);
      }
      for (const kind of ["session", "token", "password-reset"] as const)
        assert.equal(await accounts.addCredential(SERVER, credential(user, { kind })), "gone");
      assert.deepEqual(await subscriptions.page(user, { offset: 0, size: 100 }), before);

      assert.equal(await administration.change(SERVER, user, "enable", NOW), "done");
      assert.deepEqual(await accounts.findCredential(token.hash), token.credential);
      assert.equal(await accounts.findCredential(session.hash), undefined);
      const [outcome] = await addTo(
        subscriptions,
        { ...asUser(user), credentialHash: token.hash },
        [addition(99)],
        NOW,
      );
      assert.equal(outcome?.kind, "done");
    });

    test("administration: disabled while its token writes → no write after that is confirmed", async () => {
      for (let round = 0; round < 3; round += 1) {
        const { account, token } = await newAccountWithData();
        const caller = { ...asUser(account.user), credentialHash: token.hash };
        let isDone = false;
        const writers = times(3, async (index) => {
          for (let next = 1_000 * (index + 1); !isDone; next += 1)
            await addTo(subscriptions, caller, [addition(next)], NOW).catch((error: unknown) =>
              assert.ok(error instanceof AccessRevoked, String(error)),
            );
        });
        await administration.change(SERVER, account.user, "disable", NOW);
        const { total } = await subscriptions.page(account.user, { offset: 0, size: 1 });
        await new Promise((resolve) => setTimeout(resolve, 20));
        isDone = true;
        await Promise.all(writers);
        assert.equal((await subscriptions.page(account.user, { offset: 0, size: 1 })).total, total);
      }
    });

    test("administration: a change without effect → done and not logged; an unknown account → gone", async () => {
      const { user, name } = await newAccount();
      for (const kind of ["enable", "demote", "disable", "disable", "promote", "promote"] as const)
        assert.equal(await administration.change(SERVER, user, kind, NOW), "done");
      assert.deepEqual((await entriesOf(name)).map(({ action }) => action).toSorted(), [
        "account-created",
        "account-disabled",
        "administrator-added",
      ]);
      assert.equal(await administration.change(SERVER, newUser(), "disable", NOW), "gone");
      await accounts.delete(asUser(user), NOW);
    });

    test("administration: not or no longer an administrator → nothing is changed", async () => {
      const admin = await newAdmin(stores, newUser());
      const { account: target } = await newAccountWithData();
      const invitation = await invite();
      const member = await newAccount();
      const session = await add(member.user, { kind: "session" });
      const refused: Caller[] = [{ ...admin, user: member.user, credentialHash: session.hash }];
      assert.equal(await administration.change(SERVER, admin.user, "demote", NOW), "done");
      refused.push(admin);
      const disabled = await newAdmin(stores, newUser());
      assert.equal(await administration.change(SERVER, disabled.user, "disable", NOW), "done");
      refused.push(disabled, { ...disabled, credentialHash: undefined });
      const signedOut = await newAdmin(stores, newUser());
      await accounts.removeCredential(asUser(signedOut.user), "session", signedOut.id, NOW);
      refused.push(signedOut);
      const before = (await accounts.get(target.user))?.account;
      const entries = (await administration.auditLog({ offset: 0, size: 1 })).total;
      for (const caller of refused) {
        for (const kind of ["disable", "enable", "promote", "demote"] as const)
          await assert.rejects(administration.change(caller, target.user, kind, NOW), AccessRevoked);
        await assert.rejects(accounts.delete(caller, NOW, target.user), AccessRevoked);
        await assert.rejects(accounts.addCredential(caller, credential(NOBODY, { kind: "invitation" })), AccessRevoked);
        await assert.rejects(
          accounts.addCredential(caller, credential(target.user, { kind: "password-reset" })),
          AccessRevoked,
        );
        await assert.rejects(
          accounts.removeCredential(caller, "invitation", invitation.credential.id, NOW),
          AccessRevoked,
        );
      }
      assert.deepEqual((await accounts.get(target.user))?.account, before);
      assert.deepEqual(await accounts.findCredential(invitation.hash), invitation.credential);
      assert.equal((await administration.auditLog({ offset: 0, size: 1 })).total, entries);
    });
  });

  describe("administration: the last administrator", () => {
    test("administration: the last administrator → cannot be demoted, disabled or deleted while there are others", async (t) => {
      const fresh = await openForTest(t);
      await fresh.accounts.create(4_711, newAccountNamed("ann"), NOW);
      await fresh.accounts.create(4_712, newAccountNamed("bob"), NOW);
      const admin = async () => (await fresh.accounts.get(LOCAL_USER))?.account;
      const before = await admin();
      const refuse = async () => {
        for (const kind of ["demote", "disable"] as const)
          assert.equal(await fresh.administration.change(SERVER, LOCAL_USER, kind, NOW), "last-admin");
        assert.equal(await fresh.accounts.delete(asUser(LOCAL_USER), NOW), "last-admin");
        assert.deepEqual(await admin(), before);
      };
      await refuse();
      // A disabled administrator does not count.
      assert.equal(await fresh.administration.change(SERVER, 4_712, "promote", NOW), "done");
      assert.equal(await fresh.administration.change(SERVER, 4_712, "disable", NOW), "done");
      await refuse();
      assert.equal(await fresh.administration.change(SERVER, 4_712, "enable", NOW), "done");
      assert.equal(await fresh.administration.change(SERVER, LOCAL_USER, "demote", NOW), "done");
      assert.equal(await fresh.accounts.delete(asUser(4_712), NOW), "last-admin");
      assert.equal(await fresh.accounts.delete(asUser(LOCAL_USER), NOW), "deleted");
      // Without other accounts there is nobody to administer.
      assert.equal(await fresh.accounts.delete(asUser(4_712), NOW), "deleted");
      assert.equal(await fresh.accounts.isEmpty(), true);
    });

    test("administration: administrators demote, disable and delete each other at once → one remains", async (t) => {
      const fresh = await openForTest(t);
      await fresh.accounts.create(4_711, newAccountNamed("owner"), NOW);
      const ways: readonly (AdminAction | "delete")[] = ["demote", "disable", "delete"];
      for (const [round, way] of [...ways, ...ways].entries()) {
        const users = times(4, (index) => 10_000 + 10 * round + index);
        const admins = await Promise.all(users.map((user) => newAdmin(fresh, user)));
        for (const { user } of (await fresh.administration.page({ offset: 0, size: 100 })).accounts)
          if (!users.includes(user)) await fresh.administration.change(SERVER, user, "demote", NOW);
        const outcomes = await Promise.allSettled(
          admins.map((admin, index) => {
            const target = users[(index + 1) % users.length] ?? 0;
            return way === "delete"
              ? fresh.accounts.delete(admin, NOW, target)
              : fresh.administration.change(admin, target, way, NOW);
          }),
        );
        for (const outcome of outcomes)
          if (outcome.status === "rejected") assert.ok(outcome.reason instanceof AccessRevoked, `${outcome.reason}`);
        const { accounts: all } = await fresh.administration.page({ offset: 0, size: 100 });
        const active = all.filter(({ isAdmin, disabledAt }) => isAdmin && disabledAt === undefined);
        assert.ok(active.length >= 1, `${way}: ${JSON.stringify(outcomes)}`);
        assert.ok(active.length < users.length, "at least one change succeeded");
      }
    });
  });

  describe("administration: the audit log", () => {
    test("audit log: every action → who, what, target and address, in the same order", async () => {
      const admin = await newAdmin(stores, newUser());
      const { actor } = admin;
      assert.ok(actor);
      const by = { actor: actor.name, address: actor.address };
      const joined = { actor: { name: "joined", address: "192.0.2.9" } };
      const one = await newAccount();
      let ms = 0;
      const next = () => {
        ms += 1;
        return later(ms, new Date("2040-01-01T00:00:00.000Z"));
      };
      const at = (more: Partial<Credential>): Partial<Credential> => ({ ...more, createdAt: next() });
      const invitation = credential(NOBODY, at({ kind: "invitation", label: "for Bob" }));
      const revoked = credential(NOBODY, at({ kind: "invitation", label: "a mistake" }));
      assert.equal(await accounts.addCredential(admin, invitation), "added");
      assert.equal(await accounts.addCredential(admin, revoked), "added");
      assert.equal(await accounts.removeCredential(admin, "invitation", revoked.credential.id, next()), true);
      assert.equal(await accounts.removeCredential(admin, "invitation", revoked.credential.id, next()), false);
      const name = `joined-${admin.user}`;
      const account = {
        ...newAccountNamed(name, { isCreatedByOperator: false, invitationHash: invitation.hash }),
        ...joined,
      };
      const user = newUser();
      assert.equal(await accounts.create(user, account, next()), user);
      const signedUp = { ...newAccountNamed(`${name}-2`, { isCreatedByOperator: false }), ...joined };
      assert.equal(await accounts.create(newUser(), signedUp, next()), user + 1);
      const reset = credential(user, at({ kind: "password-reset" }));
      assert.equal(await accounts.addCredential(admin, reset), "added");
      const caller = { ...asUser(user), credentialHash: reset.hash };
      const set = { passwordHash: "new", resetBy: joined.actor };
      assert.equal(await accounts.setPassword(caller, set, next()), true);
      await assert.rejects(accounts.setPassword(caller, { ...set, passwordHash: "newer" }, next()), AccessRevoked);
      for (const kind of ["promote", "demote", "disable", "enable"] as const)
        assert.equal(await administration.change(admin, user, kind, next()), "done");
      assert.equal(await accounts.delete(admin, next(), user), "deleted");
      assert.equal(await accounts.delete(asUser(one.user), next()), "deleted");
      // Nothing that a user does with their own credentials is logged.
      await add((await newAccount()).user);

      const expected = [
        { action: "invitation-created", ...by, target: "for Bob" },
        { action: "invitation-created", ...by, target: "a mistake" },
        { action: "invitation-revoked", ...by, target: "a mistake" },
        { action: "account-joined", actor: "joined", address: "192.0.2.9", target: name },
        { action: "account-signed-up", actor: "joined", address: "192.0.2.9", target: `${name}-2` },
        { action: "reset-link-created", ...by, target: name },
        { action: "password-reset", actor: "joined", address: "192.0.2.9", target: name },
        { action: "administrator-added", ...by, target: name },
        { action: "administrator-removed", ...by, target: name },
        { action: "account-disabled", ...by, target: name },
        { action: "account-enabled", ...by, target: name },
        { action: "account-deleted", ...by, target: name },
        { action: "account-deleted", actor: "command line", address: "", target: one.name },
      ];
      assert.deepEqual(await lastEntries(expected.length), expected.toReversed());
    });

    test("audit log: pages → newest first, each entry once; after 400 days → deleted", async (t) => {
      const fresh = await openForTest(t);
      for (const [index, days] of [0, 399, 400, 401].entries())
        await fresh.accounts.create(5_000 + index, newAccountNamed(`n-${days}`), later(-days * DAY_MS));
      const read = async () => {
        const pages = await Promise.all([0, 2, 4].map((offset) => fresh.administration.auditLog({ offset, size: 2 })));
        return { total: pages[0]?.total, targets: pages.flatMap(({ entries }) => entries.map(({ target }) => target)) };
      };
      assert.deepEqual(await read(), { total: 4, targets: ["n-0", "n-399", "n-400", "n-401"] });
      await fresh.accounts.sweep(NOW);
      assert.deepEqual(await read(), { total: 2, targets: ["n-0", "n-399"] });
      assert.equal(AUDIT_MS, 400 * DAY_MS);
    });
  });

  describe("administration: reset links", () => {
    test("reset link: used by many at once → one password is set", async () => {
      const { user } = await newAccount();
      const [reset, other] = [await add(user, { kind: "password-reset" }), await add(user, { kind: "password-reset" })];
      const tries = await Promise.allSettled(
        times(8, (index) =>
          accounts.setPassword({ ...asUser(user), credentialHash: reset.hash }, { passwordHash: `new ${index}` }, NOW),
        ),
      );
      const done = tries.map((attempt) => (attempt.status === "fulfilled" ? attempt.value : "refused"));
      assert.deepEqual([countOf<unknown>(done, true), countOf<unknown>(done, "refused")], [1, 7]);
      assert.equal((await accounts.get(user))?.passwordHash, `new ${done.indexOf(true)}`);
      for (const { hash } of [reset, other]) assert.equal(await accounts.findCredential(hash), undefined);
    });

    test("passwords: changed and tokens revoked → no token remains", async () => {
      const { account, token } = await newAccountWithData();
      const set = { passwordHash: `hash ${account.user}`, revokesTokens: true };
      assert.equal(await accounts.setPassword(asUser(account.user), set, NOW), true);
      assert.equal(await accounts.findCredential(token.hash), undefined);
    });
  });
}
