import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Accounts } from "../../accounts/accounts.ts";
import { AccessRevoked, asUser, type UserId } from "../../accounts/caller.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";
import { Signatures } from "../../accounts/signatures.ts";
import { latestStep, stepAt, totpCode } from "../../accounts/totp.ts";
import {
  type AccountsContext,
  countOf,
  credential,
  later,
  NOW,
  newHash,
  SERVER,
  times,
} from "./accounts-test-support.ts";

const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const ACTOR = { name: "ann", address: "192.0.2.1" };
const STEP_MS = 30_000;

export function describeSecondFactors({
  accounts,
  administration,
  newUser,
  newAccount,
  add,
  idsOf,
}: AccountsContext): void {
  const { secondFactors } = accounts;
  const step = stepAt(NOW);
  const latest = latestStep(NOW);

  /** Of users who were added for the test; names are unique. */
  async function actionsOn(name: string): Promise<string[]> {
    const { entries } = await administration.auditLog({ offset: 0, size: 1_000 });
    return entries.flatMap(({ target, action }) => (target === name ? [action] : [])).sort();
  }

  async function newAccountWithApp(recoveryHashes = times(10, newHash)) {
    const account = await newAccount();
    const added = { secret: SECRET, step, latest, recoveryHashes, keepSession: undefined };
    assert.equal(await secondFactors.add(asUser(account.user), added, NOW), "added");
    return { ...account, recoveryHashes };
  }

  const use = (user: UserId, at: number, secret = SECRET) =>
    secondFactors.useStep(user, { secret, step: at, latest }, NOW);

  describe("second factors", () => {
    test("second factors: added → stored with its recovery codes, audited, other sessions ended", async () => {
      const account = await newAccount();
      const { user, name, passwordHash } = account;
      const [kept, other] = [await add(user, { kind: "session" }), await add(user, { kind: "session" })];
      const caller = { ...asUser(user), credentialHash: kept.hash, actor: ACTOR };
      const added = {
        secret: SECRET,
        step,
        latest,
        recoveryHashes: times(10, newHash),
        keepSession: kept.credential.id,
      };
      assert.equal((await accounts.get(user))?.totpSecret, undefined);
      assert.equal(await secondFactors.add(caller, added, NOW), "added");
      assert.deepEqual(await accounts.get(user), {
        account: { ...(await accounts.get(user))?.account },
        passwordHash,
        totpSecret: SECRET,
      });
      assert.equal((await idsOf(user, "recovery-code")).length, 10);
      assert.deepEqual(await idsOf(user, "session"), [kept.credential.id]);
      assert.equal((await administration.get(user))?.hasSecondFactor, true);
      assert.equal(await secondFactors.add(caller, { ...added, recoveryHashes: times(10, newHash) }, NOW), "exists");
      assert.equal((await idsOf(user, "recovery-code")).length, 10, "not without removing the first one");
      const ended = { ...caller, credentialHash: other.hash };
      await assert.rejects(secondFactors.remove(ended, user, NOW), AccessRevoked);
      await assert.rejects(secondFactors.replaceRecoveryCodes(ended, [], NOW), AccessRevoked);
      assert.deepEqual(await actionsOn(name), ["account-created", "second-factor-added"]);
    });

    test("second factors: a step → used once, and no earlier one after it", async () => {
      const { user } = await newAccountWithApp();
      assert.equal(await use(user, step), false, "it has confirmed the app");
      assert.equal(await use(user, step + 1, "OTHER"), false);
      assert.equal(await use(user, step + 1), true);
      assert.equal(await use(user, step + 1), false);
      assert.equal(await use(user, step), false);
      assert.equal(await use(user, step + 2), true);
      assert.equal(await use(newUser(), step), false);
    });

    test("second factors: one step used many times at once → only one succeeds", async () => {
      const { user } = await newAccountWithApp();
      for (const each of [1, 2, 3]) {
        const outcomes = await Promise.all(times(20, () => use(user, step + each)));
        assert.equal(countOf(outcomes, true), 1);
      }
    });

    test("second factors: the clock was set back → codes are accepted again, each once", async () => {
      const { user } = await newAccountWithApp();
      const back = later(-100 * STEP_MS);
      const earlier = (each: number) =>
        secondFactors.useStep(user, { secret: SECRET, step: each, latest: latestStep(back) }, back);
      assert.equal(await earlier(stepAt(back)), true);
      assert.equal(await earlier(stepAt(back)), false);
      assert.equal(await earlier(stepAt(back) + 1), true);
    });

    test("second factors: a recovery code → used once, by its user only, and audited", async () => {
      const { user, name, recoveryHashes } = await newAccountWithApp();
      const other = await newAccountWithApp();
      const [hash = "", second = ""] = recoveryHashes;
      assert.equal(await secondFactors.useRecoveryCode(other.user, hash, ACTOR, NOW), false);
      const outcomes = await Promise.all(times(10, () => secondFactors.useRecoveryCode(user, hash, ACTOR, NOW)));
      assert.equal(countOf(outcomes, true), 1);
      assert.equal((await idsOf(user, "recovery-code")).length, 9);
      await secondFactors.recordFailure(user, ACTOR, later(1));
      const recorded = ["account-created", "recovery-code-used", "second-factor-added", "second-factor-failed"];
      assert.deepEqual(await actionsOn(name), recorded);
      const { credential: token, hash: tokenHash } = await add(user);
      assert.equal(await secondFactors.useRecoveryCode(user, tokenHash, ACTOR, NOW), false, "only of this kind");
      assert.deepEqual(await idsOf(user, "token"), [token.id]);
      assert.equal(await secondFactors.replaceRecoveryCodes(asUser(user), times(10, newHash), NOW), true);
      assert.equal(await secondFactors.useRecoveryCode(user, second, ACTOR, NOW), false, "an old one");
      assert.equal((await idsOf(user, "recovery-code")).length, 10);
    });

    test("second factors: removed → the password is enough, used codes stay used", async () => {
      const { user, name } = await newAccountWithApp();
      assert.equal(await secondFactors.remove(SERVER, user, NOW), "removed");
      assert.equal((await accounts.get(user))?.totpSecret, undefined);
      assert.deepEqual(await idsOf(user, "recovery-code"), []);
      assert.equal(await secondFactors.replaceRecoveryCodes(asUser(user), times(10, newHash), NOW), false);
      const added = { secret: SECRET, step, latest, recoveryHashes: [], keepSession: undefined };
      assert.equal(await secondFactors.add(asUser(user), added, NOW), "used");
      assert.equal(await secondFactors.add(asUser(user), { ...added, step: step + 1 }, NOW), "added");
      assert.equal(await secondFactors.remove(asUser(user), user, later(1)), "removed");
      assert.equal(await secondFactors.remove(asUser(user), user, later(2)), "removed", "safe to repeat");
      assert.equal(await secondFactors.remove(SERVER, newUser(), NOW), "gone");
      const actions = await actionsOn(name);
      assert.equal(countOf(actions, "second-factor-reset"), 1);
      assert.equal(countOf(actions, "second-factor-removed"), 1);
    });

    test("second factors: added while users sign in with the password alone → no such session remains", async () => {
      for (let round = 0; round < 5; round += 1) {
        const { user, passwordHash } = await newAccount();
        const open = () =>
          accounts.addCredential(SERVER, { ...credential(user, { kind: "session" }), password: { passwordHash } });
        const earlier = Promise.all(times(10, open));
        const adding = { secret: SECRET, step, latest, recoveryHashes: times(2, newHash), keepSession: undefined };
        const added = secondFactors.add(asUser(user), adding, NOW);
        const outcomes = [...(await Promise.all(times(10, open))), ...(await earlier)];
        assert.equal(await added, "added");
        assert.equal(countOf(outcomes, "added") + countOf(outcomes, "gone"), 20);
        assert.deepEqual(await idsOf(user, "session"), []);
      }
    });

    test("second factors: an app that signed in with the password → its writes are refused", async () => {
      const { user, passwordHash } = await newAccount();
      const withPassword = { ...asUser(user), passwordHash, hasPasswordOnly: true };
      const write = () => secondFactors.remove(withPassword, user, NOW);
      assert.equal(await write(), "removed");
      const added = { secret: SECRET, step, latest, recoveryHashes: [], keepSession: undefined };
      assert.equal(await secondFactors.add(asUser(user), added, NOW), "added");
      await assert.rejects(write(), AccessRevoked);
    });

    test("second factors: one code sent by many at once → one sign-in", async () => {
      const rules = new Accounts(accounts, { signUp: false });
      const name = `totp-${newUser()}`;
      const password = "correct horse battery";
      const created = await rules.create(name, password, NOW);
      assert.ok(!isAccountRefusal(created));
      const account = await rules.get(created.user);
      assert.ok(account !== undefined);
      const signatures = new Signatures(rules);
      const { ticket, secret } = await rules.secondFactor.enroll(account, signatures, NOW);
      const confirm = (at: Date) => {
        const confirmed = { ticket, oneTimeCode: totpCode(secret, stepAt(at)) };
        return rules.secondFactor.confirm(asUser(created.user), confirmed, { signatures, keepSession: undefined }, at);
      };
      assert.ok(!isAccountRefusal(await confirm(NOW)));
      const at = later(STEP_MS);
      const oneTimeCode = totpCode(secret, stepAt(at));
      const attempts = times(5, (each) =>
        rules.signIn(
          { name, password, oneTimeCode, networks: [`network ${each}`], label: "test", address: "192.0.2.1" },
          at,
        ),
      );
      const reasons = (await Promise.all(attempts)).map((each) => (isAccountRefusal(each) ? each.reason : "in"));
      assert.deepEqual(reasons.sort(), ["in", ...times(4, () => "wrong-code")]);
      assert.equal(countOf(await actionsOn(name), "second-factor-failed"), 4);
    });
  });
}
