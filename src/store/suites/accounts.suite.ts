import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, describe } from "node:test";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { addTo, removeFrom } from "../../../test/support/lists.ts";
import { Accounts } from "../../accounts/accounts.ts";
import { Administration } from "../../accounts/administration.ts";
import { AccessRevoked, asUser, type UserId } from "../../accounts/caller.ts";
import { hashSecret } from "../../accounts/hash-secret.ts";
import type { Store } from "../shared/contract.ts";

import { describeAccountChanges } from "./accounts-changes.suite.ts";
import { describeCreation } from "./accounts-creation.suite.ts";
import { describeCredentials } from "./accounts-credentials.suite.ts";
import { describeSecondFactors } from "./accounts-second-factors.suite.ts";
import {
  addition,
  additions,
  createContext,
  credential,
  MEMBER,
  NOW,
  newAccountNamed,
  SERVER,
  type Stores,
  times,
} from "./accounts-test-support.ts";
import { describeAdministration } from "./administration.suite.ts";

/** Creates an account named `user-ID` with a list of this many items, one of them removed again. */
export async function fillAccount(store: Store, user: UserId, count: number): Promise<void> {
  assert.equal(
    await store.accounts.create(user, newAccountNamed(`user-${user}`, { isCreatedByOperator: false }), NOW),
    user,
  );
  for (let from = 0; from < count; from += 2_000)
    await addTo(store, asUser(user), additions(from, Math.min(2_000, count - from)), NOW);
  assert.equal(await removeFrom(store, asUser(user), addition(1).id, NOW), true);
}

/** Once `here` has confirmed a revocation, `there` rejects the credential, even while it is in continuous use. */
export async function assertRevokedEverywhere(
  { accounts: here, administration }: Store,
  { accounts: there }: Store,
): Promise<void> {
  const changing = new Accounts(here, { signUp: false });
  const verifying = new Accounts(there, { signUp: false });
  const administering = new Administration(administration, changing);
  const revocations: readonly ((user: UserId, id: string) => Promise<unknown>)[] = [
    (user, id) => changing.removeCredential(asUser(user), "session", id, NOW),
    async (user) =>
      changing.setPassword({ user, name: "", issuer: "", createdAt: NOW, ...MEMBER }, "correct horse battery", NOW),
    (user) => changing.delete(asUser(user), NOW),
    (user) => administering.change(SERVER, user, "disable", NOW),
  ];
  for (const [index, revoke] of revocations.entries()) {
    const user = await here.create(
      2 ** 41 + index,
      newAccountNamed(`revoked-${index}`, { isCreatedByOperator: false }),
      NOW,
    );
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
    await revoke(user, session.credential.id);
    assert.equal(await verify(), undefined);
    isEnded = true;
    assert.ok((await using) > 1, "it was in continuous use");
  }
}

/** Once `here` has confirmed a revocation, no write by `there` with that credential takes effect. */
export async function assertNoLateWrites(here: Stores, there: Stores): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    const user = await here.accounts.create(2 ** 42 + round, newAccountNamed(`late-${round}`), NOW);
    assert.ok(typeof user === "number");
    const token = credential(user);
    assert.equal(await here.accounts.addCredential(SERVER, token), "added");
    const caller = { ...asUser(user), credentialHash: token.hash };
    let [isDone, next, refused] = [false, 0, 0];
    const writers = times(4, async (index) => {
      while (!isDone) {
        next += 1;
        const write =
          index === 0
            ? there.accounts.addCredential(caller, credential(user))
            : addTo(there.subscriptions, caller, [addition(next)], NOW);
        await write.catch((error: unknown) => {
          assert.ok(error instanceof AccessRevoked, String(error));
          refused += 1;
        });
      }
    });
    await sleep(10 * round);
    assert.equal(await here.accounts.removeCredential(asUser(user), "token", token.credential.id, NOW), true);
    const countRows = async () => [
      (await here.subscriptions.page(user, { offset: 0, size: 1 })).total,
      (await here.accounts.listCredentials(user, "token")).length,
    ];
    const whenConfirmed = await countRows();
    await sleep(20);
    isDone = true;
    await Promise.all(writers);
    assert.deepEqual(await countRows(), whenConfirmed);
    assert.ok(refused > 0, "some writes came after the revocation");
  }
}

/** The contract of every engine. `open` gives a new empty database each time; closing `subscriptions` releases it. */
export async function describeAccounts(engine: string, open: () => Promise<Stores>): Promise<void> {
  const context = await createContext(open);
  describe(`accounts on ${engine}`, () => {
    after(() => context.subscriptions.close());
    describeCreation(context);
    describeAccountChanges(context);
    describeCredentials(context);
    describeSecondFactors(context);
    describeAdministration(context);
  });
}
