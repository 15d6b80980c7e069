import { type Credential, NOBODY } from "../../src/accounts/account-store.ts";
import type { AuditEntry } from "../../src/accounts/administration-store.ts";
import { AccessRevoked, asUser, type Caller, LOCAL_USER } from "../../src/accounts/caller.ts";
import type { CredentialKind } from "../../src/accounts/credential-kinds.ts";
import { hashSecret } from "../../src/accounts/hash-secret.ts";
import type { KeyedAction } from "../../src/apps/episode-actions.ts";
import { feedKeyHex } from "../../src/lists/feed-url.ts";
import { newRecord } from "../../src/podcasts/podcast-store.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import { idOfUrl } from "../../src/store/shared/podcast-rows.ts";

/*
 * An account's life, from its invitation to its deletion: a fixed order of steps, each a named write. What a step leaves
 * behind is the same in every cycle, apart from the cycle's own user, name and ids.
 */

const START = Date.parse("2026-01-02T03:04:00Z");
const STEP_MS = 10_000;
/** Earlier than all other changes, whose history is kept. */
const LONG_AGO = new Date(START - 1_000);
const AFTER_LONG_AGO = new Date(START);
const DAY_MS = 24 * 60 * 60 * 1_000;
const PHONE = { key: "app", device: "phone" };
const KINDS = ["token", "disabled-token", "session", "passkey", "password-reset"] as const;
const HASH = "0123456789abcdef0123456789abcdef";
const IMAGES = { hash: HASH, small: Buffer.from("small"), large: Buffer.from("large") };

/** One cycle in a store. */
export class Cycle {
  readonly store: Store;
  readonly user: number;
  /** In all names and ids of the cycle: eight hexadecimal digits. */
  readonly tag: string;
  readonly url: string;
  /** The normalized URL. */
  readonly feed: string;
  readonly podcast: string;
  readonly actor: { readonly name: string; readonly address: string };

  constructor(store: Store, number: number) {
    this.store = store;
    this.user = 1_000_000_000 + number;
    this.tag = `c${String(number).padStart(7, "0")}`;
    this.feed = `feeds.example/${this.tag}`;
    this.url = `https://${this.feed}`;
    this.podcast = idOfUrl(this.url);
    this.actor = { name: `admin of ${this.tag}`, address: "192.0.2.1" };
  }

  get owner(): Caller {
    return { ...asUser(this.user), credentialHash: this.hash("token") };
  }

  get admin(): Caller {
    return { ...asUser(LOCAL_USER), requiresAdmin: true, actor: this.actor };
  }

  id(part: number): string {
    return `00000000-0000-4000-8000-${this.tag}${String(part).padStart(4, "0")}`;
  }

  hash(kind: CredentialKind): string {
    return hashSecret(`${this.tag} ${kind}`);
  }

  add(kind: CredentialKind, at: Date, more: Partial<Credential> = {}, caller = this.admin): Promise<string> {
    const rest = { scope: "write", label: this.tag, createdAt: at, usedAt: undefined, expiresAt: undefined } as const;
    const credential = { id: this.id(kind.length), kind, user: this.user, ...rest, ...more };
    return this.store.accounts.addCredential(caller, { credential, hash: this.hash(kind) });
  }

  /** An action for one of the feed's episodes. */
  play(position: number, actedAt: Date, device: string): KeyedAction {
    const { feed, url: podcast } = this;
    const rest = { guid: undefined, kind: "play", started: 0, total: 60, isUndated: false } as const;
    return { podcast, episode: `${podcast}/${position}`, feed, actedAt, device, position, ...rest };
  }

  /** Without what differs between cycles. */
  generalize(value: unknown): string {
    return String(JSON.stringify(value)).replaceAll(this.tag, "TAG").replaceAll(String(this.user), "1");
  }
}

type Step = (cycle: Cycle, at: Date) => Promise<unknown>;

const administer =
  (action: "promote" | "disable" | "enable" | "demote"): Step =>
  ({ store, admin, user }, at) =>
    store.administration.change(admin, user, action, at);

