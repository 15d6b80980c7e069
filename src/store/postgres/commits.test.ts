import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { additionsOf as additions, addTo, findOne, idOf, removeFrom, statusOf } from "../../../test/support/lists.ts";
import { CONNECT_TIMEOUT, sharedPostgres } from "../../../test/support/postgres.ts";
import {
  databaseOf,
  isKnownFailure,
  NOW,
  open,
  openOverProxy,
  statementsOf,
  total,
  USER,
} from "../../../test/support/postgres-stores.ts";
import { startProxy } from "../../../test/support/proxy.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { AccessRevoked, asUser, type Caller } from "../../accounts/caller.ts";
import { readAction } from "../../apps/episode-actions.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { Addition, Outcome } from "../../lists/subscription.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import type { Store } from "../shared/contract.ts";
import type { Writes } from "../shared/database.ts";
import { WRITES } from "../sql/writes.ts";
import { credential, newAccountNamed } from "../suites/accounts-test-support.ts";
import { play } from "../suites/apps-test-support.ts";

const server = await sharedPostgres();
const ANN = newAccountNamed("ann", { passwordHash: "hash", isCreatedByOperator: false });

/** Makes every insert of subscriptions run some PL/pgSQL, either at the insert or at commit. */
async function onInsert(url: string, when: "at insert" | "at commit", code: string): Promise<void> {
  const trigger =
    when === "at insert"
      ? "trigger trouble before insert on earmark.subscriptions for each statement"
      : "constraint trigger trouble after insert on earmark.subscriptions deferrable initially deferred for each row";
  await server.query(
    `create sequence tries;
     create function trouble() returns trigger language plpgsql as $$ begin ${code}; return new; end $$;
     create ${trigger} execute function trouble()`,
    databaseOf(url),
  );
}

function raise(code: string): string {
  return `raise exception 'no' using errcode = '${code}'`;
}

/** An account with three subscriptions and two tokens, and the callers that use them. */
async function newCallers(store: Store): Promise<{ first: Caller; second: Caller }> {
  assert.equal(await store.accounts.create(4_711, ANN, NOW), 4_711);
  const callerOf = async (number: number) => {
    const credential = { id: idOf(number), kind: "token", user: 4_711, scope: "write", label: "" } as const;
    const token = { ...credential, createdAt: NOW, usedAt: undefined, expiresAt: undefined };
    const hash = Buffer.alloc(32, number).toString("base64url");
    assert.equal(await store.accounts.addCredential(asUser(4_711), { credential: token, hash }), "added");
    return { ...asUser(4_711), credentialHash: hash };
  };
  // One after the other, over one connection: a second one would not notice that the first is cut.
  const callers = { first: await callerOf(1), second: await callerOf(2) };
  await addTo(store, asUser(4_711), additions(0, 3), NOW);
  return callers;
}

for (const isAlone of [true, false]) {
  const meanwhile = isAlone ? "" : " while another process writes";
  const prepare = async (store: SubscriptionStore, other: SubscriptionStore) => {
    await addTo(store, asUser(USER), additions(0, 3), NOW);
    if (!isAlone) await addTo(other, asUser(USER), additions(100, 7), NOW);
  };
  const expected = isAlone ? 4 : 11;

  test(`commit: lost on its way to the server${meanwhile} → retried`, async () => {
    const { store, other, proxy } = await openOverProxy(server);
    await prepare(store, other);
    const cut = proxy.cutAtCommit("before");
    const outcomes = await addTo(store, asUser(USER), additions(2, 2), NOW);
    assert.deepEqual(outcomes.map(statusOf), ["already-subscribed", "added"]);
    await cut;
    assert.equal(await total(other), expected);
  });

  test(`commit: reply lost${meanwhile} → found to have succeeded, and not repeated`, async () => {
    const { store, other, proxy } = await openOverProxy(server);
    await prepare(store, other);
    const cut = proxy.cutAtCommit("after");
    const outcomes = await addTo(store, asUser(USER), additions(2, 2), NOW);
    assert.deepEqual(outcomes.map(statusOf), ["already-subscribed", "added"]);
    await cut;
    assert.equal(
      statusOf((await addTo(other, asUser(USER), additions(200), NOW))[0]),
      "added",
      "the list is not locked",
    );
    assert.equal(await total(other), expected + 1);
  });
}

