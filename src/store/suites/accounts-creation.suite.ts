import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addTo, removeFrom } from "../../../test/support/lists.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { asUser, LOCAL_USER, type UserId } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";

import {
  type AccountsContext,
  addition,
  additions,
  countOf,
  credential,
  MEMBER,
  NOW,
  newAccountNamed,
  newHash,
  SERVER,
  times,
  ZERO_HASH,
} from "./accounts-test-support.ts";

export function describeCreation(context: AccountsContext): void {
  const {
    accounts,
    subscriptions,
    openForTest,
    newUser,
    newAccount,
    add,
    invite,
    idsOf,
    listOf,
    EMPTY,
    isAccessRevoked,
  } = context;

  describe("first account", () => {
    test("first account: a local list → taken over", async (t) => {
      const fresh = await openForTest(t);
      assert.equal(await fresh.accounts.isEmpty(), true);
      assert.deepEqual(await fresh.administration.page({ offset: 0, size: 10 }), { accounts: [], total: 0 });
      await addTo(fresh.subscriptions, asUser(LOCAL_USER), additions(0, 10), NOW);
      await removeFrom(fresh.subscriptions, asUser(LOCAL_USER), addition(4).id, NOW);
      const before = await listOf(LOCAL_USER, fresh.subscriptions);
      assert.equal(before.total, 9);

      assert.equal(await fresh.accounts.isEmpty(), true, "a list is not an account");
      const ann = newAccountNamed("ann");
      assert.equal(await fresh.accounts.create(4_711, ann, NOW), LOCAL_USER);
      assert.equal(await fresh.accounts.isEmpty(), false);
      const kept = {
        account: { user: LOCAL_USER, name: "ann", issuer: "", createdAt: NOW, ...MEMBER, isAdmin: true },
        passwordHash: ann.passwordHash,
      };
      assert.deepEqual(await fresh.accounts.get(LOCAL_USER), kept);
      assert.deepEqual(await fresh.accounts.find("ann", ""), kept);
      assert.equal(await fresh.accounts.get(4_711), undefined);
      assert.deepEqual(await listOf(LOCAL_USER, fresh.subscriptions), before);
      assert.deepEqual(await listOf(4_711, fresh.subscriptions), EMPTY);
      const [outcome] = await addTo(fresh.subscriptions, asUser(LOCAL_USER), [addition(100)], NOW);
      assert.equal(outcome?.kind, "done");

      assert.equal(await fresh.accounts.create(4_712, newAccountNamed("bob"), NOW), 4_712);
      assert.deepEqual(await listOf(4_712, fresh.subscriptions), EMPTY);
      assert.deepEqual(
        (await fresh.administration.page({ offset: 0, size: 10 })).accounts.map(({ user, name }) => [user, name]),
        [
          [LOCAL_USER, "ann"],
          [4_712, "bob"],
        ],
      );
    });

    test("first account: deleted → its list is gone, and no other account gets its user id", async (t) => {
      const fresh = await openForTest(t);
      await addTo(fresh.subscriptions, asUser(LOCAL_USER), additions(0, 10), NOW);
      assert.equal(await fresh.accounts.create(4_711, newAccountNamed("ann"), NOW), LOCAL_USER);
      assert.equal(await fresh.accounts.delete(asUser(LOCAL_USER), NOW), "deleted");
      assert.equal(await fresh.accounts.isEmpty(), true);
      assert.equal(await fresh.accounts.get(LOCAL_USER), undefined);
      assert.deepEqual(await listOf(LOCAL_USER, fresh.subscriptions), EMPTY);
      await assert.rejects(addTo(fresh.subscriptions, asUser(LOCAL_USER), additions(0, 1), NOW), isAccessRevoked);

      assert.equal(await fresh.accounts.create(4_712, newAccountNamed("ann"), NOW), 4_712);
      assert.equal(await fresh.accounts.create(4_713, newAccountNamed("bob"), NOW), 4_713);
      assert.equal(await fresh.accounts.delete(asUser(4_713), NOW), "deleted");
      assert.equal(await fresh.accounts.delete(asUser(4_712), NOW), "deleted");
      assert.equal(await fresh.accounts.isEmpty(), true);
      assert.equal(await fresh.accounts.create(4_714, newAccountNamed("ann"), NOW), 4_714);
      assert.deepEqual(await listOf(4_714, fresh.subscriptions), EMPTY);
      assert.deepEqual(await listOf(LOCAL_USER, fresh.subscriptions), EMPTY);
    });

    test("first account: many created at once → one takes over the list", async (t) => {
      const fresh = await openForTest(t);
      const created = await Promise.all(
        times(5, (index) => fresh.accounts.create(4_711 + index, newAccountNamed(`name-${index}`), NOW)),
      );
      assert.equal(countOf(created, LOCAL_USER), 1);
      for (const [index, user] of created.entries()) {
        assert.ok(user === LOCAL_USER || user === 4_711 + index, `${user}`);
        assert.equal((await fresh.accounts.find(`name-${index}`, ""))?.account.user, user);
      }
      assert.equal((await fresh.administration.page({ offset: 0, size: 10 })).accounts.length, 5);
    });

    test("setup link: the first account exists → rejected", async (t) => {
      const fresh = await openForTest(t);
      const [used, left] = [credential(NOBODY, { kind: "setup" }), credential(NOBODY, { kind: "setup" })];
      assert.equal(await fresh.accounts.addCredential(SERVER, used), "added");
      assert.equal(await fresh.accounts.addCredential(SERVER, left), "added");
      assert.equal(
        await fresh.accounts.create(4_711, newAccountNamed("ann", { invitationHash: used.hash }), NOW),
        LOCAL_USER,
      );
      for (const { hash } of [used, left])
        assert.equal(
          await fresh.accounts.create(4_712, newAccountNamed("bob", { invitationHash: hash }), NOW),
          "invalid-invitation",
        );
      assert.equal(await fresh.accounts.find("bob", ""), undefined);
      assert.equal(await fresh.accounts.findCredential(used.hash), undefined);
    });

    test("setup links: many used at once → one account", async (t) => {
      const fresh = await openForTest(t);
      const setups = times(10, () => credential(NOBODY, { kind: "setup" }));
      for (const setup of setups) assert.equal(await fresh.accounts.addCredential(SERVER, setup), "added");
      const created = await Promise.all(
        setups.map(({ hash }, index) =>
          fresh.accounts.create(4_711 + index, newAccountNamed(`name-${index}`, { invitationHash: hash }), NOW),
        ),
      );
      assert.equal(countOf(created, LOCAL_USER), 1);
      assert.equal(countOf(created, "invalid-invitation"), 9);
      assert.equal((await fresh.administration.page({ offset: 0, size: 20 })).accounts.length, 1);
    });
  });

  describe("names", () => {
    test("names: a new account → stored exactly", async () => {
      const user = newUser();
      const at = new Date("2031-12-31T23:59:59.999Z");
      const passwordHash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA";
      assert.equal(await accounts.create(user, newAccountNamed(`ann.${user}@x+y`, { passwordHash }), at), user);
      const kept = { account: { user, name: `ann.${user}@x+y`, issuer: "", createdAt: at, ...MEMBER }, passwordHash };
      assert.deepEqual(await accounts.find(`ann.${user}@x+y`, ""), kept);
      assert.deepEqual(await accounts.get(user), kept);
    });

    test("names: unknown → not found", async () => {
      const { name } = await newAccount();
      for (const [other, issuer] of [
        [`${name}x`, ""],
        ["", ""],
        [name.toUpperCase(), ""],
        [name, "https://id.example"],
      ] as const)
        assert.equal(await accounts.find(other, issuer), undefined);
      assert.equal(await accounts.get(newUser()), undefined);
      assert.equal(await accounts.get(NOBODY), undefined);
    });

    test("names: taken → rejected, per issuer", async () => {
      const name = `name-${newUser()}`;
      const issuers = ["", "https://id.example", "https://id.example/", "https://ID.example"];
      const owners = issuers.map(newUser);
      for (const [index, issuer] of issuers.entries()) {
        const user = owners[index] ?? NOBODY;
        assert.equal(
          await accounts.create(user, newAccountNamed(name, { issuer, passwordHash: `hash ${user}` }), NOW),
          user,
        );
      }
      for (const [index, issuer] of issuers.entries()) {
        const user = newUser();
        assert.equal(await accounts.create(user, newAccountNamed(name, { issuer }), NOW), "name-taken");
        assert.equal(await accounts.get(user), undefined);
        const found = await accounts.find(name, issuer);
        assert.deepEqual([found?.account.user, found?.passwordHash], [owners[index], `hash ${owners[index]}`]);
      }
    });

    test("names: any subject of an identity provider → stored exactly", async () => {
      const issuer = "https://id.example";
      const run = newUser();
      const subjects = [
        `Ann ${run}`,
        `ann ${run}`,
        `ann ${run} `,
        ` ann ${run}`,
        `\u00e9 ${run}`,
        `e\u0301 ${run}`,
        `'"\\;--%_\t\n\u0001\u202e ${run}`,
        `👩‍👩‍👧 名前 ${run}`,
        "x".repeat(255),
        `${"x".repeat(254)}y`,
        "\u{10ffff}".repeat(254) + String.fromCodePoint(0x1f3a7),
        "\u{10ffff}".repeat(254) + String.fromCodePoint(0x1f3a8),
      ];
      const created = new Map<UserId, string>();
      for (const subject of subjects) {
        const user = newUser();
        assert.equal(await accounts.create(user, newAccountNamed(subject, { issuer, passwordHash: "" }), NOW), user);
        created.set(user, subject);
      }
      for (const [user, name] of created) {
        const kept = { account: { user, name, issuer, createdAt: NOW, ...MEMBER }, passwordHash: "" };
        assert.deepEqual(await accounts.find(name, issuer), kept);
        assert.deepEqual(await accounts.get(user), kept);
      }
    });

    test("accounts: a user id that is in use → rejected", async () => {
      const [{ user, name }, reader] = [await newAccount(), newUser()];
      await addTo(subscriptions, asUser(reader), additions(1, 1), NOW);
      for (const taken of [user, reader])
        await assert.rejects(accounts.create(taken, newAccountNamed(`name-${newUser()}`), NOW), StoreUnavailable);
      assert.equal((await accounts.get(user))?.account.name, name);
      assert.equal(await accounts.get(reader), undefined);
    });

    test("names: that of a deleted account → available again", async () => {
      const issuer = "https://id.example";
      const [gone, other, next] = [newUser(), newUser(), newUser()];
      for (const user of [gone, other])
        assert.equal(await accounts.create(user, newAccountNamed(`name-${user}`, { issuer }), NOW), user);
      assert.equal(await accounts.delete(asUser(gone), NOW), "deleted");
      assert.equal((await accounts.find(`name-${other}`, issuer))?.account.user, other);
      assert.equal(await accounts.create(next, newAccountNamed(`name-${gone}`, { issuer }), NOW), next);
    });

    test("names: many at once → one gets it", async () => {
      const name = `name-${newUser()}`;
      const users = times(20, newUser);
      const outcomes = await Promise.all(users.map((user) => accounts.create(user, newAccountNamed(name), NOW)));
      assert.equal(countOf(outcomes, "name-taken"), 19);
      const winner = outcomes.find((outcome) => typeof outcome === "number");
      assert.equal(winner, users[outcomes.indexOf(winner ?? "name-taken")]);
      assert.equal((await accounts.find(name, ""))?.account.user, winner);
      for (const user of users) assert.equal((await accounts.get(user))?.account.user === user, user === winner);
    });
  });

  describe("invitations", () => {
    test("invitations: used → one account", async () => {
      const [user, { hash, credential }] = [newUser(), await invite()];
      assert.equal(await accounts.create(user, newAccountNamed(`name-${user}`, { invitationHash: hash }), NOW), user);
      assert.equal(await accounts.findCredential(hash), undefined);
      assert.ok(!(await idsOf(NOBODY, "invitation")).includes(credential.id));
      const second = newUser();
      assert.equal(
        await accounts.create(second, newAccountNamed(`name-${second}`, { invitationHash: hash }), NOW),
        "invalid-invitation",
      );
      assert.equal(await accounts.get(second), undefined);
    });

    test("invitations: one is used → others stay valid", async () => {
      const [used, left] = [await invite(), await invite()];
      await newAccount({ invitationHash: used.hash });
      assert.deepEqual(await accounts.findCredential(left.hash), left.credential);
      await newAccount({ invitationHash: left.hash });
    });

    test("invitations: a local list → not taken over", async (context) => {
      const { accounts: others, subscriptions: lists } = await openForTest(context);
      await addTo(lists, asUser(LOCAL_USER), additions(1, 3), NOW);
      const [stranger, ann] = [newUser(), newUser()];
      assert.equal(
        await others.create(stranger, newAccountNamed("stranger", { isCreatedByOperator: false }), NOW),
        stranger,
      );
      assert.equal((await lists.page(stranger, { offset: 0, size: 10 })).total, 0);
      assert.equal(await others.delete(asUser(stranger), NOW), "deleted", "not the local user");
      assert.equal(await others.create(ann, newAccountNamed("ann"), NOW), LOCAL_USER);
      assert.equal((await lists.page(LOCAL_USER, { offset: 0, size: 10 })).total, 3);
      assert.equal(await others.create(ann, newAccountNamed("bob"), NOW), ann);
    });

    test("invitations: another credential → rejected", async () => {
      const { user } = await newAccount();
      const token = await add(user);
      const session = await add(user, { kind: "session" });
      const setup = await invite("setup");
      // The first credential in the index must not be mistaken for a missing one.
      const first = {
        ...credential(NOBODY, { kind: "invitation" }),
        hash: Buffer.alloc(32, "\0\u0001").toString("base64url"),
      };
      assert.equal(await accounts.addCredential(SERVER, first), "added");
      for (const invitationHash of [newHash(), token.hash, session.hash, setup.hash, ZERO_HASH]) {
        const invited = newUser();
        const outcome = await accounts.create(invited, newAccountNamed(`name-${invited}`, { invitationHash }), NOW);
        assert.equal(outcome, "invalid-invitation");
        assert.equal(await accounts.get(invited), undefined);
        assert.equal(await accounts.find(`name-${invited}`, ""), undefined);
      }
      assert.deepEqual(await accounts.findCredential(token.hash), token.credential);
      assert.deepEqual(await accounts.findCredential(session.hash), session.credential);
      assert.equal(await accounts.removeCredential(asUser(NOBODY), "invitation", first.credential.id, NOW), true);
    });

    test("invitations: the name is taken → still valid", async () => {
      const { name } = await newAccount();
      const { hash, credential } = await invite();
      assert.equal(
        await accounts.create(newUser(), newAccountNamed(name, { invitationHash: hash }), NOW),
        "name-taken",
      );
      assert.deepEqual(await accounts.findCredential(hash), credential);
      await newAccount({ invitationHash: hash });
    });

    test("invitations: many use one at once → one account", async () => {
      const { hash } = await invite();
      const invited = times(20, newUser);
      const outcomes = await Promise.all(
        invited.map((user) => accounts.create(user, newAccountNamed(`name-${user}`, { invitationHash: hash }), NOW)),
      );
      assert.equal(countOf(outcomes, "invalid-invitation"), 19);
      const found = await Promise.all(invited.map((user) => accounts.get(user)));
      assert.deepEqual(
        found.map((account) => account !== undefined),
        outcomes.map((outcome) => outcome !== "invalid-invitation"),
      );
    });

    test("invitations: many with the same name at once → only one is used", async () => {
      const name = `name-${newUser()}`;
      const invitations = await Promise.all(times(10, () => invite()));
      const outcomes = await Promise.all(
        invitations.map(({ hash }) => accounts.create(newUser(), newAccountNamed(name, { invitationHash: hash }), NOW)),
      );
      assert.equal(countOf(outcomes, "name-taken"), 9);
      for (const [index, { hash, credential }] of invitations.entries())
        assert.deepEqual(
          await accounts.findCredential(hash),
          outcomes[index] === "name-taken" ? credential : undefined,
        );
    });
  });
}
