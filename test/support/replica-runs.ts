import assert from "node:assert/strict";
import {
  type Client,
  type ClientOptions,
  createClient,
  type Feed,
  NetworkError,
  openReplica,
  type Replica,
  type ReplicaStorage,
  type Subscription,
} from "../../client/src/index.ts";

type Fetch = NonNullable<ClientOptions["fetch"]>;
type Random = () => number;

/** A list on a server, and how to reach it. */
export interface ServerList {
  readonly url: string;
  readonly token?: string | undefined;
  readonly fetch: Fetch;
}

/** Thrown where the process of a device ends. */
class Killed extends Error {}

/** What survives when the process of a device is killed. */
export class MemoryStorage implements ReplicaStorage {
  readonly texts = new Map<string, string>();

  async read(key: string): Promise<string | undefined> {
    return this.texts.get(key);
  }

  async update(key: string, change: (saved: string | undefined) => string): Promise<string> {
    const text = change(this.texts.get(key));
    this.texts.set(key, text);
    return text;
  }
}

/** A storage whose process may be killed before or after each write. */
export class MortalStorage extends MemoryStorage {
  /** Whether the process dies now. */
  dies: () => boolean = () => false;

  override async update(key: string, change: (saved: string | undefined) => string): Promise<string> {
    if (this.dies()) throw new Killed();
    const text = await super.update(key, change);
    if (this.dies()) throw new Killed();
    return text;
  }
}

/** The network between one device and the server. */
class Network {
  isOnline = true;
  /** Between 0 and 1: how many requests go wrong. */
  faults = 0;
  /** Requests that failed for the client but have not reached the server yet. */
  readonly late: (() => Promise<unknown>)[] = [];
  readonly #fetch: Fetch;
  readonly #random: Random;
  readonly #mayBeLate: boolean;

  constructor(fetch: Fetch, random: Random, mayBeLate: boolean) {
    this.#fetch = fetch;
    this.#random = random;
    this.#mayBeLate = mayBeLate;
  }

