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

/** The spellings that are still to be recorded. */
export async function findUnrecorded(
  apps: AppStore,
  user: UserId,
  spellings: readonly Spelling[],
): Promise<readonly Spelling[]> {
  const recorded = await readSpellings(apps, user, [...new Set(spellings.map(({ normalizedUrl }) => normalizedUrl))]);
  const unrecorded: Spelling[] = [];
  await forEachInTurns(spellings, (spelling) => {
    const { normalizedUrl } = spelling;
    const known = recorded.get(normalizedUrl) ?? [];
    if (
      isFull(known) ||
      known.some(({ url, installation }) => url === spelling.url && installation === spelling.installation)
    )
      return;
    unrecorded.push(spelling);
    recorded.set(normalizedUrl, [...known, spelling]);
  });
  return unrecorded;
}

/** Whether no more spellings of a feed are recorded. */
export function isFull(recorded: readonly Spelling[]): boolean {
  if (recorded.length >= MAX_SPELLINGS) return true;
  return recorded.reduce((sum, { url }) => sum + url.length, 0) >= MAX_CHARACTERS;
}
