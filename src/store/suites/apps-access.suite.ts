import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { collect } from "../../../test/support/app-clients.ts";
import { AccessRevoked, asUser, type Caller, type UserId } from "../../accounts/caller.ts";
import type { UploadedAction } from "../../apps/episode-actions.ts";
import { AppSync } from "../../apps/sync.ts";
import type { Store } from "../shared/contract.ts";
import { credential, NOW, newAccountNamed, SERVER } from "./accounts-test-support.ts";

const PHONE = { key: "phone", device: "phone" };
const url = (name: string) => `https://feeds.example/${name}`;

function play(episode: string): UploadedAction {
  return {
    podcast: url("a"),
    episode: `https://media.example/${episode}`,
    guid: undefined,
    device: undefined,
    kind: "play",
    actedAt: NOW,
    position: 1,
    started: 0,
    total: 100,
  };
}

/** The contract of every engine when the access of an app ends. */
export function describeAppAccess(engine: string, store: Store): void {
  const { accounts } = store;
  const sync = new AppSync(store);
  let users = 4_000_000;

  /** An account with something that every write would change, and its callers. */
  const newAccountWithData = async () => {
    users += 1;
    const account = newAccountNamed(`apps-access-${users}`, { isCreatedByOperator: false });
    const user = await accounts.create(users, account, NOW);
    assert.ok(typeof user === "number");
    const token = credential(user);
    assert.equal(await accounts.addCredential(SERVER, token), "added");
    await sync.changeFeeds(asUser(user), PHONE, { add: [url("a")], remove: [] }, NOW);
    await sync.addActions(asUser(user), PHONE, [play("a")], NOW);
    const withToken: Caller = { ...asUser(user), credentialHash: token.hash };
    const withPassword: Caller = { ...asUser(user), passwordHash: account.passwordHash };
    return { user, token, withToken, withPassword };
  };

  const revoke = (user: UserId, id: string) => accounts.removeCredential(asUser(user), "token", id, NOW);
  const setPassword = (user: UserId) =>
    accounts.setPassword(asUser(user), { passwordHash: `hash ${randomUUID()}` }, NOW);

  const WRITES: Readonly<Record<string, (caller: Caller) => Promise<unknown>>> = {
    "feed added": (caller) => sync.changeFeeds(caller, PHONE, { add: [url("new")], remove: [] }, NOW),
    "feed removed": (caller) => sync.changeFeeds(caller, PHONE, { add: [], remove: [url("a")] }, NOW),
    "list replaced": (caller) => sync.replaceFeeds(caller, PHONE, [url("new")], NOW),
    "actions uploaded": (caller) => sync.addActions(caller, PHONE, [play("new")], NOW),
    "first poll of a device": (caller) => sync.feedsSince(caller, { key: "new", device: "new" }, 0, NOW),
    "first poll of actions": (caller) => sync.actionsSince(caller, { key: "new", device: "new" }, 0, undefined, NOW),
    "device saved": (caller) => store.apps.saveDevice(caller, PHONE, { caption: "new" }, NOW),
    "device renamed": (caller) => store.apps.changeDevice(caller, "phone", { caption: "new" }, NOW),
    "device forgotten": (caller) => store.apps.forgetDevice(caller, "phone", NOW),
    "app password created": (caller) => accounts.addCredential(caller, credential(caller.user)),
  };

  const contentOf = async (user: UserId) => {
    const actions = [];
    for await (const some of sync.everyAction(user)) actions.push(...some);
    const tokens = (await accounts.listCredentials(user, "token")).length;
    return {
      list: await store.page(user, { offset: 0, size: 10 }),
      devices: await store.apps.devices(user),
      actions,
      tokens,
    };
  };

  describe(`access of apps on ${engine}`, () => {
    for (const [name, write] of Object.entries(WRITES)) {
      test(`${name}: with a token or the password → written`, async () => {
        const { user, withToken, withPassword } = await newAccountWithData();
        const before = await contentOf(user);
        for (const caller of [withToken, withPassword]) await write(caller);
        if (!name.includes("poll of actions")) assert.notDeepEqual(await contentOf(user), before);
      });

      test(`${name}: token revoked or password changed meanwhile → rejected, nothing written`, async () => {
        const { user, token, withToken, withPassword } = await newAccountWithData();
        await revoke(user, token.credential.id);
        assert.equal(await setPassword(user), true);
        const before = await contentOf(user);
        for (const caller of [withToken, withPassword]) await assert.rejects(write(caller), AccessRevoked);
        assert.deepEqual(await contentOf(user), before);
      });

      test(`${name}: account deleted meanwhile → rejected`, async () => {
        const { user, withToken, withPassword } = await newAccountWithData();
        assert.equal(await accounts.delete(asUser(user), NOW), "deleted");
        for (const caller of [withToken, withPassword]) await assert.rejects(write(caller), AccessRevoked);
        assert.deepEqual(
          [await store.apps.devices(user), (await store.page(user, { offset: 0, size: 1 })).total],
          [[], 0],
        );
      });
    }

    test("account deleted → everything is erased, and nothing can be read", async () => {
      const { user } = await newAccountWithData();
      const many = Array.from({ length: 2_500 }, (_, index) => play(String(index)));
      await sync.addActions(asUser(user), PHONE, many, NOW);
      const { pages } = await sync.actionsSince(asUser(user), PHONE, 0, undefined, NOW);
      assert.equal((await collect(pages)).length, 2_501);
      assert.equal(await accounts.delete(asUser(user), NOW), "deleted");
      await assert.rejects(sync.addActions(asUser(user), PHONE, [play("x")], NOW), AccessRevoked);
      await assert.rejects(sync.feedsSince(asUser(user), PHONE, 0, NOW), AccessRevoked);
      const range = { after: 0, upTo: 3_000, limit: 10, feed: undefined };
      assert.deepEqual(await store.apps.actions(user, range), []);
      assert.deepEqual(await store.apps.spellings(user, ["feeds.example/a"]), []);
      assert.deepEqual(await store.apps.devices(user), []);
    });

    test("app login: the session that allows it ends meanwhile → rejected, the app gets no token", async () => {
      const { user } = await newAccountWithData();
      const session = credential(user, { kind: "session" });
      assert.equal(await accounts.addCredential(SERVER, session), "added");
      await setPassword(user);
      const token = credential(user);
      const caller = { ...asUser(user), credentialHash: session.hash };
      await assert.rejects(accounts.addCredential(caller, token), AccessRevoked);
      assert.equal(await accounts.findCredential(token.hash), undefined);
    });

    test("password changed while apps write with it → nothing is written after the change is confirmed", async () => {
      for (let round = 0; round < 3; round += 1) {
        const { user, withPassword } = await newAccountWithData();
        let [isDone, next, refused] = [false, 0, 0];
        const writers = Array.from({ length: 3 }, async (_, index) => {
          while (!isDone) {
            next += 1;
            const write =
              index === 0
                ? sync.addActions(withPassword, PHONE, [play(`x${next}`)], NOW)
                : sync.changeFeeds(withPassword, PHONE, { add: [url(`x${next}`)], remove: [] }, NOW);
            await write.catch((error: unknown) => {
              assert.ok(error instanceof AccessRevoked, String(error));
              refused += 1;
            });
          }
        });
        await sleep(10 * round);
        assert.equal(await setPassword(user), true);
        const whenConfirmed = await contentOf(user);
        await sleep(20);
        isDone = true;
        await Promise.all(writers);
        assert.deepEqual(await contentOf(user), whenConfirmed);
        assert.ok(refused > 0, "some writes came after the change");
      }
    });
  });
}