const STEPS_BY_NAME: Readonly<Record<string, Step>> = {
  invite: (cycle, at) => cycle.add("invitation", at, { user: NOBODY }),
  create: ({ store, user, tag, actor }, at) => {
    const account = { name: tag, issuer: "", passwordHash: "old", isCreatedByOperator: false, actor };
    return store.accounts.create(user, { ...account, invitationHash: hashSecret(`${tag} invitation`) }, at);
  },
  "add a token": (cycle, at) => cycle.add("token", at),
  "add a session": (cycle, at) => cycle.add("session", at, {}, cycle.owner),
  "add a passkey": (cycle, at) =>
    cycle.add("passkey", at, { passkey: { id: cycle.tag, publicKey: "key", counter: 1 } }),
  "create a reset link": (cycle, at) => cycle.add("password-reset", at),
  "use a token": (cycle, at) => cycle.store.accounts.touchCredential(cycle.hash("token"), at),
  "use a passkey": (cycle) => cycle.store.accounts.replaceCounter(cycle.hash("passkey"), 1, 2),
  "be seen": ({ store, user }, at) => store.administration.recordSeen(user, at),
  "reset the password": ({ store, owner, actor }, at) =>
    store.accounts.setPassword(owner, { passwordHash: "new", expectedHash: "old", resetBy: actor }, at),
  "add a second factor": (cycle, at) => {
    const { store, tag: secret, actor } = cycle;
    const added = { secret, step: 1, latest: 9, recoveryHashes: [cycle.hash("recovery-code")], keepSession: undefined };
    return store.accounts.secondFactors.add({ ...cycle.owner, actor }, added, at);
  },
  "use a code": ({ store, user, tag: secret }, at) =>
    store.accounts.secondFactors.useStep(user, { secret, step: 2, latest: 9 }, at),
  "record a wrong code": ({ store, user, actor }, at) => store.accounts.secondFactors.recordFailure(user, actor, at),
  "use a recovery code": (cycle, at) =>
    cycle.store.accounts.secondFactors.useRecoveryCode(cycle.user, cycle.hash("recovery-code"), cycle.actor, at),
  "replace the recovery codes": (cycle, at) => {
    const caller = { ...cycle.owner, actor: cycle.actor };
    return cycle.store.accounts.secondFactors.replaceRecoveryCodes(caller, [cycle.hash("recovery-code")], at);
  },
  "remove the second factor": ({ store, owner, user, actor }, at) =>
    store.accounts.secondFactors.remove({ ...owner, actor }, user, at),
  "add another session": (cycle, at) => cycle.add("session", at),
  subscribe: (cycle, at) => {
    const { store, owner, url, feed } = cycle;
    return store.change(owner, [{ kind: "add", id: cycle.id(1), feedUrl: url, normalizedUrl: feed }], at);
  },
  "create a podcast": async ({ store, user, podcast }, at) =>
    (await store.podcasts.create([{ user, id: podcast }], at)).length,
  "claim a podcast": ({ store, podcast }, at) => store.podcasts.claim(podcast, at, new Date(START + DAY_MS)),
  "record a podcast": ({ store, podcast, tag }, at) => {
    const record = { ...newRecord(at.getTime()), title: tag, status: "ok", artwork: HASH } as const;
    return store.podcasts.record(podcast, new Date(START + DAY_MS), record, IMAGES);
  },
  "refresh a podcast": ({ store, user, podcast }, at) => store.podcasts.refresh(user, podcast, at, 0),
  "retry podcasts": ({ store }, at) => store.podcasts.retry("private-address", at),
  "save a device": ({ store, owner }, at) => store.apps.saveDevice(owner, PHONE, { type: "mobile" }, at),
  "change a device": ({ store, owner }, at) => store.apps.changeDevice(owner, "phone", { caption: "My phone" }, at),
  sync: (cycle, at) => {
    const { store, owner, url, feed } = cycle;
    const actions = [1, 2, 3].map((position) => cycle.play(position, at, "tablet"));
    const spellings = [{ normalizedUrl: feed, url: `${url}/`, installation: PHONE.key, listSequence: 1 }];
    const progress = { kind: "actions", actions } as const;
    const record = { kind: "actions", installation: PHONE, progress, spellings, devices: ["tablet"] } as const;
    return store.apps.recordSync(owner, record, at);
  },
  "import a device": ({ store, owner }, at) => {
    const device = { id: "desk", caption: "Desk", type: "desktop", app: "", syncedAt: at } as const;
    return store.apps.importDevices(owner, [device], at);
  },
  "import actions": (cycle, at) => cycle.store.apps.importActions(cycle.owner, [cycle.play(4, at, "desk")], at),
  "request titles": ({ store, user }, at) => store.titles.requestTitles(user, at),
  "keep titles": async ({ store, user, url, tag }) => {
    const episodes = await store.titles.untitled(user, url, "", 10);
    await store.titles.keepTitles(
      user,
      url,
      episodes.map(({ key }) => ({ key, title: tag, publishedAt: START })),
    );
    return episodes.length;
  },
  "dismiss a duplicate": (cycle, at) => cycle.store.duplicates.dismiss(cycle.owner, cycle.id(2), at),
  "create a link": (cycle, createdAt) => {
    const { store, owner, user, tag: secret } = cycle;
    const choice = { kind: "list", title: undefined, language: "en", folder: undefined, except: [] } as const;
    return store.links.add(owner, { ...choice, ownTitles: false, id: cycle.id(3), user, secret, createdAt });
  },
  "remove a link": (cycle, at) => cycle.store.links.remove(cycle.owner, cycle.id(3), at),
  "record a backup": ({ store }, at) => store.alerts.recordBackup(at),
  "follow no moves": ({ store, owner }, at) => store.apps.changeFollowsMoves(owner, false, at),
  "move the feed": (cycle, at) => {
    const { store, owner, url, feed } = cycle;
    const moved = { feedUrl: `${url}-moved`, normalizedUrl: `${feed}-moved` };
    return store.change(owner, [{ kind: "update", id: cycle.id(1), ...moved }], at);
  },
  "look at the old URL": ({ store, user, feed }, at) => {
    const [old, target] = [feedKeyHex(feed), feedKeyHex(`${feed}-moved`)];
    return store.move(asUser(user), { kind: "look", feed: old, target, look: "elsewhere" }, at);
  },
  "tell an app": async ({ store, owner }, at) => {
    const { add, remove } = await store.move(owner, { kind: "tell", client: PHONE.key, since: 1, from: 1 }, at);
    return { add, remove };
  },
  "move it back": (cycle, at) => {
    const { store, owner, url, feed } = cycle;
    return store.change(owner, [{ kind: "update", id: cycle.id(1), feedUrl: url, normalizedUrl: feed }], at);
  },
  "forget history": async (cycle) => {
    await cycle.store.change(cycle.owner, [{ kind: "update", id: cycle.id(1), title: "Long ago" }], LONG_AGO);
    await cycle.store.history.forget(AFTER_LONG_AGO);
  },
  "forget a device": ({ store, owner }, at) => store.apps.forgetDevice(owner, "phone", at),
  promote: administer("promote"),
  disable: administer("disable"),
  enable: administer("enable"),
  demote: administer("demote"),
  "replace a rate limit": async ({ store, tag }) =>
    store.accounts.sharedRateLimits?.replace(tag, undefined, START + DAY_MS),
  "take a lease": async ({ store, tag }, at) => store.podcasts.leases?.take(tag, 1, at, DAY_MS),
  "release a lease": async ({ store, tag }, at) => store.podcasts.leases?.release(tag, 1, at),
  "remove a passkey": (cycle, at) => cycle.store.accounts.removeCredential(cycle.owner, "passkey", cycle.id(7), at),
  sweep: async (cycle, at) => {
    await cycle.add("denied-login", at, { expiresAt: at });
    await cycle.store.accounts.sweep(at);
  },
  delete: ({ store, user, admin }, at) => store.accounts.delete(admin, at, user),
};

