export const MAX_TITLE = 300;
export const MAX_FOLDERS = 20;
export const MAX_FOLDER_PATH = 300;
export const MAX_FOLDER_LEVELS = 8;
/** Of the title and all folder paths of a subscription together. */
export const MAX_DETAILS = 1_024;

/** A detail as clients send it, and as it is stored: a text, in which "" means not set. */
interface Detail<Value> {
  /** Undefined if the value is invalid. Null clears the detail. */
  readonly read: (value: unknown) => Value | undefined;
  readonly write: (value: Value) => string;
  readonly parse: (text: string) => Value;
}

const TITLE: Detail<string> = {
  read: (value) => (value === null ? "" : typeof value === "string" ? readTitle(value) : undefined),
  write: (title) => title,
  parse: (text) => text,
};

/** Paths such as `News/Tech`, stored with line feeds between them. */
const FOLDERS: Detail<readonly string[]> = {
  read: (value) => (value === null ? [] : Array.isArray(value) ? readFolders(value) : undefined),
  write: (folders) => folders.join("\n"),
  parse: (text) => text.split("\n"),
};

/** Newest first, one per line. The server records them; a client can only clear them. */
const FORMER_FEED_URLS: Detail<readonly string[]> = {
  read: (value) => (value === null || (Array.isArray(value) && value.length === 0) ? [] : undefined),
  write: (urls) => urls.join("\n"),
  parse: (text) => text.split("\n"),
};

/**
 * What a subscription has besides its feed: each detail with its name, which is that of its column in `subscriptions` and
 * `removals`, and of its attribute. A new one also needs a migration, and an error `invalid-NAME` for values that `read`
 * rejects.
 */
const DETAILS = { title: TITLE, folders: FOLDERS, former_feed_urls: FORMER_FEED_URLS };

export type DetailName = keyof typeof DETAILS;
export const DETAIL_NAMES = Object.keys(DETAILS) as readonly DetailName[];

/** Absent when not set. */
export type Details = { readonly [Name in DetailName]?: ReturnType<(typeof DETAILS)[Name]["parse"]> };
/** Null when not set. */
export type StoredDetails = { readonly [Name in DetailName]: string | null };

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };
/** Any of the details, whose values have different types. */
const detail = (name: DetailName) => DETAILS[name] as Detail<unknown>;

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
  const text = textOf(details, LIMITED_TOGETHER);
  return isLonger(text, MAX_DETAILS) && (old === undefined || isLonger(text, lengthOf(textOf(old, LIMITED_TOGETHER))));
}

const LIMITED_TOGETHER: readonly DetailName[] = ["title", "folders"];

/** These details, without the separators within them. */
function textOf(details: StoredDetails, names: readonly DetailName[]): string {
  return names.map((name) => details[name]?.replaceAll("\n", "") ?? "").join("");
}

/** UTF-16 code units of all details, without the separators within them. */
export function charactersOf(details: Details): number {
  return hasDetails(details) ? textOf(toStoredDetails(details), DETAIL_NAMES).length : 0;
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

/** The details among the attributes that a client sends, or the name of the first invalid one. */
export function readDetails(attributes: Readonly<Record<string, unknown>>): Details | DetailName {
  const details: Record<string, unknown> = {};
  for (const name of DETAIL_NAMES) {
    const value = attributes[name];
    if (value === undefined) continue;
    const parsed = detail(name).read(value);
    if (parsed === undefined) return name;
    details[name] = parsed;
  }
  return details;
}

export function hasDetails(value: object): boolean {
  return DETAIL_NAMES.some((name) => name in value);
}

/** The details of a value that may have more. */
export function detailsOf(value: Details): Details {
  return Object.fromEntries(DETAIL_NAMES.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]])));
}

/** Adds the details that are set. */
export function withDetails<Value extends object>(value: Value, stored: StoredDetails): Value & Details {
  let result: Value & Details = value;
  for (const name of DETAIL_NAMES) {
    const text = stored[name];
    if (text !== null) result = { ...result, [name]: detail(name).parse(text) };
  }
  return result;
}

/** Details as they are stored; those that are undefined are taken from `old`. Empty ones count as not set. */
export function toStoredDetails(details: Details, old: StoredDetails = NOT_SET): StoredDetails {
  const stored: Writable<StoredDetails> = { ...NOT_SET };
  for (const name of DETAIL_NAMES) {
    const value = details[name];
    stored[name] = value === undefined ? old[name] : detail(name).write(value) || null;
  }
  return stored;
}

/** The columns of the details, for a statement. */
export const DETAIL_COLUMNS = DETAIL_NAMES.join(", ");
type Texts = readonly (string | null | undefined)[];

/** In the order of `DETAIL_COLUMNS`. */
export function detailValues(stored: StoredDetails): (string | null)[] {
  return DETAIL_NAMES.map((name) => stored[name]);
}

/** From values in the order of `DETAIL_COLUMNS`, the first of which may not be the first of the row. */
export function storedDetailsFrom(row: Texts, first = 0): StoredDetails {
  const stored: Writable<StoredDetails> = { ...NOT_SET };
  for (const [index, name] of DETAIL_NAMES.entries()) stored[name] = row[first + index] ?? null;
  return stored;
}

/** From a row with these columns and others. */
export function storedDetailsOf(row: Readonly<Record<string, string | null | undefined>>): StoredDetails {
  return storedDetailsFrom(DETAIL_NAMES.map((name) => row[name]));
}

export const NOT_SET: StoredDetails = { title: null, folders: null, former_feed_urls: null };

export function isSame(one: StoredDetails, other: StoredDetails): boolean {
  return DETAIL_NAMES.every((name) => one[name] === other[name]);
}
