import type { ReplicaStorage } from "./replica.ts";

const STORE = "texts";
const OWNER = "owner";

/** A storage for one account at a time. */
export interface OwnedStorage extends ReplicaStorage {
  /** Deletes everything. From then on, this storage and that of every other tab fail. */
  clear(): Promise<void>;
}

/**
 * Keeps a replica in IndexedDB, shared by all tabs of the origin. Give each account its own name, or its own `owner`:
 * opening the storage for another owner deletes what the previous one has saved, and their tabs can no longer read or
 * write it. Pages loaded over http from another host than localhost have no locks: there, each tab syncs by itself.
 */
export function indexedDbStorage(name = "earmark", owner = ""): OwnedStorage {
  const { locks } = navigator as { readonly locks?: LockManager };
  const channel = openChannel(name);
  let opened: Promise<IDBDatabase> | undefined;

  /** Runs `work` in a transaction if the storage still belongs to the owner. */
  async function run(mode: IDBTransactionMode, work: (texts: IDBObjectStore) => void): Promise<void> {
    opened ??= openDatabase(name, owner);
    const transaction = (await opened).transaction(STORE, mode, { durability: "strict" });
    return new Promise((resolve, reject) => {
      let isOther = false;
      transaction.oncomplete = () => resolve();
      transaction.onabort = () =>
        reject(isOther ? new Error("the storage belongs to someone else") : transaction.error);
      const texts = transaction.objectStore(STORE);
      const reading = texts.get(OWNER);
      reading.onsuccess = () => {
        isOther = reading.result !== owner;
        if (isOther) transaction.abort();
        else work(texts);
      };
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
      channel?.postMessage(key);
      return text;
    },

    clear: () => run("readwrite", (texts) => texts.clear()),

    // Without a channel, the other tabs would learn nothing from the one that has the lock.
    ...(locks &&
      channel && { lock: (task, work, signal) => locks.request(`${name} ${task}`, signal ? { signal } : {}, work) }),

    watch(listener) {
      const onMessage = ({ data }: MessageEvent<string>) => listener(data);
      channel?.addEventListener("message", onMessage);
      return () => channel?.removeEventListener("message", onMessage);
    },
  };
}

function openChannel(name: string): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(name);
  } catch {
    // Blocked by some privacy settings.
    return undefined;
  }
}

function openDatabase(name: string, owner: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const database = opening.result;
      const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
      transaction.oncomplete = () => resolve(database);
      transaction.onabort = () => reject(transaction.error);
      const texts = transaction.objectStore(STORE);
      const reading = texts.get(OWNER);
      reading.onsuccess = () => {
        if (reading.result === owner) return;
        texts.clear();
        texts.put(owner, OWNER);
      };
    };
  });
}
