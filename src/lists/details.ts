/** The title and folders that a user has given a subscription. Absent when not set. */
export interface Details {
  /** The user's own name for the podcast. */
  readonly title?: string;
  /** Paths such as `News/Tech`. */
  readonly folders?: readonly string[];
}

/** Details as they are stored: folders separated by line feeds, null when not set. */
export interface StoredDetails {
  readonly title: string | null;
  readonly folders: string | null;
}

export const MAX_TITLE = 300;
export const MAX_FOLDERS = 20;
export const MAX_FOLDER_PATH = 300;
export const MAX_FOLDER_LEVELS = 8;
/** Of the title and all folder paths of a subscription together. */
export const MAX_DETAILS = 1_024;

/** Control characters, line and paragraph separators, and bidirectional controls, which reorder the text around them. */
const FORBIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;
const REPLACED_WITH_SPACE = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]+/gu;

/** The title without surrounding whitespace; undefined if it is invalid. */
export function readTitle(text: string): string | undefined {
  return readText(text, MAX_TITLE);
}

/** The folders without duplicates and without whitespace around their names; undefined if one is invalid. */
export function readFolders(paths: readonly unknown[]): readonly string[] | undefined {
  if (paths.length > MAX_FOLDERS) return undefined;
  const folders = new Set<string>();
  for (const path of paths) {
    const folder = typeof path === "string" ? readFolder(path) : undefined;
    if (folder === undefined) return undefined;
    folders.add(folder);
  }
  return [...folders];
}

export function readFolder(path: string): string | undefined {
  if (path.length > 2 * MAX_FOLDER_PATH) return undefined;
  const names = path.split("/").map((name) => name.trim());
  if (names.length > MAX_FOLDER_LEVELS || names.includes("")) return undefined;
  return readText(names.join("/"), MAX_FOLDER_PATH);
}

function readText(text: string, max: number): string | undefined {
  if (text.length > 2 * max) return undefined;
  const trimmed = text.trim();
  if (trimmed === "" || isLonger(trimmed, max) || FORBIDDEN.test(trimmed) || !trimmed.isWellFormed()) return undefined;
  return trimmed;
}

function isLonger(text: string, max: number): boolean {
  return text.length > max && lengthOf(text) > max;
}

/** Counts code points. */
function lengthOf(text: string): number {
  return Array.from(text).length;
}

/**
 * Whether title and folders together are too long. Version 0.2.0 had no such limit; what a subscription has from then may
 * stay, but not become longer.
 */
export function isTooLong(details: StoredDetails, old?: StoredDetails): boolean {
  const text = textOf(details);
  return isLonger(text, MAX_DETAILS) && (old === undefined || isLonger(text, lengthOf(textOf(old))));
}

/** What counts: the title and the folder paths, without the separators between them. */
function textOf({ title, folders }: StoredDetails): string {
  return (title ?? "") + (folders ?? "").replaceAll("\n", "");
}

/** Makes a title from an imported file valid, with as few changes as possible. */
export function cleanTitle(text: string): string | undefined {
  return cleanText(text, MAX_TITLE) || undefined;
}

/** A valid path of folders with these names, outermost first. Leaves out what exceeds the limits. */
export function cleanFolder(names: readonly string[]): string | undefined {
  let path = "";
  let levels = 0;
  for (const name of names) {
    // A slash in a name would be another level.
    const clean = cleanText(name.replaceAll("/", "\uff0f"), MAX_FOLDER_PATH);
    if (clean === "") continue;
    const longer = path === "" ? clean : `${path}/${clean}`;
    if (levels === MAX_FOLDER_LEVELS || isLonger(longer, MAX_FOLDER_PATH)) break;
    path = longer;
    levels += 1;
  }
  return path || undefined;
}

/** Those of the folders, which must be valid, that a subscription with this title can have. */
export function cleanFolders(folders: readonly string[], title = ""): string[] {
  let left = MAX_DETAILS - lengthOf(title);
  return [...new Set(folders)].slice(0, MAX_FOLDERS).filter((folder) => {
    left -= lengthOf(folder);
    return left >= 0;
  });
}

/**
 * Changes the text as little as possible so that it fits on one line, has at most `max` characters and does not reorder
 * the text around it.
 */
export function cleanText(text: string, max: number): string {
  const clean = text
    .slice(0, 4 * max)
    .toWellFormed()
    .replaceAll(REPLACED_WITH_SPACE, " ")
    .replaceAll(BIDI_CONTROLS, "")
    .trim();
  return isLonger(clean, max) ? Array.from(clean).slice(0, max).join("").trimEnd() : clean;
}

/** Adds the details that are set. */
export function withDetails<Value extends object>(
  value: Value,
  title: string | null,
  folders: string | null,
): Value & Details {
  if (title === null && folders === null) return value;
  return {
    ...value,
    ...(title === null ? {} : { title }),
    ...(folders === null ? {} : { folders: folders.split("\n") }),
  };
}

/** An empty title or list of folders counts as not set. */
export function toStoredDetails({ title, folders }: Details): StoredDetails {
  return { title: title || null, folders: folders?.join("\n") || null };
}
