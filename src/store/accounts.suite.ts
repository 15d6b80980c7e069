import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, type TestContext, test } from "node:test";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { addTo, findOne, removeFrom } from "../../test/lists.ts";
import {
  type Account,
  type AccountStore,
  type Credential,
  isAlive,
  type NewAccount,
  type NewCredential,
  NOBODY,
  SESSION_IDLE_MS,
  type Store,
} from "../account-store.ts";
import { Accounts, hashSecret } from "../accounts.ts";
import {
  AccessRevoked,
  asUser,
  type Caller,
  type Draft,
  isRefusal,
  LOCAL_USER,
  StoreUnavailable,
  type SubscriptionStore,
  type UserId,
} from "../subscriptions.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const LARGEST_USER: UserId = 2 ** 48 - 2;
/** Adds credentials without a credential of its own. */
const SERVER = asUser(NOBODY);

interface Stores {
  readonly accounts: AccountStore;
  readonly subscriptions: SubscriptionStore;
}

const later = (ms: number, from = NOW) => new Date(from.getTime() + ms);
const newHash = () => hashSecret(randomUUID());
const NO_HASH = Buffer.alloc(32).toString("base64url");
const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const countOf = <T>(values: readonly T[], wanted: T) => values.filter((value) => value === wanted).length;

function draft(number: number): Draft {
  const id = `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
  return { kind: "add", id, feedUrl: `https://feeds.example/${number}/`, feed: `feeds.example/${number}` };
}

const drafts = (from: number, count: number) => times(count, (index) => draft(from + index));

/** As with real hashes, no two passwords are alike: an engine may know by them what it has done already. */
function wish(name: string, more: Partial<NewAccount> = {}): NewAccount {
  return { name, issuer: "", password: `hash ${randomUUID()}`, isOwner: true, invitation: undefined, ...more };
}

function credential(user: UserId, more: Partial<Credential> = {}): NewCredential {
  return {
    credential: {
      id: randomUUID(),
      kind: "token",
      user,
      scope: "write",
      label: "",
      createdAt: NOW,
      usedAt: undefined,
      expiresAt: undefined,
      ...more,
    },
    hash: newHash(),
    atMost: 10_000,
  };
}

/** Gives a user an account named `user-ID` and a list of so many items, one of them removed again. */
export async function fillAccount(store: Store, user: UserId, count: number): Promise<void> {
  assert.equal(await store.accounts.create(user, wish(`user-${user}`, { isOwner: false }), NOW), user);
  for (let from = 0; from < count; from += 2_000)
    await addTo(store, asUser(user), drafts(from, Math.min(2_000, count - from)), NOW);
  assert.equal(await removeFrom(store, asUser(user), draft(1).id, NOW), true);
}

/** What `here` has confirmed as revoked is refused `there`, though it was in use there all the time. */
export async function requireEnds(here: AccountStore, there: AccountStore): Promise<void> {
  const changing = new Accounts(here, { signUp: false });
  const verifying = new Accounts(there, { signUp: false });
  const ends: readonly ((user: UserId, id: string) => Promise<unknown>)[] = [
    (user, id) => changing.removeCredential(asUser(user), "session", id, NOW),
    async (user) => changing.setPassword({ user, name: "", issuer: "", createdAt: NOW }, "correct horse battery", NOW),
    (user) => changing.delete(asUser(user), NOW),
  ];
  for (const [index, end] of ends.entries()) {
    const user = await here.create(2 ** 41 + index, wish(`ends-${index}`), NOW);
    assert.ok(typeof user === "number");
    const secret = randomUUID();
    const session = { ...credential(user, { kind: "session" }), hash: hashSecret(secret) };
    assert.equal(await here.addCredential(SERVER, session), "added");
    const verify = () => verifying.verifyCredential(secret, "session", NOW);
    assert.equal((await verify())?.id, session.credential.id);
    let isEnded = false;
    const using = (async () => {
      let uses = 0;
      for (; !isEnded; uses += 1) {
        await verify();
        await setImmediate();
      }
      return uses;
    })();
    await end(user, session.credential.id);
    assert.equal(await verify(), undefined);
    isEnded = true;
    assert.ok((await using) > 10, "it was in use all the time");
  }
}

/** After `here` has answered a revocation, nothing appears that `there` writes under the credential. */
export async function requireNoLateWrites(here: Stores, there: Stores): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    const user = await here.accounts.create(2 ** 42 + round, wish(`late-${round}`), NOW);
    assert.ok(typeof user === "number");
    const token = credential(user);
    assert.equal(await here.accounts.addCredential(SERVER, token), "added");
    const caller = { ...asUser(user), credentialHash: token.hash };
    let [isOver, next, refused] = [false, 0, 0];
    const writers = times(4, async (index) => {
      while (!isOver) {
        next += 1;
        const write =
          index === 0
            ? there.accounts.addCredential(caller, credential(user))
            : addTo(there.subscriptions, caller, [draft(next)], NOW);
        await write.catch((error: unknown) => {
          assert.ok(error instanceof AccessRevoked, String(error));
          refused += 1;
        });
      }
    });
    await sleep(10 * round);
    assert.equal(await here.accounts.removeCredential(asUser(user), "token", token.credential.id, NOW), true);
    const look = async () => [
      (await here.subscriptions.page(user, { offset: 0, size: 1 })).total,
      (await here.accounts.listCredentials(user, "token")).length,
    ];
    const atTheAnswer = await look();
    await sleep(20);
    isOver = true;
    await Promise.all(writers);
    assert.deepEqual(await look(), atTheAnswer);
    assert.ok(refused > 0, "something was written too late");
  }
}

/**
 * What any engine must do, whatever it is made of. `open` gives a new database without data each time, and to close
 * `subscriptions` lets go of it.
 */