  readonly fetch: Fetch = async (url, init) => {
    if (!this.isOnline) throw new TypeError("offline");
    if (this.#random() >= this.faults) return this.#fetch(url, init);
    const { signal, ...request } = init;
    switch (Math.floor(this.#random() * 5)) {
      case 0:
        throw new TypeError("lost request");
      case 1:
        await (await this.#fetch(url, request)).text();
        throw new TypeError("lost response");
      case 2:
        if (this.#mayBeLate) this.late.push(async () => (await this.#fetch(url, request)).text());
        throw new TypeError("timeout");
      case 3:
        await (await this.#fetch(url, request)).text();
        throw new Killed();
      default:
        if (url.includes("page[after]")) return Response.json({ errors: [STATE_EXPIRED] }, { status: 410 });
        throw new Killed();
    }
  };
}

const STATE_EXPIRED = { status: "410", code: "state-expired", title: "Gone" };

/** An app on one device: its process may be killed, its storage survives. */
class Device {
  readonly storage: MortalStorage;
  readonly network: Network;
  readonly #client: Client;
  #replica: Replica | undefined;

  constructor(list: ServerList, random: Random, mayBeLate: boolean, storage = new MortalStorage()) {
    this.storage = storage;
    this.network = new Network(list.fetch, random, mayBeLate);
    const { url, token } = list;
    this.#client = createClient({ url, token, retries: 0, fetch: this.network.fetch });
  }

  /** Resolves to undefined if the process was killed or the server is unreachable. */
  async try<Value>(work: (replica: Replica) => Promise<Value>): Promise<Value | undefined> {
    this.#replica ??= await openReplica({ client: this.#client, storage: this.storage });
    try {
      return await work(this.#replica);
    } catch (error) {
      const isKilled = error instanceof Killed || (error instanceof NetworkError && error.cause instanceof Killed);
      if (!isKilled && !(error instanceof NetworkError)) throw error;
      if (isKilled) this.kill();
      return undefined;
    }
  }

  kill(): void {
    this.#replica = undefined;
  }
}

/** Reproducible random numbers between 0 and 1 (mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What must be true at the end, whatever happened on the way. */
interface Expected {
  /** Feeds that were added and never touched again. */
  readonly kept: Set<string>;
  /** Subscriptions that were removed, and never added again. */
  readonly removed: Set<string>;
  /** Titles that only one device has set. */
  readonly titles: Map<string, string>;
}

/**
 * Edits a list on two to four devices whose networks fail and whose processes are killed. At the end all are equal, equal
 * to the server, and no confirmed edit is lost. `openStorage` replaces the storage of the devices.
 */
export async function runDevices(
  list: ServerList,
  seed: number,
  openStorage = () => new MortalStorage(),
): Promise<void> {
  const random = randomFrom(seed);
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];
  const server = createClient({ ...list, retries: 0 });
  await server.remove((await allOf(server)).map(({ id }) => id));
  const seeds = Array.from({ length: 6 }, (_, index) => ({ url: `https://seed.example/${index}`, title: "as added" }));
  await server.subscribe(seeds);

  // A late request may undo a newer title, so titles are checked only in runs without.
  const mayBeLate = random() < 0.5;
  const devices = Array.from(
    { length: 2 + Math.floor(random() * 3) },
    () => new Device(list, random, mayBeLate, openStorage()),
  );
  for (const device of devices) {
    await device.try((replica) => replica.sync());
    device.network.faults = 0.3;
    device.storage.dies = () => random() < 0.05;
  }

  const expected: Expected = { kept: new Set(), removed: new Set(), titles: new Map() };
  for (let step = 0; step < 30; step += 1) {
    const device = pick(devices);
    if (device) await takeStep(device, devices.indexOf(device), step, expected, random, pick);
    if (random() < 0.05) await mergeTwo(server, pick);
  }

  for (const { network, storage } of devices) {
    network.isOnline = true;
    network.faults = 0;
    storage.dies = () => false;
    for (const deliver of network.late) await deliver();
  }
  for (const device of [...devices, ...devices]) await device.try((replica) => replica.sync());
  const final = await allOf(server);
  for (const device of devices) {
    await device.try(async (replica) => {
      assert.equal(replica.pending, 0);
      assert.deepEqual(sorted(replica.list()), sorted(final));
    });
  }
  const feeds = new Set(final.map(({ feedUrl }) => feedUrl));
  const ids = new Set(final.map(({ id }) => id));
  for (const feed of expected.kept) assert.ok(feeds.has(feed), `lost: ${feed}`);
  for (const id of expected.removed) assert.ok(!ids.has(id), `came back: ${id}`);
  if (mayBeLate) return;
  for (const { id, title } of final) if (expected.titles.has(id)) assert.equal(title, expected.titles.get(id));
}

/** Another client merges two subscriptions. */
async function mergeTwo(server: Client, pick: <Item>(items: readonly Item[]) => Item | undefined): Promise<void> {
  const items = (await allOf(server)).filter(({ feedUrl }) => feedUrl.startsWith("https://shared.example/"));
  const [one, other] = [pick(items), pick(items)];
  if (one && other) await server.apply([{ op: "remove", id: one.id, mergeInto: other.id }]);
}

/** One random event on one device. */
async function takeStep(
  device: Device,
  number: number,
  step: number,
  { kept, removed, titles }: Expected,
  random: Random,
  pick: <Item>(items: readonly Item[]) => Item | undefined,
): Promise<void> {
  const { network } = device;
  const items = (await device.try(async (replica) => replica.list())) ?? [];
  // Each device renames its own seeds; all devices rename and remove everything else.
  const isSeed = ({ feedUrl }: Subscription) => feedUrl.startsWith("https://seed.example/");
  const item = pick(items.filter(({ feedUrl }) => !feedUrl.startsWith("https://kept.example/")));
  const event = random();
  if (event < 0.15) {
    const url = `https://kept.example/${number}/${step}`;
    if (await device.try((replica) => replica.add([url]))) kept.add(url);
  } else if (event < 0.3) {
    const url = `https://shared.example/${Math.floor(random() * 5)}`;
    const id = `00000000-0000-4000-8000-${String(Math.floor(random() * 1e6)).padStart(12, "0")}`;
    const feed: Feed = pick([url, { url, id, title: `by ${number}`, folders: ["News/Tech"] }]) ?? url;
    await device.try((replica) => replica.add([feed]));
  } else if (event < 0.4 && item) {
    const [wasThere] = (await device.try((replica) => replica.remove([item.id]))) ?? [];
    if (wasThere && isSeed(item)) removed.add(item.id);
  } else if (event < 0.6 && item) {
    const title = pick([`title ${step}`, null]) ?? null;
    const folders = pick([[`Folder ${step}`], null]) ?? null;
    const isOwn = isSeed(item) && Number(item.feedUrl.at(-1)) % 4 === number;
    if (isSeed(item) && !isOwn) return;
    const update = isOwn ? { id: item.id, title: `title ${step}` } : { id: item.id, title, folders };
    const updated = await device.try((replica) => replica.update([update]));
    if (isOwn && updated?.[0]) titles.set(item.id, `title ${step}`);
    else titles.delete(item.id);
  } else if (event < 0.65 && item && !isSeed(item)) {
    const feedUrl = `https://shared.example/${Math.floor(random() * 5)}`;
    const update = pick([{ feedUrl }, { feedUrl, formerFeedUrls: null }, { formerFeedUrls: null }]);
    await device.try((replica) => replica.update([{ id: item.id, ...update }]));
  } else if (event < 0.9) await device.try((replica) => replica.sync());
  else if (event < 0.95) network.isOnline = !network.isOnline;
  else if (event < 0.97) device.kill();
  else await network.late.shift()?.();
}

async function allOf(client: Client): Promise<Subscription[]> {
  const items: Subscription[] = [];
  for await (const item of client.subscriptions()) items.push(item);
  return items;
}

const sorted = (items: readonly Subscription[]) => [...items].sort((one, other) => (one.id < other.id ? -1 : 1));
