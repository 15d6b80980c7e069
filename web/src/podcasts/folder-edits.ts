import type { Subscription } from "../../../client/src/index.ts";
import { isIn } from "../list/list-options.ts";
import { filter } from "../list/place.ts";
import { edit, subscriptionList } from "../list/subscription-list.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { format, getWords } from "../words/index.ts";

// What the server accepts.
const MAX_LEVELS = 8;
const MAX_PATH = 300;

/** A folder as someone has typed it, empty for none; or what is wrong with it. */
export function readFolder(text: string): { readonly path: string } | { readonly problem: string } {
  const names = text.split("/").map((name) => name.trim());
  const path = names.filter(Boolean).join("/");
  const problem = problemOf(path);
  return problem === undefined ? { path } : { problem };
}

function problemOf(path: string): string | undefined {
  const words = getWords().podcasts;
  if (path.split("/").length > MAX_LEVELS) return format(words.tooDeep, { n: MAX_LEVELS });
  return Array.from(path).length > MAX_PATH ? format(words.tooLong, { n: MAX_PATH }) : undefined;
}

interface FoldersUpdate {
  readonly id: string;
  readonly folders: readonly string[] | null;
}

/** Says what was done, with a way to undo it. */
async function saveFolders(updates: readonly FoldersUpdate[], text: string): Promise<void> {
  const ids = new Set(updates.map(({ id }) => id));
  const before = subscriptionList.value.items
    .filter(({ id }) => ids.has(id))
    .map(({ id, folders = null }) => ({ id, folders }));
  const save = async (all: readonly FoldersUpdate[], notice: () => void) =>
    edit(all).then(notice, () => showNotice(getWords().podcasts.notSaved));
  const undo = () => save(before, () => showNotice(getWords().podcasts.foldersUndone));
  await save(updates, () =>
    showNotice(text, { label: getWords().list.undo, onClick: () => void undo(), onDismiss: () => {} }),
  );
}

const write = (folders: readonly string[]) => (folders.length === 0 ? null : [...new Set(folders)]);

/** Moves podcasts to a folder, out of the one that is shown or, if all are shown, out of all. */
export async function moveToFolder(items: readonly Subscription[], path: string): Promise<void> {
  const words = getWords().podcasts;
  const shown = filter.value;
  const isLeft = typeof shown === "object" && path !== "" ? isIn(shown.folder) : () => true;
  const updates = items.map(({ id, folders = [] }) => {
    const kept = folders.filter((folder) => !isLeft(folder));
    return { id, folders: write(path === "" ? kept : [...kept, path]) };
  });
  const folder = path === "" ? words.noFolder : isolate(path);
  await saveFolders(updates, format(words.movedTo, { n: items.length, folder }));
}

const itemsIn = (path: string) => subscriptionList.value.items.filter(({ folders = [] }) => folders.some(isIn(path)));

/** Gives a folder another path, and those within it too. Resolves to what is wrong with the new one. */
export async function renameFolder(from: string, text: string): Promise<string | undefined> {
  const read = readFolder(text);
  if ("problem" in read) return read.problem;
  const to = read.path;
  if (to === "") return getWords().podcasts.noName;
  if (to === from) return undefined;
  const rename = (folder: string) => (isIn(from)(folder) ? to + folder.slice(from.length) : folder);
  const updates = itemsIn(from).map(({ id, folders = [] }) => ({ id, folders: write(folders.map(rename)) }));
  const problem = updates.flatMap(({ folders }) => folders ?? []).flatMap((folder) => problemOf(folder) ?? []);
  if (problem[0] !== undefined) return problem[0];
  await saveFolders(updates, format(getWords().podcasts.folderRenamed, { folder: isolate(to) }));
  if (isShown(from)) filter.set({ folder: to });
  return undefined;
}

/** Removes a folder and those within it. The podcasts stay. */
export async function removeFolder(path: string): Promise<void> {
  const updates = itemsIn(path).map(({ id, folders = [] }) => ({
    id,
    folders: write(folders.filter((folder) => !isIn(path)(folder))),
  }));
  await saveFolders(updates, format(getWords().podcasts.folderRemoved, { folder: isolate(path) }));
  if (isShown(path)) filter.set("all");
}

function isShown(path: string): boolean {
  const shown = filter.value;
  return typeof shown === "object" && shown.folder === path;
}
