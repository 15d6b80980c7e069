import type { UserId } from "../accounts/caller.ts";
import { forEachInTurns, slicesOf } from "../util/turns.ts";
import type { AppStore, Spelling } from "./app-store.ts";

/** A removal is sent in all spellings of its feed. So they are recorded only until there are this many, or this many characters. */
const MAX_SPELLINGS = 100;
const MAX_CHARACTERS = 8 * 1_024;
/** Feeds whose spellings are read at a time. */
const BATCH = 200;

/** The recorded spellings of the feeds with these normalized URLs, by normalized URL. */
export async function readSpellings(
  apps: AppStore,
  user: UserId,
  normalizedUrls: readonly string[],
): Promise<Map<string, Spelling[]>> {
  const all: Spelling[] = [];
  for await (const batch of slicesOf(normalizedUrls, BATCH)) {
    for (const spelling of await apps.spellings(user, batch)) all.push(spelling);
  }
  return Map.groupBy(all, ({ normalizedUrl }) => normalizedUrl);
}

/** The spellings that are still to be recorded, and those that were recorded before. */
export async function findUnrecorded(
  apps: AppStore,
  user: UserId,
  spellings: readonly Spelling[],
): Promise<{ readonly unrecorded: readonly Spelling[]; readonly known: readonly Spelling[] }> {
  const recorded = await readSpellings(apps, user, [...new Set(spellings.map(({ normalizedUrl }) => normalizedUrl))]);
  const unrecorded: Spelling[] = [];
  const known: Spelling[] = [];
  const before = new Set([...recorded.values()].flat());
  await forEachInTurns(spellings, (spelling) => {
    const { normalizedUrl } = spelling;
    const all = recorded.get(normalizedUrl) ?? [];
    const same = all.find(({ url, installation }) => url === spelling.url && installation === spelling.installation);
    if (same !== undefined) {
      if (before.delete(same)) known.push(spelling);
      return;
    }
    if (isFull(all)) return;
    unrecorded.push(spelling);
    recorded.set(normalizedUrl, [...all, spelling]);
  });
  return { unrecorded, known };
}

/** Whether no more spellings of a feed are recorded. */
export function isFull(recorded: readonly Spelling[]): boolean {
  if (recorded.length >= MAX_SPELLINGS) return true;
  return recorded.reduce((sum, { url }) => sum + url.length, 0) >= MAX_CHARACTERS;
}
