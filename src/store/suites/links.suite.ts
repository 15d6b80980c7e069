import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { NOBODY } from "../../accounts/account-store.ts";
import { AccessRevoked, asUser, type UserId } from "../../accounts/caller.ts";
import { type Link, MAX_LINKS } from "../../links/link-store.ts";
import type { Store } from "../shared/contract.ts";
import { credential, newAccountNamed } from "./accounts-test-support.ts";

const NOW = new Date("2026-03-04T05:06:07.890Z");
const DAY_MS = 24 * 60 * 60_000;
const days = (count: number) => new Date(NOW.getTime() + count * DAY_MS);
let users = 2 ** 41;

function newUser(): UserId {
  users += 1;
  return users;
}

function newLink(user: UserId, more: Partial<Link> = {}): Link {
  return {
    id: randomUUID(),
    user,
    secret: randomUUID(),
    kind: "list",
    title: undefined,
    language: "en",
    folder: undefined,
    except: [],
    ownTitles: false,
    createdAt: NOW,
    ...more,
  };
}

/** What every engine guarantees of secret links, and of what alerts are computed from. */
export function describeLinks(engine: string, store: Store): void {
  const { links, alerts, accounts, administration, podcasts, apps } = store;
  const newAccount = async (): Promise<UserId> => {
    const user = newUser();
    const account = { ...newAccountNamed(`name-${user}`), isCreatedByOperator: false };
    assert.equal(await accounts.create(user, account, days(-1)), user);
    return user;
  };
  const add = async (user: UserId, more: Partial<Link> = {}) => {
    const link = newLink(user, more);
    assert.equal(await links.add(asUser(user), link), "added");
    return link;
  };

  describe(`links on ${engine}`, () => {
    test("links: added → found by the secret and listed, oldest first, as they were", async () => {
      const user = await newAccount();
      const later = await add(user, { createdAt: days(1), kind: "alerts", language: "zh" });
      const first = await add(user, {
        title: "Für dich “éλ” 名前",
        folder: "News/Tech",
        except: [randomUUID(), randomUUID()],
        ownTitles: true,
        language: "de",
      });
      assert.deepEqual(await links.list(user), [first, later]);
      assert.deepEqual(await links.find(first.secret), first);
      assert.deepEqual(await links.find(later.secret), later);
    });

    test("links: another secret, another user, another id → nothing", async () => {
      const [ann, bob] = [await newAccount(), await newAccount()];
      const link = await add(ann);
      for (const unknown of ["", randomUUID(), link.secret.toUpperCase(), link.secret.slice(1), `${link.secret} `])
        assert.equal(await links.find(unknown), undefined, unknown);
      assert.deepEqual(await links.list(bob), []);
      assert.equal(await links.remove(asUser(bob), link.id, NOW), false);
      assert.equal(await links.remove(asUser(ann), randomUUID(), NOW), false);
      assert.deepEqual(await links.find(link.secret), link);
    });

    test("links: removed → not found, once", async () => {
      const user = await newAccount();
      const [one, other] = [await add(user), await add(user)];
      assert.equal(await links.remove(asUser(user), one.id, NOW), true);
      assert.equal(await links.remove(asUser(user), one.id, NOW), false);
      assert.equal(await links.find(one.secret), undefined);
      assert.deepEqual(await links.list(user), [other]);
    });

    test(`links: more than ${MAX_LINKS} at once → exactly that many, with and without an account`, async () => {
      for (const user of [await newAccount(), newUser()]) {
        const tries = Array.from({ length: MAX_LINKS + 5 }, () => links.add(asUser(user), newLink(user)));
        const results = await Promise.all(tries);
        assert.equal(results.filter((result) => result === "added").length, MAX_LINKS);
        assert.equal(results.filter((result) => result === "full").length, 5);
        const [first] = await links.list(user);
        assert.ok(first);
        assert.equal(await links.remove(asUser(user), first.id, NOW), true);
        await add(user);
      }
    });

    test("links: the account is disabled → ended, and none can be added until it is enabled", async () => {
      const user = await newAccount();
      const link = await add(user);
      assert.equal(await administration.change(asUser(NOBODY), user, "disable", NOW), "done");
      assert.equal(await links.find(link.secret), undefined);
      assert.equal(await links.add(asUser(user), newLink(user)), "gone");
      assert.equal(await administration.change(asUser(NOBODY), user, "enable", NOW), "done");
      assert.equal(await links.find(link.secret), undefined);
      assert.deepEqual(await links.list(user), []);
      await add(user);
    });

    test("links: the account is deleted → ended, and none can be added", async () => {
      const [user, other] = [await newAccount(), await newAccount()];
      const [link, kept] = [await add(user), await add(other)];
      assert.equal(await accounts.delete(asUser(user), NOW), "deleted");
      assert.equal(await links.find(link.secret), undefined);
      assert.deepEqual(await links.list(user), []);
      assert.equal(await links.add(asUser(user), newLink(user)), "gone");
      assert.deepEqual(await links.find(kept.secret), kept);
    });

    test("links: the caller's session was revoked → rejected, nothing changes", async () => {
      const user = await newAccount();
      const link = await add(user);
      const session = credential(user, { kind: "session", createdAt: NOW });
      assert.equal(await accounts.addCredential(asUser(NOBODY), session), "added");
      const caller = { ...asUser(user), credentialHash: session.hash };
      await accounts.removeCredential(asUser(user), "session", session.credential.id, NOW);
      await assert.rejects(links.add(caller, newLink(user)), AccessRevoked);
      await assert.rejects(links.remove(caller, link.id, NOW), AccessRevoked);
      assert.deepEqual(await links.list(user), [link]);
    });
  });

  describe(`facts for alerts on ${engine}`, () => {
    const signIn = async (user: UserId, label: string, at: Date, kind: "session" | "token" | "passkey" = "session") => {
      const added = credential(user, { kind, label, createdAt: at });
      assert.equal(await accounts.addCredential(asUser(NOBODY), added), "added");
      return added.credential;
    };
    const labels = async (user: UserId, since = days(-30)) =>
      (await alerts.signIns(user, since, 50)).map(({ kind, label }) => `${kind} ${label}`);

    test("sign-ins: a new browser and each token → recorded, also when they have ended", async () => {
      const [user, other] = [await newAccount(), await newAccount()];
      const session = await signIn(user, "Firefox", days(0));
      await signIn(user, "Firefox", days(1));
      const token = await signIn(user, "phone", days(2), "token");
      await signIn(user, "phone", days(3), "token");
      await signIn(user, "key", days(3), "passkey");
      await accounts.removeCredential(asUser(user), "session", session.id, NOW);
      await accounts.removeCredential(asUser(user), "token", token.id, NOW);
      await signIn(user, "Firefox", days(4));
      assert.deepEqual(await labels(user), ["token phone", "token phone", "session Firefox"]);
      assert.deepEqual(await alerts.signIns(user, days(-1), 1), [
        { id: (await alerts.signIns(user, days(-1), 1))[0]?.id, kind: "token", label: "phone", at: days(3) },
      ]);
      assert.deepEqual(await labels(user, days(0)), ["token phone", "token phone"]);
      assert.deepEqual(await labels(other), []);
    });

    test("sign-ins: the session of a sign-up → not new; a browser is forgotten after a year without sign-ins", async () => {
      const user = newUser();
      await accounts.create(user, { ...newAccountNamed(`name-${user}`), isCreatedByOperator: false }, NOW);
      await signIn(user, "Firefox", NOW);
      assert.deepEqual(await labels(user), []);
      await signIn(user, "Firefox", days(300));
      await signIn(user, "Safari", days(500));
      await signIn(user, "Firefox", days(600));
      assert.deepEqual(await labels(user), ["session Safari"]);
      await signIn(user, "Opera", days(600 + 366));
      for (const { id } of await accounts.listCredentials(user, "session"))
        await accounts.removeCredential(asUser(user), "session", id, NOW);
      await signIn(user, "Firefox", days(600 + 367));
      assert.deepEqual(await labels(user), ["session Firefox", "session Opera"]);
    });

    test("sign-ins: many tokens → the oldest are forgotten", async () => {
      const user = await newAccount();
      for (let count = 0; count < 210; count += 1) {
        const { id } = await signIn(user, `token ${count}`, new Date(NOW.getTime() + count), "token");
        await accounts.removeCredential(asUser(user), "token", id, NOW);
      }
      const listed = await alerts.signIns(user, days(-1), 1_000);
      assert.equal(listed.length, 200);
      assert.equal(listed.at(-1)?.label, "token 10");
    });

    test("devices: syncs in calendar weeks → counted up to three", async () => {
      const user = await newAccount();
      const monday = Date.parse("2026-03-02T00:00:00Z");
      const sync = (at: number) =>
        apps.saveDevice(asUser(user), { key: "phone", device: "phone" }, { caption: "Phone" }, new Date(at));
      const weeks = async () => (await alerts.devices(user)).map((each) => each.weeks);
      await sync(monday - 1);
      assert.deepEqual(await weeks(), [1]);
      await sync(monday);
      await sync(monday + 7 * DAY_MS - 1);
      assert.deepEqual(await weeks(), [2]);
      await sync(monday - 20 * DAY_MS);
      assert.deepEqual(await weeks(), [2]);
      for (const week of [1, 2, 3]) await sync(monday + week * 7 * DAY_MS);
      const syncedAt = new Date(monday + 21 * DAY_MS);
      assert.deepEqual(await alerts.devices(user), [{ id: "phone", caption: "Phone", syncedAt, weeks: 3 }]);
      assert.deepEqual(await alerts.devices(newUser()), []);
    });

    test("failures: by feed URL, for feeds whose last fetch failed", async () => {
      const user = await newAccount();
      const urls = ["gone", "fine", "unknown"].map((name) => `https://${name}-${user}.example/feed`);
      const [gone, fine] = await podcasts.find(urls);
      assert.ok(gone && fine);
      await podcasts.create(
        [gone, fine].map(({ id }) => ({ user, id })),
        NOW,
      );
      const record = async (id: string, more: object) => {
        const claimed = await podcasts.claim(id, NOW, days(1));
        assert.ok(claimed);
        assert.ok(await podcasts.record(id, days(1), { ...claimed, ...more }));
      };
      const checkedAt = days(0).getTime();
      await record(gone.id, { failure: "gone", failureSince: days(-8).getTime(), checkedAt, isBlocked: 1 });
      await record(fine.id, { checkedAt });
      const failure = { kind: "gone", since: days(-8), checkedAt: days(0) };
      assert.deepEqual(await alerts.failures([...urls, urls[0] ?? ""]), [failure, undefined, undefined, failure]);
      assert.deepEqual(
        (await podcasts.find(urls)).map(({ isBlocked }) => isBlocked),
        [true, false, false],
      );
      assert.deepEqual(await alerts.failures([]), []);
    });

    test("backups: the last one is recorded", async () => {
      assert.equal(await alerts.lastBackup(), undefined);
      await alerts.recordBackup(days(1));
      await alerts.recordBackup(days(9));
      assert.deepEqual(await alerts.lastBackup(), days(9));
    });
  });
}
