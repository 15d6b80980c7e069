import assert from "node:assert/strict";
import { test } from "node:test";
import { AppClient, CLIENT_KINDS, feedOf, type SyncServer, spell } from "../../../test/support/app-clients.ts";
import { SEED } from "../../../test/support/properties.ts";
import { createRandom } from "../../../test/support/random.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { Installation, SyncRecord } from "../../apps/app-store.ts";
import { AppSync } from "../../apps/sync.ts";
import { positionAt } from "../../lists/changes.ts";
import { toAddition } from "../../lists/imports.ts";
import { subscriptionBatches } from "../../lists/list-store.ts";
import type { Addition } from "../../lists/subscription.ts";
import type { Store } from "../shared/contract.ts";

/** From here on, the oracle soon finds every fault. */
const FAULT_SEED = Number(process.env["SEED"] ?? 221);
const START = Date.parse("2026-01-02T03:04:05.678Z");
const [FEEDS, EPISODES, STEPS] = [5, 3, 40];
/** Interleavings that run at once and share transactions; each has a user of its own. */
const CONCURRENT_RUNS = 10;
/** A fault must be found within this many interleavings. About one in three hundred finds the most elusive one. */
const MAX_MISSES = 2_000;

/** Creates the server to test: the correct one, or one with a fault. `now` is the time of the interleaving. */
type CreateServer = (store: Store, user: UserId, now: () => number) => SyncServer;

const createCorrectServer: CreateServer = (store) => new AppSync(store);