export const STEPS = Object.entries(STEPS_BY_NAME).map(([name, step], index) => ({
  name,
  run: async (cycle: Cycle) => cycle.generalize(await step(cycle, new Date(START + index * STEP_MS))),
  /** Several writes, the rest of which the next sweep makes up for. */
  isFinishedBySweep: ["sweep", "delete", "forget history"].includes(name),
}));

export async function sweep(store: Store): Promise<void> {
  await store.accounts.sweep(new Date(START + STEPS.length * STEP_MS));
  await store.podcasts.eraseUnused(new Date(START));
  await store.history.forget(AFTER_LONG_AGO);
}

/** The account of the administrator. */
export async function prepare(store: Store): Promise<void> {
  const root = { name: "root", issuer: "", passwordHash: "", isCreatedByOperator: true, invitationHash: undefined };
  await store.accounts.create(LOCAL_USER, root, new Date(START));
}

/** All that can be read about a cycle, by what it is. */
export async function observe(cycle: Cycle, log: readonly AuditEntry[]): Promise<Readonly<Record<string, string>>> {
  const { store, user, tag, url, feed, podcast } = cycle;
  const { accounts, administration, apps, podcasts } = store;
  const hashes = [...KINDS, "invitation", "denied-login"] as const;
  const [{ id: _, ...metadata } = { id: podcast }] = await podcasts.find([url]);
  const state = await apps.state(user, "actions", PHONE, 0).catch((error: unknown) => {
    if (error instanceof AccessRevoked) return "deleted";
    throw error;
  });
  const [account, list] = [await accounts.get(user), await store.page(user, { offset: 0, size: 10 })];
  // While the list has another URL of the feed, a sweep may erase the podcast of this one.
  const isKept = account === undefined || list.items.some(({ feedUrl }) => feedUrl === url);
  const actions = await apps.actionPage(user, { offset: 0, size: 10, feed: undefined });
  const observed = {
    account,
    name: await accounts.find(tag, ""),
    summary: await administration.get(user),
    credentials: await Promise.all(KINDS.map((kind) => accounts.listCredentials(user, kind))),
    secrets: await Promise.all(hashes.map((kind) => accounts.findCredential(cycle.hash(kind)))),
    list,
    podcast: isKept ? metadata : undefined,
    artwork: await Promise.all(
      (["small", "large"] as const).map((size) => podcasts.artwork(user, podcast, HASH, size)),
    ),
    devices: await apps.devices(user),
    followsMoves: await apps.followsMoves(user),
    moved: (await apps.movedFeeds(user, PHONE.key)).map((each) => each.url),
    // The key of the feed is a hash of its URL, which differs between cycles.
    actions: actions.items.map(({ feedKey, ...action }) => action),
    // A sync whose reply was lost may record one twice; so may two at the same time.
    spellings: [...new Set((await apps.spellings(user, [feed])).map((spelling) => cycle.generalize(spelling)))],
    state,
    history: await store.history.page(user, { offset: 0, size: 20 }),
    links: await store.links.list(user),
    dismissals: await store.duplicates.dismissals(user),
    limit: await accounts.sharedRateLimits?.read(tag),
    log: log
      .filter(({ actor }) => actor === cycle.actor.name)
      .map(({ id, ...entry }) => entry)
      .sort((one, other) => one.at.getTime() - other.at.getTime()),
  };
  return Object.fromEntries(Object.entries(observed).map(([name, value]) => [name, cycle.generalize(value)]));
}

/** Of all cycles. */
export async function readLog(store: Store): Promise<AuditEntry[]> {
  const log: AuditEntry[] = [];
  for (let entries: readonly AuditEntry[] = [], offset = 0; offset === 0 || entries.length > 0; offset += 1_000) {
    ({ entries } = await store.administration.auditLog({ offset, size: 1_000 }));
    log.push(...entries);
  }
  return log;
}
