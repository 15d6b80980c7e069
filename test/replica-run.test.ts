import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ClientOptions,
  createClient,
  EarmarkError,
  guid,
  openReplica,
  type ReplicaOptions,
  type ReplicaStorage,
  type RunOptions,
  type Subscription,
} from "../client/src/index.ts";
import { createLock } from "../client/src/locks.ts";
import { failureOf, newPerson, serverUrl } from "./support/client.ts";
import { MemoryStorage } from "./support/replica-runs.ts";

type Fetch = NonNullable<ClientOptions["fetch"]>;

const [A, B, C] = ["https://a.example/feed", "https://b.example/feed", "https://c.example/feed"] as const;
const offline: Fetch = () => Promise.reject(new TypeError("offline"));
const feedsOf = (list: readonly Subscription[]) => list.map(({ feedUrl }) => feedUrl).join();

/** A device that runs until the test ends, and waits for its list to change. */
async function startDevice(token: string, options: Partial<ReplicaOptions & RunOptions> = {}) {
  const network: { fetch: Fetch; readonly paths: string[] } = { fetch, paths: [] };
  const stop = new AbortController();
  let onList = (_: readonly Subscription[]) => {};
  const replica = await openReplica({
    storage: new MemoryStorage(),
    ...options,
    client: createClient({
      url: serverUrl,
      token,
      retries: 0,
      fetch(url, init) {
        network.paths.push(new URL(url).pathname);
        return network.fetch(url, init);
      },
    }),
    onChange: (list) => onList(list),
  });
  const running = replica.run({ ...options, signal: stop.signal });
  running.catch(() => {});
  const shows = (...feeds: readonly string[]) =>
    new Promise<void>((resolve) => {
      onList = (list) => {
        if (feedsOf(list) === feeds.join()) resolve();
      };
      onList(replica.list());
    });
  return { replica, network, running, shows, stop };
}

test("run: edits on two devices → both lists change at once", async () => {
  const { token } = await newPerson();
  const [one, other] = [await startDevice(token), await startDevice(token)];
  await one.replica.add([A]);
  await other.shows(A);
  await other.replica.add([B]);
  await one.shows(A, B);
  await one.replica.remove([guid(A)]);
  await other.shows(B);
  for (const { stop, running } of [one, other]) {
    const reason = new Error("the test ends");
    stop.abort(reason);
    await assert.rejects(running, reason);
  }
});

test("run: offline for a while → reports it, and sends the edits later", async () => {
  const { token } = await newPerson();
  const errors: Error[] = [];
  const device = await startDevice(token, { onError: (error) => errors.push(error), pollMs: 500 });
  const { promise, resolve } = Promise.withResolvers<void>();
  await device.shows();
  device.network.fetch = (url, init) => {
    if (errors.length > 1) resolve();
    return offline(url, init);
  };
  await device.replica.add([A]);
  await promise;
  assert.equal(device.replica.pending, 1);
  device.network.fetch = fetch;
  const other = await startDevice(token);
  await other.shows(A);
  for (const { stop } of [device, other]) stop.abort();
});

test("run: invalid credentials or a failed storage → rejects", async () => {
  const device = await startDevice("emk_wrong");
  assert.equal((await failureOf(device.running, EarmarkError)).status, 401);

  const { token } = await newPerson();
  const storage = new MemoryStorage();
  storage.update = () => Promise.reject(new RangeError("disk full"));
  const full = await startDevice(token, { storage });
  await failureOf(full.running, RangeError);
});

/** The storage of one tab; all tabs of a browser share the texts, the lock and the news. */
function openTabs(): () => ReplicaStorage {
  const shared = new MemoryStorage();
  const lock = createLock();
  const listeners = new Set<(key: string) => void>();
  return () => {
    let own = (_: string) => {};
    return {
      read: (key) => shared.read(key),
      async update(key, change) {
        const text = await shared.update(key, change);
        for (const listener of listeners) if (listener !== own) listener(key);
        return text;
      },
      lock,
      watch(listener) {
        own = listener;
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
  };
}

test("run: three tabs with one storage → one of them syncs, all show the same", async () => {
  const { token } = await newPerson();
  const openTab = openTabs();
  const tabs = [];
  for (let count = 0; count < 3; count += 1) tabs.push(await startDevice(token, { storage: openTab() }));
  const [first, second, third] = tabs;
  assert.ok(first && second && third);
  await second.replica.add([A]);
  for (const { shows } of tabs) await shows(A);
  const server = createClient({ url: serverUrl, token });
  while ((await server.page()).total === 0);
  await server.subscribe([B]);
  for (const { shows } of tabs) await shows(A, B);
  await third.replica.add([C]);
  for (const { shows } of tabs) await shows(A, B, C);
  // An edit whose confirmation is lost would be sent again.
  while (third.replica.pending > 0) await server.page();
  assert.deepEqual([second.network.paths, third.network.paths], [[], []]);

  // The next tab takes over.
  first.replica.close();
  first.stop.abort();
  await server.remove([guid(B), guid(C)]);
  for (const { shows } of [second, third]) await shows(A);
  assert.deepEqual([second.network.paths.length > 0, third.network.paths], [true, []]);
  for (const { stop } of tabs) stop.abort();
});
