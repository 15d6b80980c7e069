import { mkdir, open, readFile, rename } from "node:fs/promises";
import { createLock } from "./locks.ts";
import type { ReplicaStorage } from "./replica.ts";

/** Keeps a replica as files in a folder, which only one process may use at a time. Creates the folder. */
export function fileStorage(folder: string): ReplicaStorage {
  const pathOf = (key: string) => `${folder}/${key}.json`;

  async function read(key: string): Promise<string | undefined> {
    try {
      return await readFile(pathOf(key), "utf8");
    } catch (error) {
      if ((error as { readonly code?: string }).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async function update(key: string, change: (saved: string | undefined) => string): Promise<string> {
    const text = change(await read(key));
    // Feed URLs may contain passwords.
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = pathOf(key);
    await flush(`${path}.new`, "w", text);
    await rename(`${path}.new`, path);
    // Windows cannot fsync a folder.
    await flush(folder, "r").catch(() => {});
    return text;
  }

  const lock = createLock();
  return { read, update: (key, change) => lock(key, () => update(key, change)), lock };
}

/** Writes the text, if any, and waits until the file or folder is on disk. */
async function flush(path: string, flags: string, text?: string): Promise<void> {
  const file = await open(path, flags, 0o600);
  try {
    if (text !== undefined) await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
