import { hash } from "node:crypto";
import type { Caller, UserId } from "../accounts/caller.ts";

/** A subscription, and what its feed says about the podcast. */
export interface ListedPodcast {
  readonly subscription: string;
  readonly podcastGuid: string | null;
  readonly title: string | null;
  readonly homepageUrl: string | null;
}

export type DuplicateReason = "same-guid" | "same-title-and-site";

/** Subscriptions that seem to be for the same podcast, in the order of the list. */
export interface DuplicateGroup {
  readonly id: string;
  readonly reason: DuplicateReason;
  readonly subscriptions: readonly string[];
}

/** A group that the user has said is not one podcast. */
export interface Dismissal {
  readonly id: string;
  readonly dismissedAt: Date;
}

/** When a user has dismissed more groups than this, the oldest decision is forgotten. */
export const MAX_DISMISSALS = 2_000;

export interface DuplicateStore {
  /** Subscriptions in list order, from the first one that was added after sequence number `after`. */
  listedAfter(
    user: UserId,
    after: number,
    limit: number,
  ): Promise<{ readonly items: readonly ListedPodcast[]; readonly last: number }>;
  /** Latest first. */
  dismissals(user: UserId): Promise<readonly Dismissal[]>;
  dismiss(caller: Caller, id: string, at: Date): Promise<void>;
}

/** Few enough to be read between two requests of others. */
const BATCH_SIZE = 100;

/**
 * The groups of a user's list that the user has not dismissed, in the order of their first members. `afterBatch` lets other
 * work go first, and may throw when the reader's access has ended.
 */
export async function findDuplicates(
  store: DuplicateStore,
  user: UserId,
  afterBatch: () => unknown,
): Promise<readonly DuplicateGroup[]> {
  const finder = new DuplicateFinder();
  for (let after = 0; ; ) {
    const { items, last } = await store.listedAfter(user, after, BATCH_SIZE);
    await afterBatch();
    if (items.length === 0) break;
    for (const item of items) finder.add(item);
    after = last;
  }
  const dismissed = new Set((await store.dismissals(user)).map(({ id }) => id));
  return finder.groups().filter(({ id }) => !dismissed.has(id));
}

/** Keeps only hashes of what feeds say, so that long titles need no memory. */
export class DuplicateFinder {
  readonly #byGuid = new Map<string, string[]>();
  readonly #byTitleAndSite = new Map<string, string[]>();
  /** The place in the list, and the GUID, of each subscription. */
  readonly #members = new Map<string, { readonly place: number; readonly guid: string | undefined }>();

  add({ subscription, podcastGuid, title, homepageUrl }: ListedPodcast): void {
    const guid = podcastGuid === null ? undefined : digest(podcastGuid);
    this.#members.set(subscription, { place: this.#members.size, guid });
    if (guid !== undefined) addTo(this.#byGuid, guid, subscription);
    const key = keyOfTitleAndSite(title, homepageUrl);
    if (key !== undefined) addTo(this.#byTitleAndSite, key, subscription);
  }

  /** A group that is found for both reasons, or is part of one with the same GUID, is there once. */
  groups(): readonly DuplicateGroup[] {
    const guidOf = (subscription: string) => this.#members.get(subscription)?.guid;
    const haveSameGuid = ([first = "", ...others]: readonly string[]) =>
      guidOf(first) !== undefined && others.every((other) => guidOf(other) === guidOf(first));
    const found = [
      ...toGroups("same-guid", this.#byGuid.values()),
      ...toGroups(
        "same-title-and-site",
        [...this.#byTitleAndSite.values()].filter((members) => !haveSameGuid(members)),
      ),
    ];
    const placeOf = ({ subscriptions: [first = ""] }: DuplicateGroup) => this.#members.get(first)?.place ?? 0;
    return found.sort((one, other) => placeOf(one) - placeOf(other));
  }
}

function addTo(groups: Map<string, string[]>, key: string, subscription: string): void {
  const members = groups.get(key);
  if (members === undefined) groups.set(key, [subscription]);
  else members.push(subscription);
}

function toGroups(reason: DuplicateReason, all: Iterable<readonly string[]>): DuplicateGroup[] {
  return Array.from(all)
    .filter(({ length }) => length > 1)
    .map((subscriptions) => ({ id: groupIdOf(subscriptions), reason, subscriptions }));
}

/** In the form of a UUID. It depends on the members alone, so a new member makes a new group. */
function groupIdOf(subscriptions: readonly string[]): string {
  return hash("sha256", subscriptions.toSorted().join(), "hex")
    .slice(0, 32)
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Undefined without a title or a site, which would say too little. */
function keyOfTitleAndSite(title: string | null, homepageUrl: string | null): string | undefined {
  const [name, site] = [comparable(title ?? ""), siteOf(homepageUrl ?? "")];
  return name === "" || site === undefined ? undefined : digest(`${name}\n${site}`);
}

/** Titles are compared up to this length, because normalizing hundreds of combining marks takes long. */
const COMPARED_LENGTH = 100;

/** Equal for titles that differ only in case, width, punctuation or spaces. */
function comparable(title: string): string {
  const letters = title.slice(0, COMPARED_LENGTH).normalize("NFKC").toLowerCase();
  return letters.replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, " ").trim() || letters.trim();
}

/** Host, path and query: several podcasts may have one host. Without what differs between links to one page. */
function siteOf(homepageUrl: string): string | undefined {
  const url = URL.parse(homepageUrl);
  if (url === null || url.hostname === "") return undefined;
  const query = new URLSearchParams(url.searchParams);
  for (const name of [...query.keys()]) if (name.startsWith("utm_")) query.delete(name);
  query.sort();
  const path = url.pathname.replace(/(?<!\/)\/+$/, "").replace(/\/index\.\w+$/, "");
  return `${url.hostname.replace(/^www\./, "")}${path}?${query}`;
}

function digest(text: string): string {
  return hash("sha256", text, "base64").slice(0, 22);
}