export function describeAccounts(engine: string, open: () => Promise<Stores>): void {
  describe(`the accounts on ${engine}`, () => {
    let accounts: AccountStore;
    let subscriptions: SubscriptionStore;
    let users = 2 ** 40;

    before(async () => {
      ({ accounts, subscriptions } = await open());
      // The first is unlike all others, and has tests of its own.
      await accounts.create(newUser(), wish("first"), NOW);
    });
    after(() => subscriptions.close());

    async function openFor(context: TestContext): Promise<Stores> {
      const stores = await open();
      context.after(() => stores.subscriptions.close());
      return stores;
    }

    function newUser(): UserId {
      users += 1;
      return users;
    }

    async function newAccount(more: Partial<NewAccount> = {}): Promise<Account & { password: string }> {
      const user = newUser();
      const wished = wish(`name-${user}`, more);
      assert.equal(await accounts.create(user, wished, NOW), user);
      return { user, name: wished.name, issuer: wished.issuer, createdAt: NOW, password: wished.password };
    }

    async function add(user: UserId, more: Partial<Credential> = {}): Promise<NewCredential> {
      const added = credential(user, more);
      assert.equal(await accounts.addCredential(SERVER, added), "added");
      return added;
    }

    const invite = (kind: "invitation" | "setup" = "invitation") => add(NOBODY, { kind });
    const idsOf = async (user: UserId, kind: Credential["kind"]) =>
      (await accounts.listCredentials(user, kind)).map(({ id }) => id);
    const listOf = (user: UserId, stores = subscriptions) => stores.page(user, { offset: 0, size: 10_000 });
    const EMPTY = { items: [], total: 0 };

    async function everythingOf(user: UserId) {
      return {
        account: await accounts.get(user),
        list: await listOf(user),
        tokens: await accounts.listCredentials(user, "token"),
        sessions: await accounts.listCredentials(user, "session"),
      };
    }

    /** An account with some of all there is: items, removals, tokens, sessions. */
    async function someone(): Promise<{ account: Account; token: NewCredential; session: NewCredential }> {
      const account = await newAccount();
      await addTo(subscriptions, asUser(account.user), drafts(0, 20), NOW);
      for (const { id } of drafts(5, 3)) await removeFrom(subscriptions, asUser(account.user), id, NOW);
      const token = await add(account.user, { label: "a player" });
      const session = await add(account.user, { kind: "session" });
      return { account, token, session };
    }

    const isGone = (error: unknown) => error instanceof AccessRevoked;

    function assertDoneOrGone(outcomes: readonly PromiseSettledResult<unknown>[]): void {
      for (const outcome of outcomes)
        if (outcome.status === "rejected") assert.ok(isGone(outcome.reason), `${outcome.reason}`);
    }

    describe("the first account", () => {
      test("is that of the local user, and finds the list that was there", async (t) => {
        const own = await openFor(t);
        assert.equal(await own.accounts.isEmpty(), true);
        assert.deepEqual(await own.accounts.list(0, 10), []);
        await addTo(own.subscriptions, asUser(LOCAL_USER), drafts(0, 10), NOW);
        await removeFrom(own.subscriptions, asUser(LOCAL_USER), draft(4).id, NOW);
        const before = await listOf(LOCAL_USER, own.subscriptions);
        assert.equal(before.total, 9);

        assert.equal(await own.accounts.isEmpty(), true, "a list is no account");
        const ann = wish("ann");
        assert.equal(await own.accounts.create(4_711, ann, NOW), LOCAL_USER);
        assert.equal(await own.accounts.isEmpty(), false);
        const kept = {
          account: { user: LOCAL_USER, name: "ann", issuer: "", createdAt: NOW },
          password: ann.password,
        };
        assert.deepEqual(await own.accounts.get(LOCAL_USER), kept);
        assert.deepEqual(await own.accounts.find("ann", ""), kept);
        assert.equal(await own.accounts.get(4_711), undefined);
        assert.deepEqual(await listOf(LOCAL_USER, own.subscriptions), before);
        assert.deepEqual(await listOf(4_711, own.subscriptions), EMPTY);
        const [outcome] = await addTo(own.subscriptions, asUser(LOCAL_USER), [draft(100)], NOW);
        assert.ok(outcome !== undefined && !isRefusal(outcome));

        assert.equal(await own.accounts.create(4_712, wish("bob"), NOW), 4_712);
        assert.deepEqual(await listOf(4_712, own.subscriptions), EMPTY);
        assert.deepEqual(
          (await own.accounts.list(0, 10)).map(({ user, name }) => [user, name]),
          [
            [LOCAL_USER, "ann"],
            [4_712, "bob"],
          ],
        );
      });

      test("once deleted takes the local list with it, and nobody becomes the local user again", async (t) => {
        const own = await openFor(t);
        await addTo(own.subscriptions, asUser(LOCAL_USER), drafts(0, 10), NOW);
        assert.equal(await own.accounts.create(4_711, wish("ann"), NOW), LOCAL_USER);
        assert.equal(await own.accounts.delete(asUser(LOCAL_USER), NOW), true);
        assert.equal(await own.accounts.isEmpty(), true);
        assert.equal(await own.accounts.get(LOCAL_USER), undefined);
        assert.deepEqual(await listOf(LOCAL_USER, own.subscriptions), EMPTY);
        await assert.rejects(addTo(own.subscriptions, asUser(LOCAL_USER), drafts(0, 1), NOW), isGone);

        assert.equal(await own.accounts.create(4_712, wish("ann"), NOW), 4_712);
        assert.equal(await own.accounts.create(4_713, wish("bob"), NOW), 4_713);
        assert.equal(await own.accounts.delete(asUser(4_712), NOW), true);
        assert.equal(await own.accounts.delete(asUser(4_713), NOW), true);
        assert.equal(await own.accounts.isEmpty(), true);
        assert.equal(await own.accounts.create(4_714, wish("ann"), NOW), 4_714);
        assert.deepEqual(await listOf(4_714, own.subscriptions), EMPTY);
        assert.deepEqual(await listOf(LOCAL_USER, own.subscriptions), EMPTY);
      });

      test("is one alone, however many are made at once", async (t) => {
        const own = await openFor(t);
        const made = await Promise.all(
          times(5, (index) => own.accounts.create(4_711 + index, wish(`name-${index}`), NOW)),
        );
        assert.equal(countOf(made, LOCAL_USER), 1);
        for (const [index, user] of made.entries()) {
          assert.ok(user === LOCAL_USER || user === 4_711 + index, `${user}`);
          assert.equal((await own.accounts.find(`name-${index}`, ""))?.account.user, user);
        }
        assert.equal((await own.accounts.list(0, 10)).length, 5);
      });

      test("can be made by setting up, and then no other can", async (t) => {
        const own = await openFor(t);
        const [used, left] = [credential(NOBODY, { kind: "setup" }), credential(NOBODY, { kind: "setup" })];
        assert.equal(await own.accounts.addCredential(SERVER, used), "added");
        assert.equal(await own.accounts.addCredential(SERVER, left), "added");
        assert.equal(await own.accounts.create(4_711, wish("ann", { invitation: used.hash }), NOW), LOCAL_USER);
        for (const { hash } of [used, left])
          assert.equal(await own.accounts.create(4_712, wish("bob", { invitation: hash }), NOW), "not-invited");
        assert.equal(await own.accounts.find("bob", ""), undefined);
        assert.equal(await own.accounts.findCredential(used.hash), undefined);
      });

      test("is one alone, however many set up at once", async (t) => {
        const own = await openFor(t);
        const setups = times(10, () => credential(NOBODY, { kind: "setup" }));
        for (const setup of setups) assert.equal(await own.accounts.addCredential(SERVER, setup), "added");
        const made = await Promise.all(
          setups.map(({ hash }, index) =>
            own.accounts.create(4_711 + index, wish(`name-${index}`, { invitation: hash }), NOW),
          ),
        );
        assert.equal(countOf(made, LOCAL_USER), 1);
        assert.equal(countOf(made, "not-invited"), 9);
        assert.equal((await own.accounts.list(0, 20)).length, 1);
      });
    });

    describe("names", () => {
      test("an account is kept exactly, to the millisecond, under the user that was given", async () => {
        const user = newUser();
        const at = new Date("2031-12-31T23:59:59.999Z");
        const password = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA";
        assert.equal(await accounts.create(user, wish(`ann.${user}@x+y`, { password }), at), user);
        const kept = { account: { user, name: `ann.${user}@x+y`, issuer: "", createdAt: at }, password };
        assert.deepEqual(await accounts.find(`ann.${user}@x+y`, ""), kept);
        assert.deepEqual(await accounts.get(user), kept);
      });

      test("nobody is found under what is no account", async () => {
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

      test("a name belongs to one account of its issuer", async () => {
        const name = `name-${newUser()}`;
        const issuers = ["", "https://id.example", "https://id.example/", "https://ID.example"];
        const owners = issuers.map(newUser);
        for (const [index, issuer] of issuers.entries()) {
          const user = owners[index] ?? NOBODY;
          assert.equal(await accounts.create(user, wish(name, { issuer, password: `hash ${user}` }), NOW), user);
        }
        for (const [index, issuer] of issuers.entries()) {
          const user = newUser();
          assert.equal(await accounts.create(user, wish(name, { issuer }), NOW), "name-taken");
          assert.equal(await accounts.get(user), undefined);
          const found = await accounts.find(name, issuer);
          assert.deepEqual([found?.account.user, found?.password], [owners[index], `hash ${owners[index]}`]);
        }
      });

      test("an identity provider may call its users anything, in up to 255 characters", async () => {
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
        const made = new Map<UserId, string>();
        for (const subject of subjects) {
          const user = newUser();
          assert.equal(await accounts.create(user, wish(subject, { issuer, password: "" }), NOW), user);
          made.set(user, subject);
        }
        for (const [user, name] of made) {
          const kept = { account: { user, name, issuer, createdAt: NOW }, password: "" };
          assert.deepEqual(await accounts.find(name, issuer), kept);
          assert.deepEqual(await accounts.get(user), kept);
        }
      });

      test("accounts are listed in the order of their users, in pages", async () => {
        const ids = [...times(6, newUser), LARGEST_USER];
        const [lowest = 0] = ids;
        for (const user of [3, 0, 6, 5, 1, 4, 2].map((index) => ids[index] ?? NOBODY))
          assert.equal(await accounts.create(user, wish(`listed-${user}`), later(user % 1_000)), user);
        const expected = ids.map((user) => ({
          user,
          name: `listed-${user}`,
          issuer: "",
          createdAt: later(user % 1_000),
        }));
        assert.deepEqual(await accounts.list(lowest - 1, 100), expected);
        for (const size of [1, 2, 3, 7]) {
          const read: Account[] = [];
          for (let from = lowest - 1; ; from = read.at(-1)?.user ?? from) {
            const page = await accounts.list(from, size);
            assert.ok(page.length <= size);
            if (page.length === 0) break;
            read.push(...page);
          }
          assert.deepEqual(read, expected);
        }
        assert.equal((await accounts.list(0, 1))[0]?.user, LOCAL_USER);
      });

      test("the number of a user is given once, and never with the list of somebody else", async () => {
        const [{ user, name }, reader] = [await newAccount(), newUser()];
        await addTo(subscriptions, asUser(reader), drafts(1, 1), NOW);
        for (const taken of [user, reader])
          await assert.rejects(accounts.create(taken, wish(`name-${newUser()}`), NOW), StoreUnavailable);
        assert.equal((await accounts.get(user))?.account.name, name);
        assert.equal(await accounts.get(reader), undefined);
      });

      test("the name of somebody who was deleted is free again, and nobody else's is lost", async () => {
        const issuer = "https://id.example";
        const [gone, other, next] = [newUser(), newUser(), newUser()];
        for (const user of [gone, other])
          assert.equal(await accounts.create(user, wish(`name-${user}`, { issuer }), NOW), user);
        assert.equal(await accounts.delete(asUser(gone), NOW), true);
        assert.equal((await accounts.find(`name-${other}`, issuer))?.account.user, other);
        assert.equal(await accounts.create(next, wish(`name-${gone}`, { issuer }), NOW), next);
      });

      test("of many who want one name at once, one gets it", async () => {
        const name = `name-${newUser()}`;
        const wanting = times(20, newUser);
        const answers = await Promise.all(wanting.map((user) => accounts.create(user, wish(name), NOW)));
        assert.equal(countOf(answers, "name-taken"), 19);
        const winner = answers.find((answer) => typeof answer === "number");
        assert.equal(winner, wanting[answers.indexOf(winner ?? "name-taken")]);
        assert.equal((await accounts.find(name, ""))?.account.user, winner);
        for (const user of wanting) assert.equal((await accounts.get(user))?.account.user === user, user === winner);
      });
    });

    describe("invitations", () => {
      test("an invitation makes one account, and is gone", async () => {
        const [user, { hash, credential }] = [newUser(), await invite()];
        assert.equal(await accounts.create(user, wish(`name-${user}`, { invitation: hash }), NOW), user);
        assert.equal(await accounts.findCredential(hash), undefined);
        assert.ok(!(await idsOf(NOBODY, "invitation")).includes(credential.id));
        const second = newUser();
        assert.equal(await accounts.create(second, wish(`name-${second}`, { invitation: hash }), NOW), "not-invited");
        assert.equal(await accounts.get(second), undefined);
      });

      test("other invitations stay as they are", async () => {
        const [used, left] = [await invite(), await invite()];
        await newAccount({ invitation: used.hash });
        assert.deepEqual(await accounts.findCredential(left.hash), left.credential);
        await newAccount({ invitation: left.hash });
      });

      test("the list of the local user goes to an owner alone, whoever was first", async (context) => {
        const { accounts: others, subscriptions: lists } = await openFor(context);
        await addTo(lists, asUser(LOCAL_USER), drafts(1, 3), NOW);
        const [stranger, ann] = [newUser(), newUser()];
        assert.equal(await others.create(stranger, wish("stranger", { isOwner: false }), NOW), stranger);
        assert.equal((await lists.page(stranger, { offset: 0, size: 10 })).total, 0);
        assert.equal(await others.delete(asUser(stranger), NOW), true, "who was deleted was somebody else");
        assert.equal(await others.create(ann, wish("ann"), NOW), LOCAL_USER);
        assert.equal((await lists.page(LOCAL_USER, { offset: 0, size: 10 })).total, 3);
        assert.equal(await others.create(ann, wish("bob"), NOW), ann);
      });

      test("nothing else is an invitation", async () => {
        const { user } = await newAccount();
        const token = await add(user);
        const session = await add(user, { kind: "session" });
        const setup = await invite("setup");
        // One that comes before all others must not stand for one that is not there.
        const first = {
          ...credential(NOBODY, { kind: "invitation" }),
          hash: Buffer.alloc(32, "\0\u0001").toString("base64url"),
        };
        assert.equal(await accounts.addCredential(SERVER, first), "added");
        for (const invitation of [newHash(), token.hash, session.hash, setup.hash, NO_HASH]) {
          const invited = newUser();
          const answer = await accounts.create(invited, wish(`name-${invited}`, { invitation }), NOW);
          assert.equal(answer, "not-invited");
          assert.equal(await accounts.get(invited), undefined);
          assert.equal(await accounts.find(`name-${invited}`, ""), undefined);
        }
        assert.deepEqual(await accounts.findCredential(token.hash), token.credential);
        assert.deepEqual(await accounts.findCredential(session.hash), session.credential);
        assert.equal(await accounts.removeCredential(asUser(NOBODY), "invitation", first.credential.id, NOW), true);
      });

      test("an invitation is not used up when the name is taken", async () => {
        const { name } = await newAccount();
        const { hash, credential } = await invite();
        assert.equal(await accounts.create(newUser(), wish(name, { invitation: hash }), NOW), "name-taken");
        assert.deepEqual(await accounts.findCredential(hash), credential);
        await newAccount({ invitation: hash });
      });

      test("of many who use one invitation at once, one gets an account", async () => {
        const { hash } = await invite();
        const invited = times(20, newUser);
        const answers = await Promise.all(
          invited.map((user) => accounts.create(user, wish(`name-${user}`, { invitation: hash }), NOW)),
        );
        assert.equal(countOf(answers, "not-invited"), 19);
        const found = await Promise.all(invited.map((user) => accounts.get(user)));
        assert.deepEqual(
          found.map((account) => account !== undefined),
          answers.map((answer) => answer !== "not-invited"),
        );
      });

      test("of many who want one name with an invitation each, one invitation is used up", async () => {
        const name = `name-${newUser()}`;
        const invitations = await Promise.all(times(10, () => invite()));
        const answers = await Promise.all(
          invitations.map(({ hash }) => accounts.create(newUser(), wish(name, { invitation: hash }), NOW)),
        );
        assert.equal(countOf(answers, "name-taken"), 9);
        for (const [index, { hash, credential }] of invitations.entries())
          assert.deepEqual(
            await accounts.findCredential(hash),
            answers[index] === "name-taken" ? credential : undefined,
          );
      });
    });

    describe("passwords", () => {
      test("a password that was changed meanwhile is not overwritten by one who knew the former", async () => {
        const [{ user }, other] = [await newAccount(), await newAccount()];
        const current = (await accounts.get(user))?.password ?? "";
        const others = (await accounts.get(other.user))?.password ?? "";
        for (const former of ["", "hash of another", others])
          assert.equal(
            await accounts.setPassword(asUser(user), { password: "hash new", expectedHash: former }, NOW),
            false,
          );
        assert.equal((await accounts.get(user))?.password, current);
        assert.equal(
          await accounts.setPassword(asUser(user), { password: `hash ${user}`, expectedHash: current }, NOW),
          true,
        );
        assert.equal((await accounts.get(user))?.password, `hash ${user}`);
        assert.equal((await accounts.get(other.user))?.password, others);
      });

      test("a new password ends all sessions but one, and no tokens", async () => {
        const { user } = await newAccount();
        const other = await someone();
        const before = await everythingOf(other.account.user);
        const token = await add(user);
        const [ended, kept] = [await add(user, { kind: "session" }), await add(user, { kind: "session" })];
        await add(user, { kind: "session" });
        assert.equal(
          await accounts.setPassword(asUser(user), { password: "new", keepSession: kept.credential.id }, NOW),
          true,
        );
        assert.equal((await accounts.get(user))?.password, "new");
        assert.equal((await accounts.find(`name-${user}`, ""))?.password, "new");
        assert.deepEqual(await accounts.listCredentials(user, "session"), [kept.credential]);
        assert.equal(await accounts.findCredential(ended.hash), undefined);
        assert.deepEqual(await accounts.findCredential(kept.hash), kept.credential);
        assert.deepEqual(await accounts.listCredentials(user, "token"), [token.credential]);
        assert.deepEqual(await everythingOf(other.account.user), before);
      });

      test("a new password ends all sessions when none is to stay, or another's", async () => {
        const other = await someone();
        for (const but of [undefined, other.session.credential.id, randomUUID()]) {
          const { user } = await newAccount();
          await add(user, { kind: "session" });
          await add(user, { kind: "session" });
          assert.equal(await accounts.setPassword(asUser(user), { password: "new", keepSession: but }, NOW), true);
          assert.deepEqual(await accounts.listCredentials(user, "session"), []);
        }
        assert.deepEqual(await idsOf(other.account.user, "session"), [other.session.credential.id]);
      });

      test("nobody gets no password", async () => {
        const { user } = await newAccount();
        await accounts.delete(asUser(user), NOW);
        for (const nobody of [newUser(), NOBODY, user]) {
          assert.equal(await accounts.setPassword(asUser(nobody), { password: "new" }, NOW), false);
          assert.equal(await accounts.get(nobody), undefined);
        }
      });

      test("a session is opened only with the password of the moment", async () => {
        const { user, password } = await newAccount();
        const session = () => credential(user, { kind: "session" });
        assert.equal(await accounts.addCredential(SERVER, { ...session(), password: "wrong" }), "gone");
        assert.equal(await accounts.addCredential(SERVER, { ...session(), password: "" }), "gone");
        assert.equal(await accounts.addCredential(SERVER, { ...session(), password }), "added");
        await accounts.setPassword(asUser(user), { password: "new" }, NOW);
        assert.equal(await accounts.addCredential(SERVER, { ...session(), password }), "gone");
        assert.equal((await accounts.listCredentials(user, "session")).length, 0);
        assert.equal(await accounts.addCredential(SERVER, { ...session(), password: "new" }), "added");
        assert.equal(await accounts.addCredential(SERVER, { ...credential(newUser()), password: "" }), "gone");
      });

      test("no session that an old password opens outlives it, not even one that is opened meanwhile", async () => {
        for (let round = 0; round < 5; round += 1) {
          const { user, password } = await newAccount();
          const open = () => accounts.addCredential(SERVER, { ...credential(user, { kind: "session" }), password });
          const earlier = Promise.all(times(10, open));
          const changed = accounts.setPassword(asUser(user), { password: "new" }, NOW);
          const answers = [...(await Promise.all(times(10, open))), ...(await earlier)];
          assert.equal(await changed, true);
          assert.equal(countOf(answers, "added") + countOf(answers, "gone"), 20);
          assert.deepEqual(await accounts.listCredentials(user, "session"), []);
        }
      });
    });

    describe("deletion", () => {
      test("a deleted account is gone with all that it had, and others keep all of theirs", async () => {
        const [{ account, token, session }, other] = [await someone(), await someone()];
        const invitation = await invite();
        const before = await everythingOf(other.account.user);
        assert.equal(before.list.total, 17);
        assert.equal(await accounts.delete(asUser(account.user), NOW), true);

        assert.equal(await accounts.find(account.name, account.issuer), undefined);
        assert.equal(await accounts.get(account.user), undefined);
        assert.deepEqual(await accounts.list(account.user - 1, 1), [other.account].map(withoutPassword));
        for (const { hash } of [token, session]) assert.equal(await accounts.findCredential(hash), undefined);
        assert.deepEqual(await everythingOf(account.user), {
          account: undefined,
          list: EMPTY,
          tokens: [],
          sessions: [],
        });
        for (const { id } of drafts(0, 20)) assert.equal(await findOne(subscriptions, account.user, id), undefined);

        assert.deepEqual(await everythingOf(other.account.user), before);
        assert.deepEqual(await accounts.findCredential(other.token.hash), other.token.credential);
        assert.deepEqual(await accounts.findCredential(invitation.hash), invitation.credential);
      });

      test("an account is deleted once", async () => {
        const { user } = await newAccount();
        const answers = await Promise.all(times(10, () => accounts.delete(asUser(user), NOW)));
        assert.equal(countOf(answers, true), 1);
        assert.equal(await accounts.delete(asUser(user), NOW), false);
        assert.equal(await accounts.delete(asUser(newUser()), NOW), false);
        assert.equal(await accounts.delete(asUser(NOBODY), NOW), false);
      });

      test("the name of a deleted account can be another's, who finds nothing of it", async () => {
        for (const issuer of ["", "https://id.example"]) {
          const name = `name-${newUser()}`;
          const [first, second] = [newUser(), newUser()];
          assert.equal(await accounts.create(first, wish(name, { issuer }), NOW), first);
          await addTo(subscriptions, asUser(first), drafts(0, 3), NOW);
          await add(first);
          await accounts.delete(asUser(first), NOW);
          assert.equal(await accounts.create(second, wish(name, { issuer, password: "other" }), later(1)), second);
          const account = {
            account: { user: second, name, issuer, createdAt: later(1) },
            password: "other",
          };
          assert.deepEqual(await accounts.find(name, issuer), account);
          assert.deepEqual(await everythingOf(second), { account, list: EMPTY, tokens: [], sessions: [] });
          assert.equal(await accounts.get(first), undefined);
          await assert.rejects(addTo(subscriptions, asUser(first), drafts(0, 1), NOW), isGone);
        }
      });

      test("nothing can be written for a deleted user", async () => {
        const { account } = await someone();
        await accounts.delete(asUser(account.user), NOW);
        await assert.rejects(addTo(subscriptions, asUser(account.user), drafts(50, 1), NOW), isGone);
        await assert.rejects(addTo(subscriptions, asUser(account.user), drafts(0, 30), NOW), isGone);
        await assert.rejects(removeFrom(subscriptions, asUser(account.user), draft(0).id, NOW), isGone);
        await assert.rejects(removeFrom(subscriptions, asUser(account.user), draft(99).id, NOW), isGone);
        for (const kind of ["token", "session"] as const) {
          const refused = credential(account.user, { kind });
          assert.equal(await accounts.addCredential(SERVER, refused), "gone");
          assert.equal(await accounts.findCredential(refused.hash), undefined);
        }
        assert.deepEqual(await listOf(account.user), EMPTY);
        assert.deepEqual(await idsOf(account.user, "token"), []);
        assert.deepEqual(await idsOf(account.user, "session"), []);
      });

      test("someone who is gone does not stop those who write at the same time", async () => {
        const [gone, here] = [await newAccount(), await newAccount()];
        await accounts.delete(asUser(gone.user), NOW);
        const outcomes = await Promise.allSettled(
          times(40, (index) =>
            addTo(subscriptions, asUser((index % 2 === 0 ? gone : here).user), drafts(10 * index, 10), NOW),
          ),
        );
        for (const [index, { status }] of outcomes.entries())
          assert.equal(status, index % 2 === 0 ? "rejected" : "fulfilled");
        assertDoneOrGone(outcomes);
        assert.equal((await listOf(here.user)).total, 200);
      });

      test("additions and removals that race with the deletion leave nothing behind", async () => {
        for (let round = 0; round < 5; round += 1) {
          const { user } = await newAccount();
          await addTo(subscriptions, asUser(user), drafts(0, 100), NOW);
          const write = (index: number): Promise<unknown> =>
            index % 3 === 2
              ? removeFrom(subscriptions, asUser(user), draft(index).id, NOW)
              : addTo(subscriptions, asUser(user), drafts(1_000 + 50 * index, 1 + ((index * 17) % 100)), NOW);
          const earlier = Promise.allSettled(times(20, write));
          // Some rounds delete at once, the others when part of it has been written.
          if (round % 2 === 1) await addTo(subscriptions, asUser(user), [draft(900)], NOW);
          const deleted = accounts.delete(asUser(user), NOW);
          const meanwhile = Promise.allSettled(times(20, (index) => write(20 + index)));
          assert.equal(await deleted, true);
          const after = await Promise.allSettled(times(5, (index) => write(40 + index)));
          assertDoneOrGone([...(await earlier), ...(await meanwhile), ...after]);
          assert.ok(after.every(({ status }) => status === "rejected"));
          assert.deepEqual(await listOf(user), EMPTY);
          for (const { id } of drafts(0, 100)) assert.equal(await findOne(subscriptions, user, id), undefined);
        }
      });

      test("deletion of a large account: another user writes → written before the deletion ends", async () => {
        const [large, other] = [await newAccount(), await newAccount()];
        const count = 20_000;
        for (let from = 0; from < count; from += 2_000)
          await addTo(subscriptions, asUser(large.user), drafts(from, 2_000), NOW);
        await removeFrom(subscriptions, asUser(large.user), draft(1).id, NOW);
        const isLeft = async () => (await findOne(subscriptions, large.user, draft(0).id)) !== undefined;
        const deleting = accounts.delete(asUser(large.user), NOW);
        while ((await accounts.get(large.user)) !== undefined) await setImmediate();
        await addTo(subscriptions, asUser(other.user), drafts(0, 3), NOW);
        assert.equal(await isLeft(), true, "written while some of the list was still to be erased");
        assert.deepEqual(await listOf(large.user), EMPTY, "none of it is shown meanwhile");
        await assert.rejects(addTo(subscriptions, asUser(large.user), drafts(count, 1), NOW), isGone);
        assert.equal(await deleting, true);
        assert.equal(await isLeft(), false);
        assert.equal((await listOf(other.user)).total, 3);
      });

      test("credentials that race with the deletion are not left behind", async () => {
        for (let round = 0; round < 5; round += 1) {
          const { user } = await newAccount();
          const wished = times(20, () => credential(user));
          const earlier = Promise.all(wished.slice(0, 10).map((one) => accounts.addCredential(SERVER, one)));
          const deleted = accounts.delete(asUser(user), NOW);
          const meanwhile = Promise.all(wished.slice(10).map((one) => accounts.addCredential(SERVER, one)));
          assert.equal(await deleted, true);
          const answers = [...(await earlier), ...(await meanwhile)];
          assert.equal(countOf(answers, "added") + countOf(answers, "gone"), 20);
          assert.deepEqual(await idsOf(user, "token"), []);
          for (const { hash } of wished) assert.equal(await accounts.findCredential(hash), undefined);
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
        "add, the first time": (caller, _, at) => addTo(subscriptions, caller, drafts(100, 2), at),
        "add, a new feed as before": (caller, _, at) => addTo(subscriptions, caller, [draft(200)], at),
        "add, a conflict": (caller, _, at) => addTo(subscriptions, caller, [draft(0)], at),
        remove: (caller, _, at) => removeFrom(subscriptions, caller, draft(1).id, at),
        "remove, not there": (caller, _, at) => removeFrom(subscriptions, caller, draft(99).id, at),
        addCredential: (caller, _, at) => accounts.addCredential(caller, credential(caller.user, { createdAt: at })),
        removeCredential: (caller, target, at) => accounts.removeCredential(caller, "token", target, at),
        "removeCredential, not there": (caller, _, at) => accounts.removeCredential(caller, "token", randomUUID(), at),
        setPassword: (caller, _, at) => accounts.setPassword(caller, { password: newHash() }, at),
        delete: (caller, _, at) => accounts.delete(caller, at),
      };

      test("access: the credential is valid → every write is done", async () => {
        const { account, token, session } = await someone();
        const caller = callerOf(account.user, session);
        for (const [name, write] of Object.entries(WRITES)) {
          if (name !== "setPassword") assert.ok((await write(caller, token.credential.id, NOW)) !== undefined, name);
        }
        assert.equal(await accounts.get(account.user), undefined, "deleted at last");
      });

      test("access: the credential is revoked, expired or unknown → no write is done", async () => {
        for (const kind of ["token", "session"] as const) {
          const { account, token } = await someone();
          const { user } = account;
          const [revoked, expired] = [await add(user, { kind }), await add(user, { kind, expiresAt: later(1_000) })];
          assert.equal(await accounts.removeCredential(asUser(user), kind, revoked.credential.id, NOW), true);
          // So that an engine has reason to believe that nothing stands against an addition.
          await addTo(subscriptions, callerOf(user, expired), [draft(50)], later(999));
          const before = await everythingOf(user);
          for (const [name, write] of Object.entries(WRITES)) {
            for (const hash of [revoked.hash, expired.hash, newHash(), NO_HASH]) {
              const written = write(callerOf(user, { hash }), token.credential.id, later(1_000));
              await assert.rejects(written, isGone, `${kind}, ${name}`);
            }
          }
          assert.deepEqual(await everythingOf(user), before);
        }
      });

      test("access: a new password or the end of the account → the sessions write nothing any more", async () => {
        for (const end of [
          (user: UserId) => accounts.setPassword(asUser(user), { password: "another hash" }, NOW),
          (user: UserId) => accounts.delete(asUser(user), NOW),
        ]) {
          const { account, session, token } = await someone();
          assert.equal(await end(account.user), true);
          const before = await everythingOf(account.user);
          for (const [name, write] of Object.entries(WRITES))
            await assert.rejects(write(callerOf(account.user, session), token.credential.id, NOW), isGone, name);
          assert.deepEqual(await everythingOf(account.user), before);
        }
      });

      test("access: of many who write at once, those without access are refused and the others are not", async () => {
        const { user } = await newAccount();
        const tokens = await Promise.all(times(4, () => add(user)));
        const [gone] = tokens;
        assert.ok(gone);
        await addTo(subscriptions, callerOf(user, tokens[1] ?? gone), drafts(500, 2), NOW);
        await accounts.removeCredential(asUser(user), "token", gone.credential.id, NOW);
        const outcomes = await Promise.allSettled(
          times(40, (index) => {
            const caller = callerOf(user, tokens[index % 4] ?? gone);
            return index % 8 > 3
              ? removeFrom(subscriptions, caller, draft(index - 4).id, NOW)
              : addTo(subscriptions, caller, drafts(index, 1), NOW);
          }),
        );
        for (const [index, outcome] of outcomes.entries())
          assert.equal(outcome.status, index % 4 === 0 ? "rejected" : "fulfilled", String(index));
        assertDoneOrGone(outcomes);
        assert.equal((await listOf(user)).total, 2);
      });

      test("access: two sessions end each other at once → one of them does", async () => {
        for (let round = 0; round < 5; round += 1) {
          const { user } = await newAccount();
          const [one, other] = [await add(user, { kind: "session" }), await add(user, { kind: "session" })];
          const outcomes = await Promise.allSettled([
            accounts.removeCredential(callerOf(user, one), "session", other.credential.id, NOW),
            accounts.removeCredential(callerOf(user, other), "session", one.credential.id, NOW),
          ]);
          assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
          assertDoneOrGone(outcomes);
          assert.equal((await idsOf(user, "session")).length, 1);
        }
      });

      test("access: a session ends itself → done, and only once", async () => {
        const { user } = await newAccount();
        const session = await add(user, { kind: "session" });
        const end = () => accounts.removeCredential(callerOf(user, session), "session", session.credential.id, NOW);
        assert.equal(await end(), true);
        await assert.rejects(end(), isGone);
      });
    });

    describe("credentials", () => {
      test("a credential is kept exactly", async () => {
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

      test("a credential is found by its whole hash alone", async () => {
        const { user } = await newAccount();
        const [{ hash }, { hash: other, credential }] = [await add(user), await add(user)];
        const near = Buffer.from(hash, "base64url");
        near[31] = (near[31] ?? 0) ^ 1;
        for (const unknown of [near.toString("base64url"), newHash(), hash.slice(0, 40), NO_HASH, ""])
          assert.equal(await accounts.findCredential(unknown), undefined);
        assert.deepEqual(await accounts.findCredential(other), credential);
      });

      test("credentials are listed oldest first, each kind and user apart", async () => {
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

      test("there are at most as many as are allowed, of each kind and user", async () => {
        const [ann, bob] = [await newAccount(), await newAccount()];
        const addTo = (user: UserId, kind: Credential["kind"] = "token", atMost = 2) =>
          accounts.addCredential(SERVER, { ...credential(user, { kind }), atMost });
        assert.equal(await addTo(ann.user), "added");
        assert.equal(await addTo(ann.user), "added");
        const refused = { ...credential(ann.user), atMost: 2 };
        assert.equal(await accounts.addCredential(SERVER, refused), "full");
        assert.equal(await accounts.findCredential(refused.hash), undefined);
        assert.equal(await addTo(ann.user, "session"), "added");
        assert.equal(await addTo(bob.user), "added");
        assert.equal(await addTo(ann.user, "token", 3), "added");
        assert.equal(await addTo(ann.user, "token", 1), "full");
        const [oldest = ""] = await idsOf(ann.user, "token");
        await accounts.removeCredential(asUser(ann.user), "token", oldest, NOW);
        assert.equal(await addTo(ann.user, "token", 3), "added");
        assert.equal(await addTo(ann.user, "token", 3), "full");
        assert.equal((await idsOf(ann.user, "token")).length, 3);
      });

      test("there are no more than allowed when many are added at once", async () => {
        const { user } = await newAccount();
        const answers = await Promise.all(
          times(30, () => accounts.addCredential(SERVER, { ...credential(user), atMost: 10 })),
        );
        assert.equal(countOf(answers, "added"), 10);
        assert.equal(countOf(answers, "full"), 20);
        assert.equal((await idsOf(user, "token")).length, 10);
      });

      test("who has no account has no credentials, and invitations need none", async () => {
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

      test("a credential is removed by its user, kind and id alone", async () => {
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

      test("the last use is remembered, and never moves back", async () => {
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

      test("the use of what is no credential is no harm, and makes none", async () => {
        const { user } = await newAccount();
        const removed = await add(user);
        await accounts.removeCredential(asUser(user), "token", removed.credential.id, NOW);
        for (const hash of [newHash(), removed.hash]) {
          await accounts.touchCredential(hash, NOW);
          assert.equal(await accounts.findCredential(hash), undefined);
        }
        assert.deepEqual(await idsOf(user, "token"), []);
      });

      test("sweeping forgets what has ended, and nothing else", async () => {
        const { user } = await newAccount();
        const at = later(400 * 86_400_000);
        const idle = (ms: number) => new Date(at.getTime() - SESSION_IDLE_MS + ms);
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
        const made: NewCredential[] = [];
        for (const variant of variants) made.push(await add(user, variant));
        for (const kind of ["invitation", "setup"] as const) {
          made.push(await add(NOBODY, { kind, expiresAt: later(-1, at) }));
          made.push(await add(NOBODY, { kind, expiresAt: later(1, at) }));
        }
        await accounts.sweep(at);
        for (const { hash, credential } of made)
          assert.deepEqual(
            await accounts.findCredential(hash),
            isAlive(credential, at) ? credential : undefined,
            JSON.stringify(credential),
          );
        const left = made.filter(({ credential }) => credential.kind === "token" && isAlive(credential, at));
        assert.equal((await idsOf(user, "token")).length, left.length);
        assert.equal((await accounts.get(user))?.account.user, user);
        await accounts.sweep(at);
      });
    });

    describe("shared limits", () => {
      test("limits: a key without state → undefined, then whatever replaced it", async () => {
        if (accounts.sharedLimits === undefined) return;
        const { read, replace } = accounts.sharedLimits;
        const key = `key ${randomUUID()}`;
        assert.equal(await read(key), undefined);
        assert.equal(await replace(key, undefined, NOW.getTime() + 0.1), true);
        assert.equal(await read(key), NOW.getTime() + 0.1);
        assert.equal(await read(`${key} `), undefined);
        assert.equal(await replace(key, NOW.getTime() + 0.1, NOW.getTime() + 1 / 3), true);
        assert.equal(await read(key), NOW.getTime() + 1 / 3);
      });

      test("limits: the state is not the expected one → not replaced", async () => {
        if (accounts.sharedLimits === undefined) return;
        const { read, replace } = accounts.sharedLimits;
        const key = `key ${randomUUID()}`;
        assert.equal(await replace(key, undefined, 1), true);
        assert.equal(await replace(key, undefined, 2), false);
        assert.equal(await replace(key, 3, 2), false);
        assert.equal(await read(key), 1);
      });

      test("limits: many replace the same state at once → one of them does", async () => {
        if (accounts.sharedLimits === undefined) return;
        const { replace } = accounts.sharedLimits;
        const key = `key ${randomUUID()}`;
        const outcomes = await Promise.all(times(20, (index) => replace(key, undefined, index)));
        assert.equal(countOf(outcomes, true), 1);
      });

      test("limits: a sweep → removes what has expired and keeps the rest", async () => {
        if (accounts.sharedLimits === undefined) return;
        const { read, replace } = accounts.sharedLimits;
        const [expired, current] = [`key ${randomUUID()}`, `key ${randomUUID()}`];
        await replace(expired, undefined, later(8_000).getTime());
        await replace(current, undefined, later(10_000).getTime());
        await accounts.sweep(later(9_000));
        assert.deepEqual([await read(expired), await read(current)], [undefined, later(10_000).getTime()]);
      });
    });
  });
}

function withoutPassword({ user, name, issuer, createdAt }: Account): Account {
  return { user, name, issuer, createdAt };
}
