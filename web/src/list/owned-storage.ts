import type { ReplicaStorage } from "../../../client/src/index.ts";

/** A storage that belongs to one account at a time. */
export interface OwnedStorage extends ReplicaStorage {
  /** Calls the listener when another tab has updated the key. */
  watchKey(key: string, listener: () => void): void;
  /** Deletes everything. From then on, this storage fails in all tabs. */
  clear(): Promise<void>;
}

/** The only keys that the replica uses. */
const REPLICA_KEYS = ["base", "queue"];
const KEYS = [...REPLICA_KEYS, "podcasts", "refusals", "import"];

/**
 * Opens a storage for one account. What another account has saved is deleted, and from then on its tabs can no longer
 * read or write: every text starts with its owner, which is checked in the transaction that changes it.
 */
export async function claimStorage(storage: ReplicaStorage, owner: string): Promise<OwnedStorage> {
  const prefix = `${owner}\n`;
  const { lock, watch } = storage;
  for (const key of KEYS) {
    if ((await storage.read(key))?.startsWith(prefix)) continue;
    await storage.update(key, (saved) => (saved?.startsWith(prefix) ? saved : prefix));
  }
  const assertOwned = (isOwned: boolean) => {
    if (!isOwned) throw new Error("The storage belongs to another account.");
  };
  return {
    ...(lock && { lock }),
    ...(watch && { watch: (listener) => watch((key) => REPLICA_KEYS.includes(key) && listener(key)) }),
    watchKey: (key, listener) => void watch?.((updated) => updated === key && listener()),
    async read(key) {
      const saved = (await storage.read(key)) ?? "";
      assertOwned(saved.startsWith(prefix));
      return saved.slice(prefix.length);
    },
    async update(key, change) {
      let isOwned = false;
      const saved = await storage.update(key, (saved = "") => {
        isOwned = saved.startsWith(prefix);
        return isOwned ? prefix + change(saved.slice(prefix.length)) : saved;
      });
      assertOwned(isOwned);
      return saved.slice(prefix.length);
    },
    async clear() {
      for (const key of KEYS) await storage.update(key, () => "");
    },
  };
}

/** For browsers that do not store anything: edits last until the page is closed. */
export function createMemoryStorage(): OwnedStorage {
  const texts = new Map<string, string>();
  return {
    read: async (key) => texts.get(key),
    async update(key, change) {
      const text = change(texts.get(key));
      texts.set(key, text);
      return text;
    },
    watchKey: () => {},
    clear: async () => texts.clear(),
  };
}
