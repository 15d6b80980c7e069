import type { ReplicaStorage } from "./replica.ts";

const STORE = "texts";

/**
 * Keeps a replica in IndexedDB, shared by all tabs of the origin. Use a different `name` for each account. Pages loaded
 * over http from a host other than localhost have no locks: there, each tab syncs on its own.
 */
export function indexedDbStorage(name = "earmark"): ReplicaStorage {
  const { locks } = navigator as { readonly locks?: LockManager };
  const channel = new BroadcastChannel(name);
  let opened: Promise<IDBDatabase> | undefined;

  async function run(mode: IDBTransactionMode, work: (texts: IDBObjectStore) => void): Promise<void> {
    opened ??= openDatabase(name);
    const transaction = (await opened).transaction(STORE, mode, { durability: "strict" });
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      work(transaction.objectStore(STORE));
    });
  }

  return {
    async read(key) {
      let text: string | undefined;
      await run("readonly", (texts) => {
        const reading = texts.get(key);
        reading.onsuccess = () => {
          text = reading.result;
        };
      });
      return text;
    },

    async update(key, change) {
      let text = "";
      await run("readwrite", (texts) => {
        const reading = texts.get(key);
        reading.onsuccess = () => {
          text = change(reading.result);
          texts.put(text, key);
        };
      });
      channel.postMessage(key);
      return text;
    },

    ...(locks && {
      lock: (key, task, signal) => locks.request(`${name} ${key}`, signal ? { signal } : {}, task),
    }),

    watch(listener) {
      const onMessage = ({ data }: MessageEvent<string>) => listener(data);
      channel.addEventListener("message", onMessage);
      return () => channel.removeEventListener("message", onMessage);
    },
  };
}

function openDatabase(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}