/** The expected list and positions, computed from the requests that reached the server. */
class Oracle {
  readonly feeds = new Set<number>();
  /** Feeds of which the last removal may have looked like an echo of an earlier one, that the server had told the app of. */
  readonly doubtful = new Set<number>();
  readonly #removedBefore = new Set<number>();
  readonly #plays = new Map<number, { position: number; actedAt: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  added(feed: number): void {
    this.feeds.add(feed);
    this.doubtful.delete(feed);
  }

  removed(feed: number, isOffered: boolean): void {
    if (!isOffered) this.doubtful.delete(feed);
    else if (this.feeds.has(feed) && this.#removedBefore.has(feed)) this.doubtful.add(feed);
    this.feeds.delete(feed);
    this.#removedBefore.add(feed);
  }

  played(episode: number, position: number, actedAt: number): void {
    const stored = this.#plays.get(episode);
    const isAhead = actedAt > this.#now() + 300_000;
    // An upload that is only repeated changes nothing.
    if (isAhead && stored?.position === position) return;
    const time = isAhead ? Math.max(Math.floor(this.#now() / 1_000) * 1_000, stored?.actedAt ?? 0) : actedAt;
    if (stored === undefined || time >= stored.actedAt) this.#plays.set(episode, { position, actedAt: time });
  }

  get positions(): Map<number, number> {
    return new Map([...this.#plays].map(([episode, { position }]) => [episode, position]));
  }
}

/** Runs one interleaving. Returns the differences that remain at the end. */
async function interleave(store: Store, user: UserId, seed: number, createServer: CreateServer): Promise<string[]> {
  const random = createRandom(seed);
  const pick = (count: number) => Math.floor(random() * count);
  let now = START;
  const clock = () => now;
  const oracle = new Oracle(clock);
  const server = createServer(store, user, clock);
  const clients = Array.from({ length: 2 + pick(2) }, (_, index) => {
    const kind = CLIENT_KINDS[pick(CLIENT_KINDS.length)] ?? assert.fail();
    return new AppClient(kind, `client-${index}`, user, server, { requests: oracle, now: clock });
  });
  for (const client of clients) {
    const feed = pick(FEEDS);
    client.subscribe(feed, spell(feed, pick(3)));
  }
  // One may connect later, when others have already removed what it has.
  const late = pick(2) === 0 ? clients[0] : undefined;
  const running = new Map<AppClient, AsyncGenerator<void>>();
  const isLost = () => random() < 0.03;
  const step = async (client: AppClient, lost: () => boolean) => {
    const sync = running.get(client) ?? client.sync(lost);
    running.set(client, sync);
    if ((await sync.next()).done === true) running.delete(client);
  };
  for (let index = 0; index < STEPS; index += 1) {
    const client = clients[pick(clients.length)] ?? assert.fail();
    const chance = random();
    now += chance < 0.02 ? pick(7_200_000) : random() < 0.3 ? pick(5_000) : pick(400);
    const feed = pick(FEEDS);
    if (chance < 0.12) client.subscribe(feed, spell(feed, pick(3)));
    else if (chance < 0.22) client.unsubscribe(feed);
    else if (chance < 0.34) client.play(pick(EPISODES), 1 + index);
    else if (chance < 0.42) await changeOnWebPage(store, user, oracle, pick(2) === 0, feed, now);
    else if (client !== late || index > STEPS / 2) await step(client, isLost);
  }
  for (let round = 0; round < 3; round += 1) {
    for (const client of clients) {
      do {
        now += 1_500;
        await step(client, () => false);
      } while (running.has(client));
    }
  }
  return compare(store, user, clients, oracle);
}

async function changeOnWebPage(
  store: Store,
  user: UserId,
  oracle: Oracle,
  isAdding: boolean,
  feed: number,
  now: number,
): Promise<void> {
  const addition = toAddition(spell(feed, now)) as Addition;
  if (isAdding) oracle.added(feed);
  else oracle.removed(feed, false);
  const change = isAdding ? addition : ({ kind: "remove-feed", normalizedUrl: addition.normalizedUrl } as const);
  await store.change(asUser(user), [change], new Date(now));
}

async function compare(store: Store, user: UserId, clients: readonly AppClient[], oracle: Oracle): Promise<string[]> {
  const listed: number[] = [];
  for await (const items of subscriptionBatches(store, user))
    listed.push(...items.map(({ feedUrl }) => feedOf(feedUrl)));
  const show = (values: Iterable<unknown>) => JSON.stringify([...values].sort());
  const kept = listed.filter((feed) => oracle.doubtful.has(feed));
  const [feeds, positions] = [show([...oracle.feeds, ...kept]), show(oracle.positions)];
  const differences = show(listed) === feeds ? [] : [`the server has ${show(listed)} instead of ${feeds}`];
  for (const { kind, ...client } of clients) {
    if (show(client.feeds.keys()) !== feeds)
      differences.push(`${kind.name} has ${show(client.feeds.keys())} instead of ${feeds}`);
    if (show(client.positions) !== positions)
      differences.push(`${kind.name} has positions ${show(client.positions)} instead of ${positions}`);
  }
  return differences;
}

/** The first differences of `runs` interleavings. */
async function findDifferences(
  store: Store,
  firstSeed: number,
  runs: number,
  createServer: CreateServer,
): Promise<string | undefined> {
  for (let start = 0; start < runs; start += CONCURRENT_RUNS) {
    const length = Math.min(CONCURRENT_RUNS, runs - start);
    const seeds = Array.from({ length }, (_, index) => firstSeed + start + index);
    const results = await Promise.all(
      seeds.map(async (seed) => {
        users.next += 1;
        return { seed, differences: await interleave(store, users.next, seed, createServer) };
      }),
    );
    const found = results.find(({ differences }) => differences.length > 0);
    if (found !== undefined) return `SEED=${found.seed}: ${found.differences.join("; ")}`;
  }
  return undefined;
}

const users = { next: 5_000_000 };

/** Apps of different kinds end up with the same list and the same positions, whatever the order of their requests. */
export function describeConvergence(engine: string, store: Store, runs: number): void {
  test(`apps on ${engine}: ${runs} interleavings of clients (SEED=${SEED}) → same list and positions everywhere`, async () => {
    assert.equal(await findDifferences(store, SEED, runs, createCorrectServer), undefined);
  });
}

export function describeFaults(store: Store): void {
  for (const [name, createServer] of Object.entries(FAULTS)) {
    test(`apps: ${name} (SEED=${FAULT_SEED}) → the oracle finds it`, async () => {
      assert.notEqual(await findDifferences(store, FAULT_SEED, MAX_MISSES, createServer), undefined);
    });
  }
}

const INSTALLATION: Installation = { key: "fault", device: undefined };

const FAULTS: Readonly<Record<string, CreateServer>> = {
  "a POST that returns the current time": (store, user) => {
    const sync = new AppSync(store);
    const recordNow = async (kind: "feeds" | "actions", installation: Installation, at: Date) => {
      const { sequence } = await store.apps.state(user, kind, installation, 0);
      const record: SyncRecord = {
        kind,
        installation,
        progress: { kind: "poll", since: 0, from: 0, covered: sequence },
        spellings: [],
        devices: [],
      };
      return { timestamp: await store.apps.recordSync(asUser(user), record, at), rewritten: [] };
    };
    return {
      feedsSince: sync.feedsSince.bind(sync),
      actionsSince: sync.actionsSince.bind(sync),
      async changeFeeds(caller, installation, changes, at) {
        await sync.changeFeeds(caller, installation, changes, at);
        return recordNow("feeds", installation, at);
      },
      async addActions(caller, installation, actions, at) {
        await sync.addActions(caller, installation, actions, at);
        return recordNow("actions", installation, at);
      },
    };
  },

  "changes compared by seconds with a strict >": (store, user, now) => {
    const sequences = { feeds: new Map<number, number>(), actions: new Map<number, number>() };
    const seconds = () => Math.floor(now() / 1_000);
    const record = async () => {
      for (const kind of ["feeds", "actions"] as const)
        sequences[kind].set(seconds(), (await store.apps.state(user, kind, INSTALLATION, 0)).sequence);
    };
    const apps: Store["apps"] = {
      ...bindApps(store),
      async state(_user, kind, installation, since) {
        const state = await store.apps.state(user, kind, installation, 0);
        await record();
        // What was written in the same second as the returned timestamp counts as sent.
        const marks = [...sequences[kind]].map(([stamp, sequence]) => ({ stamp, sequence }));
        return { ...state, seen: undefined, marks: since === 0 ? [] : marks, deviceSyncedAt: new Date(now()) };
      },
      async recordSync(caller, polledOrUploaded, at) {
        await store.apps.recordSync(caller, polledOrUploaded, at);
        await record();
        return seconds();
      },
    };
    const faulty: Pick<Store, "apps" | "change" | "find" | "itemsAfter" | "move" | "readChanges"> = {
      apps,
      async change(...given) {
        const done = await store.change(...given);
        await record();
        return done;
      },
      find: store.find.bind(store),
      itemsAfter: store.itemsAfter.bind(store),
      move: store.move.bind(store),
      readChanges: store.readChanges.bind(store),
    };
    return new AppSync(faulty as Store);
  },

  "removals at since=0": (store) => {
    const sync = new AppSync(store);
    return {
      changeFeeds: sync.changeFeeds.bind(sync),
      actionsSince: sync.actionsSince.bind(sync),
      addActions: sync.addActions.bind(sync),
      async feedsSince(caller, installation, since, at) {
        const changes = await sync.feedsSince(caller, installation, since, at);
        if (since > 0) return changes;
        const { removals } = await store.readChanges(caller.user, positionAt(0), 1_000);
        return { ...changes, remove: [removals.map(({ feedUrl }) => feedUrl)] };
      },
    };
  },
};

function bindApps({ apps }: Store): Store["apps"] {
  return {
    state: apps.state.bind(apps),
    recordSync: apps.recordSync.bind(apps),
    watchActions: apps.watchActions.bind(apps),
    spellings: apps.spellings.bind(apps),
    resends: apps.resends.bind(apps),
    movedFeeds: apps.movedFeeds.bind(apps),
    followsMoves: apps.followsMoves.bind(apps),
    changeFollowsMoves: apps.changeFollowsMoves.bind(apps),
    actions: apps.actions.bind(apps),
    importDevices: apps.importDevices.bind(apps),
    findActions: apps.findActions.bind(apps),
    importActions: apps.importActions.bind(apps),
    devices: apps.devices.bind(apps),
    saveDevice: apps.saveDevice.bind(apps),
    changeDevice: apps.changeDevice.bind(apps),
    actionPage: apps.actionPage.bind(apps),
    forgetDevice: apps.forgetDevice.bind(apps),
  };
}