test("commit: reply to an update lost → found to have succeeded, and not repeated", async () => {
  const { store, other, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  for (const [index, when] of (["before", "after"] as const).entries()) {
    const { feedUrl, normalizedUrl } = additions(9 + index)[0] as Addition;
    const [before = 0] = await other.sequences([USER]);
    const cut = proxy.cutAtCommit(when);
    const { sequence } = await store.change(
      asUser(USER),
      [{ kind: "update", id: idOf(1), feedUrl, normalizedUrl }],
      NOW,
    );
    await cut;
    assert.equal(sequence, before + 1);
    assert.deepEqual(await other.sequences([USER]), [sequence]);
    assert.equal((await findOne(other, USER, idOf(1)))?.feedUrl, feedUrl);
  }
});

test("begin: rejected by the server → retried, and nothing is done twice", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url, { connections: 1 });
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  const { query } = pg.Client.prototype;
  const refuseNext = () => {
    pg.Client.prototype.query = function (this: pg.Client, ...values: unknown[]) {
      if (!String(values[0]).startsWith("begin isolation")) return Reflect.apply(query, this, values);
      pg.Client.prototype.query = query;
      return Reflect.apply(query, this, ["do $$ begin raise exception 'no' using errcode = '53200'; end $$"]);
    } as typeof query;
  };
  refuseNext();
  assert.deepEqual((await addTo(store, asUser(USER), additions(2, 2), NOW)).map(statusOf), [
    "already-subscribed",
    "added",
  ]);
  refuseNext();
  assert.deepEqual((await addTo(store, asUser(USER), additions(4, 2), NOW)).map(statusOf), ["added", "added"]);
  assert.equal(await total(store), 6);
});

/** Looks like a connection error (class 08), but is not one. */
const PERMANENT = "22008";

test("commit: connection lost while it runs → waits for its result, and for no other user", async () => {
  const { store, other, proxy, url } = await openOverProxy(server);
  for (const user of [USER, 2]) await addTo(store, asUser(user), additions(0), NOW);
  await onInsert(url, "at commit", "perform pg_sleep(0.4)");
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; select 1 from earmark.lists where user_id = 2 for update");
  const adding = addTo(store, asUser(USER), additions(1), NOW);
  const committing = `select 1 from pg_stat_activity where datname = '${databaseOf(url)}' and query = 'commit' and state = 'active'`;
  while ((await server.query(committing)).length === 0) await sleep(5);
  proxy.mode = "refuse";
  proxy.mode = "pass";
  assert.deepEqual((await adding).map(statusOf), ["added"]);
  await blocker.end();
  assert.equal(await total(other), 2);
});

test("commit: lost, then rejected permanently → known to have failed", async () => {
  const { store, proxy, url } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0), NOW);
  const cut = proxy.cutAtCommit("before", () => onInsert(url, "at insert", raise(PERMANENT)));
  await assert.rejects(addTo(store, asUser(USER), additions(1), NOW), isKnownFailure);
  await cut;
});

test("change: a permanent error → no retry", async () => {
  const { store, proxy, url } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0), NOW);
  await onInsert(url, "at insert", raise(PERMANENT));
  const refused = async (user: number) => {
    // A connection that saw an error is replaced before it is counted.
    await total(store);
    return statementsOf(proxy, () => assert.rejects(addTo(store, asUser(user), additions(1), NOW), isKnownFailure));
  };
  assert.equal(await refused(USER), 3);
  assert.equal(await refused(2), 3, "without a list");
});

test("commit: reply to a removal lost → its outcome is found, as for an addition", async () => {
  const { store, other, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  for (const [number, when] of (["before", "after"] as const).entries()) {
    const cut = proxy.cutAtCommit(when);
    assert.equal(await removeFrom(store, asUser(USER), idOf(number), NOW), true);
    await cut;
    assert.equal(await findOne(other, USER, idOf(number)), undefined);
  }
  await addTo(store, asUser(USER), additions(3), NOW);
  const cut = proxy.cutAtCommit("before", async () => {
    await removeFrom(other, asUser(USER), idOf(2), NOW);
  });
  assert.equal(await removeFrom(store, asUser(USER), idOf(3), NOW), true);
  await cut;
  assert.equal(await total(other), 0, "another process has removed something else meanwhile");
});

/** A write that must not run twice; afterwards, a repetition has another result or would be in the audit log twice. */
interface UnrepeatableCase {
  readonly write: (store: Store) => Promise<unknown>;
  readonly result: unknown;
  readonly repeated: unknown;
}

const INVITATION = credential(NOBODY, { kind: "invitation", label: "bob", createdAt: NOW });
const PASSKEY = credential(4_711, { kind: "passkey", passkey: { id: "key", publicKey: "public", counter: 1 } });
const RECOVERY_HASH = credential(4_711, {}).hash;
const SECOND_FACTOR = { secret: "s", step: 1, latest: 9, recoveryHashes: [RECOVERY_HASH], keepSession: undefined };
const ACTOR = { name: "ann", address: "" };
const ACTION = readAction(play("1", 10), NOW) ?? assert.fail();
const ROOT = { ...asUser(USER), requiresAdmin: true };
/** In this order, on one account. */
const LINK = {
  user: 4_711,
  kind: "list",
  title: undefined,
  language: "en",
  folder: undefined,
  except: [],
  ownTitles: false,
  createdAt: NOW,
} as const;

const UNREPEATABLE: Readonly<Record<string, UnrepeatableCase>> = {
  createAccount: { write: ({ accounts }) => accounts.create(4_711, ANN, NOW), result: 4_711, repeated: "name-taken" },
  setPassword: {
    write: ({ accounts }) =>
      accounts.setPassword(
        asUser(4_711),
        { passwordHash: "other", expectedHash: "hash", resetBy: { name: "root", address: "" } },
        NOW,
      ),
    result: true,
    repeated: false,
  },
  addCredential: {
    write: ({ accounts }) => accounts.addCredential(ROOT, INVITATION),
    result: "added",
    repeated: "gone",
  },
  removeCredential: {
    write: ({ accounts }) => accounts.removeCredential(ROOT, "invitation", INVITATION.credential.id, NOW),
    result: true,
    repeated: false,
  },
  replaceCounter: {
    write: ({ accounts }) => accounts.replaceCounter(PASSKEY.hash, 1, 2),
    result: true,
    repeated: false,
  },
  addSecondFactor: {
    write: ({ accounts }) => accounts.secondFactors.add(asUser(4_711), SECOND_FACTOR, NOW),
    result: "added",
    repeated: "exists",
  },
  useTotpStep: {
    write: ({ accounts }) => accounts.secondFactors.useStep(4_711, { ...SECOND_FACTOR, step: 2 }, NOW),
    result: true,
    repeated: false,
  },
  recordFailedCode: {
    write: ({ accounts }) => accounts.secondFactors.recordFailure(4_711, ACTOR, NOW),
    result: undefined,
    repeated: undefined,
  },
  useRecoveryCode: {
    write: ({ accounts }) => accounts.secondFactors.useRecoveryCode(4_711, RECOVERY_HASH, ACTOR, NOW),
    result: true,
    repeated: false,
  },
  replaceRecoveryCodes: {
    write: ({ accounts }) => accounts.secondFactors.replaceRecoveryCodes(asUser(4_711), [RECOVERY_HASH], NOW),
    result: true,
    repeated: true,
  },
  removeSecondFactor: {
    write: ({ accounts }) => accounts.secondFactors.remove(asUser(4_711), 4_711, NOW),
    result: "removed",
    repeated: "removed",
  },
  replaceRateLimit: {
    write: async ({ accounts }) => accounts.sharedRateLimits?.replace("ann", undefined, 1),
    result: true,
    repeated: false,
  },
  forgetDevice: {
    write: ({ apps }) => apps.forgetDevice(asUser(4_711), "phone", NOW),
    result: true,
    repeated: false,
  },
  addLink: {
    write: async ({ links }) => {
      const count = (await links.list(4_711)).length;
      const added = await links.add(asUser(4_711), { ...LINK, id: idOf(900 + count), secret: `secret ${count}` });
      return [added, (await links.list(4_711)).length];
    },
    result: ["added", 1],
    repeated: ["added", 2],
  },
  removeLink: {
    write: ({ links }) => links.remove(asUser(4_711), idOf(900), NOW),
    result: true,
    repeated: false,
  },
  importActions: {
    write: ({ apps }) => apps.importActions(asUser(4_711), [ACTION], NOW),
    result: [true],
    repeated: [false],
  },
  administer: {
    write: ({ administration }) => administration.change(ROOT, 4_711, "disable", NOW),
    result: "done",
    repeated: "done",
  },
  deleteAccount: {
    write: ({ accounts }) => accounts.delete(ROOT, NOW, 4_711),
    result: "deleted",
    repeated: "gone",
  },
};

test("commit: every write that must not run twice → has a case here", () => {
  const writes: Writes = WRITES;
  const names = Object.keys(writes).filter((name) => writes[name]?.isRepeatable !== true);
  assert.deepEqual(Object.keys(UNREPEATABLE).sort(), names.sort());
});

for (const when of ["before", "after"] as const) {
  test(`named writes: commit or reply lost (${when} it arrives) → done once, with the usual result`, async () => {
    const { store, other, proxy, url } = await openOverProxy(server);
    await store.accounts.create(USER, newAccountNamed("root"), NOW);
    for (const [name, { write, result, repeated }] of Object.entries(UNREPEATABLE)) {
      if (name === "replaceCounter") assert.equal(await store.accounts.addCredential(asUser(4_711), PASSKEY), "added");
      if (name === "forgetDevice") await store.apps.saveDevice(asUser(4_711), { key: "app", device: "phone" }, {}, NOW);
      const cut = proxy.cutAtCommit(when);
      assert.deepEqual(await write(store), result, name);
      await cut;
      if (name === "replaceCounter") assert.deepEqual(await storedTimes(url), [{ used_at: 0, expires_at: 0 }]);
      assert.deepEqual(await write(other), repeated, `${name}, repeated`);
    }
    const { entries } = await other.administration.auditLog({ offset: 0, size: 100 });
    assert.deepEqual(entries.map(({ action, target }) => `${action} ${target}`).sort(), [
      "account-created root",
      "account-deleted ann",
      "account-disabled ann",
      "account-signed-up ann",
      "invitation-created bob",
      "invitation-revoked bob",
      "password-reset ann",
      "recovery-code-used ann",
      "recovery-codes-created ann",
      "recovery-codes-created ann",
      "second-factor-added ann",
      "second-factor-failed ann",
      "second-factor-failed ann",
      "second-factor-removed ann",
    ]);
  });
}

/** An unset date is stored in the same way on every engine. */
function storedTimes(url: string): Promise<unknown> {
  return server.query("select used_at::int, expires_at::int from earmark.credentials", databaseOf(url));
}

test("commit: lost, and another process adds the feed → only that one gets added", async () => {
  const { store, other, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  let theirs: Outcome[] = [];
  const cut = proxy.cutAtCommit("before", async () => {
    theirs = await addTo(other, asUser(USER), additions(9), NOW);
  });
  const ours = await addTo(store, asUser(USER), additions(9), NOW);
  await cut;
  assert.deepEqual([statusOf(theirs[0]), statusOf(ours[0])], ["added", "already-subscribed"]);
});

test("commit: lost, and the server stays unreachable → the outcome is unknown", async () => {
  const { store, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0), NOW);
  void proxy.cutAtCommit("after", () => sleep(4_000));
  await assert.rejects(
    addTo(store, asUser(USER), additions(1), NOW),
    (error: unknown) => error instanceof StoreUnavailable && error.isOutcomeUnknown,
  );
});

test("accounts, apps: reply lost, and the server stays unreachable → the outcome is unknown", async () => {
  const { store, proxy } = await openOverProxy(server);
  const { accounts, apps, administration } = store;
  const root = await accounts.create(1, newAccountNamed("root", { isCreatedByOperator: true }), NOW);
  await accounts.create(4_711, ANN, NOW);
  const admin = { ...asUser(Number(root)), requiresAdmin: true };
  const writes = {
    create: () => accounts.create(4_712, newAccountNamed("bob"), NOW),
    saveDevice: () => apps.saveDevice(asUser(4_711), { key: "phone", device: "phone" }, {}, NOW),
    disable: () => administration.change(admin, 4_712, "disable", NOW),
    delete: () => accounts.delete(asUser(4_711), NOW),
  };
  for (const [name, write] of Object.entries(writes)) {
    const cut = proxy.cutAtCommit("after", () => sleep(2_500));
    await assert.rejects(write, (error: unknown) => error instanceof StoreUnavailable && error.isOutcomeUnknown, name);
    await cut;
  }
});

test("write of one statement: connection lost while it runs, and not restored → the outcome is unknown", async () => {
  const { store, proxy, url } = await openOverProxy(server);
  await store.accounts.create(4_711, ANN, NOW);
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; select 1 from earmark.accounts where user_id = 4711 for update");
  const seen = assert.rejects(
    store.administration.recordSeen(4_711, NOW),
    (error: unknown) => error instanceof StoreUnavailable && error.isOutcomeUnknown,
  );
  const waiting = `select 1 from pg_stat_activity where datname = '${databaseOf(url)}' and wait_event_type = 'Lock'`;
  while ((await server.query(waiting)).length === 0) await sleep(5);
  proxy.mode = "refuse";
  await seen;
  await blocker.end();
  proxy.mode = "pass";
});

test("commit: the servers of a cluster freeze while it runs → the outcome is unknown, and it was applied", async () => {
  const [one, other] = [await startProxy(server.port), await startProxy(server.port)];
  const url = await server.migratedDatabase();
  const hosts = `127.0.0.1:${one.port},127.0.0.1:${other.port}`;
  const cluster = url.replace(/127\.0\.0\.1:\d+/, hosts).replace(CONNECT_TIMEOUT, "load_balance_hosts=random");
  const store = await open(cluster);
  const users = Array.from({ length: 5 }, (_, index) => index + 1);
  for (const user of users) await addTo(store, asUser(user), additions(0), NOW);
  await onInsert(url, "at commit", "perform pg_sleep(0.5)");
  const adding = users.map((user) =>
    assert.rejects(
      addTo(store, asUser(user), additions(1), NOW),
      (error: unknown) => error instanceof StoreUnavailable && error.isOutcomeUnknown,
    ),
  );
  const areCommitting = `select 1 from pg_stat_activity where datname = '${databaseOf(url)}' and query = 'commit' and state = 'active'`;
  while ((await server.query(areCommitting)).length < users.length) await sleep(5);
  for (const wire of [one, other]) wire.mode = "stall";
  await Promise.all(adding);
  const direct = await open(url);
  for (const user of users) assert.equal(await total(direct, user), 2);
  for (const wire of [one, other]) wire.mode = "refuse";
});

for (const [name, code] of [
  ["serialization failure", "40001"],
  ["deadlock", "40P01"],
] as const) {
  for (const when of ["at insert", "at commit"] as const) {
    test(`change: ${name} ${when} → retried, and given up if it persists`, async () => {
      const url = await server.migratedDatabase();
      const store = await open(url);
      await addTo(store, asUser(USER), additions(0), NOW);
      await onInsert(url, when, `if nextval('tries') <= 2 then ${raise(code)}; end if`);
      assert.equal(statusOf((await addTo(store, asUser(USER), additions(1), NOW))[0]), "added");
      await server.query("alter sequence tries minvalue -1000000 restart with -1000000", databaseOf(url));
      await assert.rejects(addTo(store, asUser(USER), additions(2), NOW), isKnownFailure);
      await server.query("drop trigger trouble on earmark.subscriptions", databaseOf(url));
      assert.equal(statusOf((await addTo(store, asUser(USER), additions(2), NOW))[0]), "added");
      assert.equal(await total(store), 3);
    });
  }
}

test("access: a caller with a credential → one more statement", async () => {
  const { store, proxy } = await openOverProxy(server);
  const { first } = await newCallers(store);
  await addTo(store, first, additions(10), NOW);
  assert.equal(await statementsOf(proxy, () => addTo(store, first, additions(11, 100), NOW)), 5 + 1);
  assert.equal(await statementsOf(proxy, () => removeFrom(store, first, idOf(10), NOW)), 6 + 2);
});

test("access: a change that ends its own credential, reply lost → reported as done", async () => {
  const { store, proxy } = await openOverProxy(server);
  const { first, second } = await newCallers(store);
  const lose = async (work: () => Promise<boolean | string>, expected: boolean | string = true) => {
    const cut = proxy.cutAtCommit("after");
    assert.equal(await work(), expected);
    await cut;
  };
  await lose(() => store.accounts.removeCredential(first, "token", idOf(1), NOW));
  await assert.rejects(store.accounts.removeCredential(first, "token", idOf(1), NOW), AccessRevoked);
  await lose(() => store.accounts.setPassword(second, { passwordHash: "other", expectedHash: "hash" }, NOW));
  await lose(() => store.accounts.delete(second, NOW), "deleted");
  await assert.rejects(store.accounts.delete(second, NOW), AccessRevoked);
});

test("access: a write has locked the credential → a revocation waits for it", async () => {
  const { store, other, url } = await openOverProxy(server);
  const { first } = await newCallers(store);
  await onInsert(url, "at commit", "perform pg_sleep(0.5)");
  const written = addTo(store, first, additions(30, 1), NOW);
  const isCommitting = "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
  while ((await server.query(isCommitting, databaseOf(url))).length === 0) await sleep(1);
  assert.equal(await other.accounts.removeCredential(asUser(4_711), "token", idOf(1), NOW), true);
  assert.equal(await total(other, 4_711), 4, "committed before the revocation");
  assert.deepEqual((await written).map(statusOf), ["added"]);
});

test("access: revoked while a commit is lost on its way → nothing is written", async () => {
  const { store, other, proxy } = await openOverProxy(server);
  const { first } = await newCallers(store);
  const cut = proxy.cutAtCommit("before", async () => {
    assert.equal(await other.accounts.removeCredential(asUser(4_711), "token", idOf(1), NOW), true);
  });
  await assert.rejects(addTo(store, first, additions(2, 2), NOW), AccessRevoked);
  await cut;
  assert.equal(await total(other, 4_711), 3);
});

test("access: revoked after a commit whose reply was lost → reported as done", async () => {
  const { store, other, proxy } = await openOverProxy(server);
  const { first } = await newCallers(store);
  const cut = proxy.cutAtCommit("after", async () => {
    assert.equal(await other.accounts.removeCredential(asUser(4_711), "token", idOf(1), NOW), true);
  });
  assert.equal((await addTo(store, first, additions(2, 2), NOW)).map(statusOf).at(-1), "added");
  await cut;
  await assert.rejects(addTo(store, first, additions(20, 2), NOW), AccessRevoked);
});
