import type { KeyedUrl } from "./subscription.ts";

/*
 * Feeds that move. A subscription has one current URL and any number of other ones, all of which find it. An app is told to
 * replace the URL that it holds only if that URL no longer leads to the feed; nobody is told to remove what no person
 * removed.
 *
 * Rows exist only for feeds that are *tracked*: those that have had another URL. What is known of the others follows from
 * the list, from what each client has seen, and from the spellings that clients have used.
 *
 * These rules know no storage. Feeds are the keys of normalized URLs, as text. Sequence numbers are those of the list.
 */

/** Whether a URL leads to the current one: it is the current one, a look is due, it did when it was looked at, or not. */
export type Leads = "self" | "pending" | "yes" | "no";

/** A URL of a tracked feed. It outlives the subscription, because episode actions do. */
export interface FeedUrl {
  readonly feed: string;
  readonly url: string;
  /** The key of the feed's current URL, or of its last one. */
  readonly target: string;
  readonly leads: Leads;
  /** Whether it is one of the former URLs that a subscription has. Others only find it for apps that hold them. */
  readonly isShown: boolean;
  /** The server has seen the current URL lead to this one. */
  readonly isSighted: boolean;
  /** When it became the current URL, and when it ceased to be; 0 if never. */
  readonly currentAt: number;
  readonly formerAt: number;
  /** When to look next where it leads, in milliseconds; 0 for never. */
  readonly lookAt: number;
  /** How many looks in a row, since when, did not find that it leads to the current URL. */
  readonly looks: number;
  readonly looksSince: number;
  /** What the subscription had when it was removed, as JSON; null for other URLs. */
  readonly removed: string | null;
}

/** What a subscription gets back when an app adds one of its URLs again. */
export interface Restorable {
  readonly id: string;
  readonly title: string | null;
  readonly folders: string | null;
}

/** A URL under which a client has a tracked feed, or had it. */
export interface Holding {
  readonly client: string;
  readonly feed: string;
  readonly url: string;
  /** When it got it; 0 if it may only have found it by itself. */
  readonly got: number;
  /** When it was told to remove it (`isTold`), or removed it itself; 0 if it still has it. */
  readonly ended: number;
  readonly isTold: boolean;
  /** The client has uploaded it, or has polled again since it got it. */
  readonly isSure: boolean;
  /** It got it after it had been told to remove it. */
  readonly isAgain: boolean;
}

/** What a client has received of the list. */
export interface Progress {
  readonly client: string;
  readonly sequence: number;
  /** Where its last poll began. */
  readonly from: number;
}

/** A URL that a client uploaded, and when. */
export interface Uploaded {
  readonly client: string;
  readonly feed: string;
  readonly url: string;
  readonly sequence: number;
}

/** What is stored of a user's tracked feeds, and what else the rules need. */
export interface MovesState {
  readonly urls: readonly FeedUrl[];
  readonly holdings: readonly Holding[];
  readonly refused: readonly RefusedMove[];
  readonly progress: readonly Progress[];
  readonly uploaded: readonly Uploaded[];
  /** Listed feeds that others had removed before some client's last poll, and that were added again after it had begun. */
  readonly readded: readonly { readonly client: string; readonly feed: string }[];
}

/** A move that a person has undone. The server does not follow it again. */
export interface RefusedMove {
  readonly feed: string;
  readonly target: string;
}

export interface ListedFeed {
  readonly feedUrl: string;
  /** When it was added. */
  readonly sequence: number;
}

/** The list that the feeds are in. */
export interface ListOfFeeds {
  sequence: number;
  find(feed: string): ListedFeed | undefined;
}

/** What an app is told. */
export interface Told {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Tracked feeds, by all their keys: whatever else is known of them is not for the app. */
  readonly tracked: readonly string[];
}

/** What it means for a listed feed that a client removes a URL. Offered again, the client gets it at its next poll. */
export type Removes =
  | { readonly kind: "remove" | "offer"; readonly feed: string }
  | { readonly kind: "move"; readonly feed: string; readonly to: { readonly feed: string; readonly url: string } };

/** What came of looking where a URL leads: there was no answer, or it leads to the current URL or not. */
export type Look = "none" | "leads" | "elsewhere";

export const MAX_FORMER_URLS = 20;
/** Of all former URLs of a subscription; the newest is always kept. */
const MAX_FORMER_CHARACTERS = 4_096;
/** Of one feed. The oldest of the others are forgotten. */
const MAX_URLS = 50;
const HOUR_MS = 60 * 60 * 1_000;
const LOOK_AGAIN_MS = 7 * 24 * HOUR_MS;
const DOUBT_MS = 36 * HOUR_MS;
const FIRST_RETRY_MS = 10 * 60 * 1_000;
const MAX_RETRY_MS = 12 * HOUR_MS;
/** A URL no longer leads here, or is dead, after this many looks in this time. */
const PROOF = { looks: 3, ms: 72 * HOUR_MS };

const NEVER = 0;
const NEVER_LOOKED = { lookAt: 0, looks: 0, looksSince: 0, removed: null } as const;

/** A user's tracked feeds, in memory. Changes are collected for the store. */
export class Moves {
  readonly #list: ListOfFeeds;
  /** What was found in the list since it last changed. */
  readonly #listed = new Map<string, ListedFeed | undefined>();
  readonly #at: number;
  readonly #urls = new Map<string, FeedUrl>();
  /** The feeds of `#urls`, by target. */
  readonly #feedsOf = new Map<string, Set<string>>();
  /** By feed, then by client. */
  readonly #holdings = new Map<string, Map<string, Holding>>();
  readonly #refused: Set<string>;
  readonly #progress: readonly Progress[];
  readonly #uploaded: readonly Uploaded[];
  readonly #readded: MovesState["readded"];
  /** What the client has just uploaded. */
  readonly #uploadedNow = new Set<Holding>();

  readonly changedUrls = new Set<string>();
  /** Feeds, by client. */
  readonly changedHoldings = new Map<string, Set<string>>();
  /** URLs that were forgotten, with all that clients hold of them. */
  readonly forgotten = new Set<string>();
  readonly newlyRefused: RefusedMove[] = [];
  /** URLs whose episode actions now belong to another, and to whom they are due under that. Before what is joined. */
  readonly adopted: { readonly from: string; readonly into: string; readonly clients: readonly string[] }[] = [];
  /** URLs whose episode actions now belong to another, in this order. */
  readonly joined: { readonly from: string; readonly into: string }[] = [];
  /** URLs whose episode actions another gets too. */
  readonly copied: { readonly from: string; readonly to: string }[] = [];
  /** All actions of a feed (the URL) are due again to a client. */
  readonly resends = new Map<string, { readonly client: string; readonly url: string }>();

  constructor(list: ListOfFeeds, state: MovesState, at: number) {
    this.#list = list;
    this.#at = at;
    for (const row of state.urls) this.#keepUrl(row);
    for (const holding of state.holdings) this.#clientsOf(holding.feed).set(holding.client, holding);
    this.#refused = new Set(state.refused.map(pairOf));
    this.#progress = state.progress;
    this.#uploaded = state.uploaded;
    this.#readded = state.readded;
  }

  get isDirty(): boolean {
    const { changedUrls, changedHoldings, newlyRefused, joined, resends } = this;
    return changedUrls.size + changedHoldings.size + newlyRefused.length + joined.length + resends.size > 0;
  }

  urlRow(feed: string): FeedUrl | undefined {
    return this.#urls.get(feed);
  }

  holding(client: string, feed: string): Holding | undefined {
    return this.#holdings.get(feed)?.get(client);
  }

  // Reading

  /** The listed feed that a URL names: the one whose former URL it is. */
  findNamed(feed: string): string | undefined {
    const row = this.#urls.get(feed);
    if (row === undefined || !row.isShown || this.#find(row.target) === undefined) return undefined;
    return this.#isOther(row) ? undefined : row.target;
  }

  /** After a mistaken move was undone, the other URL is another podcast. */
  #isOther({ feed, target, leads }: FeedUrl): boolean {
    return leads === "no" && this.#refused.has(pairOf({ feed: target, target: feed }));
  }

  /** For apps also by a URL that the client holds, or that the server has seen the listed one lead to. */
  findFor(client: string, feed: string): string | undefined {
    const named = this.findNamed(feed);
    if (named !== undefined) return named;
    const row = this.#urls.get(feed);
    if (row === undefined || this.#find(row.target) === undefined) return undefined;
    const isHeld = this.#holdings.get(feed)?.get(client)?.ended === 0;
    return isHeld || row.isSighted ? row.target : undefined;
  }

  /** The former URLs of a feed, newest first, as they are stored with its subscription. */
  formerUrls(target: string): string | null {
    let characters = 0;
    const shown = this.#formerOf(target).filter(({ url, isShown }, index) => {
      characters += url.length;
      return isShown && (index === 0 || characters <= MAX_FORMER_CHARACTERS);
    });
    return shown.map(({ url }) => url).join("\n") || null;
  }

  #formerOf(target: string): FeedUrl[] {
    return this.#urlsOf(target)
      .filter(({ isShown, leads }) => isShown && leads !== "self")
      .sort((one, other) => other.formerAt - one.formerAt);
  }

  #urlsOf(target: string): FeedUrl[] {
    return [...(this.#feedsOf.get(target) ?? [])].flatMap((feed) => this.#urls.get(feed) ?? []);
  }

  #find(feed: string): ListedFeed | undefined {
    if (this.#listed.has(feed)) return this.#listed.get(feed);
    const found = this.#list.find(feed);
    this.#listed.set(feed, found);
    return found;
  }

  #isLiving(feed: string): boolean {
    const row = this.#urls.get(feed);
    return row !== undefined && row.leads !== "no" && this.#find(row.target) !== undefined;
  }

  #clientsOf(feed: string): Map<string, Holding> {
    const known = this.#holdings.get(feed) ?? new Map<string, Holding>();
    this.#holdings.set(feed, known);
    return known;
  }

  /** All that a client holds, or held, of a feed. */
  #rowsFor(client: string, target: string): Holding[] {
    return this.#urlsOf(target).flatMap(({ feed }) => this.#holdings.get(feed)?.get(client) ?? []);
  }

  #held(client: string, target: string): Holding[] {
    return this.#rowsFor(client, target).filter(({ ended }) => ended === 0);
  }

  /** The URL under which a client gets a feed: what it surely holds, else what it was told, else the current one. */
  urlFor(client: string, target: string): string {
    const all = this.#held(client, target).sort((one, other) => other.got - one.got);
    const sure = all.filter(({ isSure }) => isSure);
    const rows = sure.length > 0 ? sure : all;
    const best = rows.find(({ feed }) => feed === target) ?? rows.find(({ feed }) => this.#isLiving(feed)) ?? rows[0];
    return best?.url ?? this.#find(target)?.feedUrl ?? this.#urls.get(target)?.url ?? "";
  }

  // Changes of the list

  /** Whether the server may follow this move by itself. */
  mayFollow(feed: string, target: string): boolean {
    return feed !== target && !this.#refused.has(pairOf({ feed, target }));
  }

  /**
   * To be called after a feed was added to the list. What is known of it from before is restored. Returns another feed
   * that has lost this URL.
   */
  added(feed: string, url: string): string | undefined {
    this.#listed.clear();
    const row = this.#urls.get(feed);
    if (row === undefined) return undefined;
    if (row.target === feed) {
      this.#setUrl({ ...row, url, removed: null, currentAt: this.#list.sequence, formerAt: 0 });
      this.#lookAtAll(feed);
      return undefined;
    }
    if (this.#find(row.target) === undefined) {
      this.#rename(row.target, feed, url, "pending");
      return undefined;
    }
    // A URL that was forgotten, or only seen, becomes a feed of its own. Until now, it had the actions of the other one.
    this.copied.push({ from: this.#urls.get(row.target)?.url ?? "", to: url });
    this.#refuse({ feed, target: row.target });
    this.#refuse({ feed: row.target, target: feed });
    this.#setUrl({ ...NEVER_LOOKED, feed, url, target: feed, leads: "self", ...SHOWN, currentAt: this.#list.sequence });
    return row.target;
  }

  /**
   * To be called after a feed was added that has had these URLs before, newest first: on another server, or until it was
   * merged. Those that other listed feeds have stay with them.
   */
  addFormer(feed: string, url: string, former: readonly KeyedUrl[]): void {
    const own = former.filter((each) => {
      const known = this.#urls.get(each.feed);
      const isOthers = known?.isShown === true && known.target !== feed && this.#find(known.target) !== undefined;
      return each.feed !== feed && !isOthers && this.#find(each.feed) === undefined;
    });
    if (own.length === 0) return;
    this.track(feed);
    const currentAt = this.#list.sequence;
    for (const each of own.slice(0, MAX_FORMER_URLS).reverse()) {
      const known = this.#urls.get(each.feed);
      if (known?.target === feed && known.isShown) continue;
      // Of a feed that was removed, all that is known belongs to this one now.
      const isRemoved = known !== undefined && known.target !== feed && this.#find(known.target) === undefined;
      for (const row of isRemoved ? this.#urlsOf(known.target) : [])
        this.#setUrl(this.#withLook({ ...row, target: feed, leads: "pending", removed: null }));
      this.#list.sequence += 1;
      const formerAt = this.#list.sequence;
      const row = { ...NEVER_LOOKED, ...SHOWN, ...each, target: feed, leads: "pending", currentAt, formerAt } as const;
      this.#setUrl(this.#withLook(row));
      this.joined.push({ from: this.#removedFeedOf(known)?.url ?? each.url, into: url });
    }
    this.#forgetOldest(feed);
  }

  /** The feed that a URL was of, and that has the actions, if it was removed. */
  #removedFeedOf(row: FeedUrl | undefined): FeedUrl | undefined {
    return row !== undefined && this.#find(row.target) === undefined ? this.#urls.get(row.target) : undefined;
  }

  /** What a feed that is added again was when it was removed. */
  restorable(feed: string): Restorable | undefined {
    const row = this.#urls.get(feed);
    const self = row && this.#urls.get(row.target);
    if (self?.removed == null || this.#find(self.feed) !== undefined) return undefined;
    return JSON.parse(self.removed) as Restorable;
  }

  /** To be called after a feed was removed from the list. */
  removed(feed: string, restorable: Restorable): void {
    this.#listed.clear();
    const row = this.#urls.get(feed);
    if (row === undefined) return;
    for (const each of this.#urlsOf(feed)) this.#setUrl({ ...each, ...NEVER_LOOKED });
    const removed = JSON.stringify(restorable);
    this.#setUrl({ ...row, ...NEVER_LOOKED, removed, formerAt: this.#list.sequence });
  }

  /** To be called before a subscription gets another feed. Returns another feed that has lost the new URL. */
  renamed(from: string, to: string, url: string, leads: Leads = "pending"): string | undefined {
    const known = this.#urls.get(to);
    // Back to a former URL: that move was a mistake.
    if (leads === "pending" && known?.target === from && known.isShown) this.#refuse({ feed: to, target: from });
    this.track(from);
    const loser = known !== undefined && known.target !== from ? known.target : undefined;
    this.#rename(from, to, url, leads);
    this.#listed.clear();
    return loser !== undefined && this.#find(loser) !== undefined ? loser : undefined;
  }

  /** To be called when the spelling of a current URL changes. */
  respelled(feed: string, url: string): void {
    const row = this.#urls.get(feed);
    if (row !== undefined) this.#setUrl({ ...row, url });
  }

  #rename(from: string, to: string, url: string, leads: Leads): void {
    const known = this.#urls.get(to);
    const removed = known?.target === from ? undefined : this.#removedFeedOf(known);
    if (removed !== undefined) for (const row of this.#urlsOf(removed.feed)) this.#setUrl({ ...row, target: from });
    const { sequence } = this.#list;
    const old = this.#urls.get(from);
    if (known?.target !== from) this.#adopt(removed?.url ?? url, from);
    for (const row of this.#urlsOf(from)) {
      const next = row.leads === "self" || (leads === "yes" && row.leads === "yes") ? leads : "pending";
      this.#setUrl(this.#withLook({ ...row, target: to, isSighted: false, leads: next }));
    }
    if (old !== undefined)
      this.#setUrl(this.#withLook({ ...old, ...SHOWN, target: to, leads, removed: null, formerAt: sequence }));
    const self = { feed: to, url, target: to, leads: "self", currentAt: sequence } as const;
    this.#setUrl({ ...NEVER_LOOKED, ...self, ...SHOWN });
    this.joined.push({ from: old?.url ?? "", into: url });
    this.#forgetOldest(to);
  }

  /** To be called after `from` was removed, because it is the same podcast as `into`, which stays. */
  merged(from: string, into: string, leads: Leads = "pending"): void {
    this.#listed.clear();
    this.track(from);
    this.track(into);
    const { sequence } = this.#list;
    for (const row of this.#urlsOf(into))
      if (row.leads !== "self") this.#setUrl(this.#withLook({ ...row, leads: "pending" }));
    for (const row of this.#urlsOf(from)) {
      const isFrom = row.feed === from;
      const next = { ...row, target: into, isSighted: false, leads: isFrom ? leads : ("pending" as const) };
      this.#setUrl(this.#withLook(isFrom ? { ...next, ...SHOWN, formerAt: sequence } : next));
    }
    this.joined.push({ from: this.#urls.get(from)?.url ?? "", into: this.#urls.get(into)?.url ?? "" });
    this.#forgetOldest(into);
    for (const client of this.#clients()) if (this.#held(client, into).length > 0) this.#resend(client, into);
  }

  /**
   * Forgets the former URLs of a feed but for these: the others can be subscribed separately. Apps keep them while they lead
   * here.
   */
  keepFormer(target: string, kept: readonly string[]): void {
    for (const row of this.#urlsOf(target)) {
      const isShown = row.leads !== "self" && kept.includes(row.url);
      if (row.leads !== "self" && row.isShown !== isShown) this.#setUrl({ ...row, isShown });
    }
  }

  #forgetOldest(target: string): void {
    for (const row of this.#formerOf(target).slice(MAX_FORMER_URLS)) this.#setUrl({ ...row, isShown: false });
    const others = this.#urlsOf(target).filter(({ leads }) => leads !== "self");
    for (const { feed } of others.sort((one, other) => other.formerAt - one.formerAt).slice(MAX_URLS - 1)) {
      this.#deleteUrl(feed);
      this.#holdings.delete(feed);
      this.forgotten.add(feed);
    }
  }

  /** The server has seen that a listed feed leads to another URL; or, without one, that it leads nowhere any more. */
  sighted(feed: string, to?: { readonly feed: string; readonly url: string }): void {
    for (const row of this.#urlsOf(feed)) {
      if (!row.isSighted || row.feed === to?.feed) continue;
      const isHeld = [...(this.#holdings.get(row.feed)?.values() ?? [])].some(({ ended }) => ended === 0);
      if (isHeld || row.currentAt > 0) this.#setUrl({ ...row, isSighted: false });
      else this.#deleteUrl(row.feed);
    }
    if (to === undefined || this.#find(to.feed) !== undefined) return;
    const known = this.#urls.get(to.feed);
    if (known?.target === feed && !known.isSighted) this.#setUrl({ ...known, isSighted: true });
    if (known !== undefined) return;
    this.track(feed);
    const row = { ...NEVER_LOOKED, ...to, target: feed, leads: "yes", currentAt: 0, formerAt: 0 } as const;
    this.#setUrl({ ...row, isShown: false, isSighted: true });
    this.#adopt(to.url, feed);
  }

  /** Apps may have uploaded actions under a URL before it was known whose it is. Others have got them under that. */
  #adopt(from: string, target: string): void {
    const clients = [...this.#clients()].filter((client) => this.#held(client, target).length > 0);
    this.adopted.push({ from, into: this.#urls.get(target)?.url ?? "", clients });
  }

  /** The look at a URL is over. It counts only if the subscription is still where it was. */
  looked(feed: string, target: string, look: Look): void {
    const row = this.#urls.get(feed);
    if (row === undefined || row.leads === "self" || row.target !== target) return;
    if (this.#find(target) === undefined) {
      this.#setUrl({ ...row, ...NEVER_LOOKED });
      return;
    }
    if (look === "leads") {
      if (row.leads === "no") this.#list.sequence += 1;
      this.#setUrl({ ...row, leads: "yes", lookAt: this.#at + LOOK_AGAIN_MS, looks: 0, looksSince: 0 });
      return;
    }
    const wasDoubted = row.looks > 0;
    const isDoubted = row.leads !== "no" && (look === "elsewhere" || row.leads === "pending");
    const looks = isDoubted ? row.looks + 1 : row.looks;
    const looksSince = wasDoubted ? row.looksSince : this.#at;
    const isProven = looks >= PROOF.looks && this.#at - looksSince >= PROOF.ms;
    if (isDoubted && (isProven || (look === "elsewhere" && row.leads === "pending"))) {
      // What is told because of it must be told again if the answer is lost.
      this.#list.sequence += 1;
      this.#setUrl({ ...row, leads: "no", lookAt: this.#at + LOOK_AGAIN_MS, looks: 0, looksSince: 0 });
      return;
    }
    const retry = Math.min(FIRST_RETRY_MS * 2 ** looks, MAX_RETRY_MS);
    const wait = row.leads === "pending" ? retry : looks > 0 ? DOUBT_MS : LOOK_AGAIN_MS;
    this.#setUrl({ ...row, lookAt: this.#at + wait, looks, looksSince });
  }

  // Tracking

  /** From now on, it is written down what each client holds of this listed feed. */
  track(feed: string): void {
    const listed = this.#find(feed);
    if (this.#urls.get(feed)?.target === feed || listed === undefined) return;
    const { sequence, feedUrl } = listed;
    const self = { feed, url: feedUrl, target: feed, leads: "self", currentAt: sequence, formerAt: 0 } as const;
    this.#setUrl({ ...NEVER_LOOKED, ...self, ...SHOWN });
    const clients = this.#clientsOf(feed);
    const uploaded = this.#uploaded.filter((each) => each.feed === feed && each.client !== "");
    for (const { client, ...progress } of this.#progress) {
      if (progress.sequence >= sequence) this.#setHolding(newHolding(client, feed, feedUrl, sequence));
    }
    for (const { client, url, ...each } of uploaded) {
      const isCurrent = each.sequence >= sequence || clients.has(client);
      if (isCurrent) this.#setHolding({ ...newHolding(client, feed, url, sequence), isSure: true });
    }
  }

  #clients(client?: string): Set<string> {
    if (client !== undefined) return new Set([client]);
    return new Set([...this.#holdings.values()].flatMap((clients) => [...clients.keys()]));
  }

  // What apps upload

  /**
   * Runs changes of a client, or changes that may concern all. If the URL under which a client gets a feed changes, the
   * feed's actions are due to it again.
   */
  watch<T>(client: string | undefined, work: () => T): T {
    const before = new Map([...this.#clients(client)].map((each) => [each, this.#urlsFor(each)]));
    const result = work();
    for (const each of this.#clients(client)) {
      for (const [target, url] of this.#urlsFor(each))
        if (before.get(each)?.get(target) !== url) this.#resend(each, target);
    }
    return result;
  }

  #urlsFor(client: string): Map<string, string> {
    const targets = [...new Set([...this.#urls.values()].map(({ target }) => target))];
    const held = targets.filter((target) => this.#find(target) !== undefined && this.#held(client, target).length > 0);
    return new Map(held.map((target) => [target, this.urlFor(client, target)]));
  }

  #resend(client: string, target: string): void {
    const url = this.#urls.get(target)?.url ?? "";
    this.resends.set(`${client} ${target}`, { client, url });
  }

  /** A client has uploaded a URL of a listed feed. */
  hold(client: string, feed: string, url: string): void {
    if (!this.#urls.has(feed)) return;
    const known = this.#holdings.get(feed)?.get(client);
    const isHeld = known !== undefined && known.ended === 0;
    if (!isHeld) this.#list.sequence += 1;
    const held = isHeld ? { ...known, url } : newHolding(client, feed, url, this.#list.sequence);
    const isChanged = !isHeld || !known.isSure || known.url !== url;
    const holding = isChanged ? { ...held, isSure: true } : known;
    if (isChanged) this.#setHolding(holding);
    this.#uploadedNow.add(holding);
  }

  #end(client: string, feed: string): void {
    const known = this.#holdings.get(feed)?.get(client);
    if (known === undefined || known.ended > 0) return;
    this.#list.sequence += 1;
    this.#setHolding({ ...known, ended: this.#list.sequence, isTold: false });
  }

  /**
   * What it means that a client removes a URL: its subscription is removed, it now has another URL of the list's podcast,
   * it gets the feed again, or nothing, because it does not hold the URL any more. Undefined if the feed is not tracked.
   */
  removalBy(client: string, feed: string): "nothing" | Removes | undefined {
    const row = this.#urls.get(feed);
    if (row === undefined) return undefined;
    const target = this.#find(row.target) === undefined ? this.findFor(client, feed) : row.target;
    const holding = this.#holdings.get(feed)?.get(client);
    if (target === undefined) {
      this.#end(client, feed);
      return "nothing";
    }
    // It repeats itself, or sends back what it was told.
    if (holding !== undefined && holding.ended > 0) return "nothing";
    const from = this.#progress.find((each) => each.client === client)?.from ?? 0;
    const isAgain = holding?.isAgain === true || this.#isReadded(client, feed);
    if (holding !== undefined && isAgain && holding.got > from) {
      this.#list.sequence += 1;
      this.#setHolding({ ...holding, ended: this.#list.sequence, isTold: true });
      return { kind: "offer", feed: target };
    }
    const rest = this.#held(client, target).filter((each) => each.feed !== feed);
    const isReplaced = rest.some((each) => this.#uploadedNow.has(each));
    if (holding === undefined && rest.length > 0 && (isReplaced || !this.#hasFollowed(rest, row, target)))
      return "nothing";
    this.#end(client, feed);
    if (holding !== undefined && rest.length > 0) {
      // It has only cleaned up; perhaps it has replaced the current URL by one that the server has seen this lead to.
      const next = feed === target ? rest.find((each) => this.#urls.get(each.feed)?.isSighted) : undefined;
      return next === undefined ? "nothing" : { kind: "move", feed: target, to: next };
    }
    for (const each of rest) this.#end(client, each.feed);
    return { kind: "remove", feed: target };
  }

  /** Whether a client that holds these may have followed a redirect to a URL by itself. */
  #hasFollowed(held: readonly Holding[], { feed, isSighted }: FeedUrl, target: string): boolean {
    if (isSighted) return true;
    return held.some((each) => {
      const leads = this.#urls.get(each.feed)?.leads;
      return feed === target && (leads === "pending" || leads === "yes");
    });
  }

  /**
   * Whether a client that removes a listed feed, which is not tracked, only sends back a removal that it was told of: then
   * it does not have the feed now, and gets it again.
   */
  isEcho(client: string, feed: string): boolean {
    const addedAt = this.#find(feed)?.sequence ?? 0;
    const isOwn = (each: Uploaded) => each.client === client && each.feed === feed && each.sequence >= addedAt;
    if (!this.#isReadded(client, feed)) return false;
    if (this.#uploaded.some(isOwn)) return false;
    this.track(feed);
    const url = this.#find(feed)?.feedUrl ?? "";
    this.#list.sequence += 1;
    const { sequence } = this.#list;
    this.#setHolding({ ...newHolding(client, feed, url, sequence), ended: sequence, isTold: true });
    return true;
  }

  #isReadded(client: string, feed: string): boolean {
    return this.#readded.some((each) => each.client === client && each.feed === feed);
  }

  /**
   * An app has uploaded an action under a URL. If it never held that, it has switched to it. If it has another one, the
   * action comes back under that.
   */
  actedOn(client: string, feed: string, url: string): void {
    const row = this.#urls.get(feed);
    if (row === undefined || this.#find(row.target) === undefined) return;
    const { target } = row;
    const held = this.#held(client, target);
    if (this.#isLiving(feed) && held.length > 0 && this.#holdings.get(feed)?.has(client) !== true) {
      for (const each of held) this.#end(client, each.feed);
      this.#list.sequence += 1;
      this.#setHolding(newHolding(client, feed, url, this.#list.sequence));
    }
    const isOwn = this.#held(client, target).some(
      (each) => each.feed === feed && each.url === this.urlFor(client, target),
    );
    if (!isOwn) this.#resend(client, target);
  }

  /** A client uploads its whole list. Returns the tracked feeds that it had and no longer has: they are to be removed. */
  keepOnly(client: string, feeds: ReadonlySet<string>): readonly string[] {
    const kept = new Set([...feeds].map((feed) => this.findFor(client, feed) ?? feed));
    const gone = this.#listedTargets().filter((target) => !kept.has(target) && this.#held(client, target).length > 0);
    for (const feed of this.#urls.keys()) if (!feeds.has(feed) && this.#isLiving(feed)) this.#end(client, feed);
    return gone;
  }

  /** All tracked feeds, by all their keys. */
  get tracked(): readonly string[] {
    return [...this.#urls.keys()];
  }

  // What apps are told

  /** What a client is told that polls since `since`, when it knows the list up to `from`. */
  tell(client: string, since: number, from: number): Told {
    const told = this.watch(client, () => (since === 0 ? this.#tellAll(client) : this.#tellSince(client, from)));
    return { ...told, tracked: this.tracked.filter((feed) => this.#isTrackedFor(client, feed)) };
  }

  /** A client may know a feed only from before it was tracked. If it is not listed, what it is told depends on the list. */
  #isTrackedFor(client: string, feed: string): boolean {
    const isListed = this.#find(this.#urls.get(feed)?.target ?? "") !== undefined;
    return isListed || this.#holdings.get(feed)?.has(client) === true;
  }

  #listedTargets(): string[] {
    const targets = new Set([...this.#urls.values()].map(({ target }) => target));
    return [...targets].filter((target) => this.#find(target) !== undefined);
  }

  /** What it holds now is what this response names, in the URLs that it had if they live. */
  #tellAll(client: string): Omit<Told, "tracked"> {
    const { sequence } = this.#list;
    const add: string[] = [];
    const named = new Map<string, string>();
    for (const target of this.#listedTargets()) {
      const held = this.#held(client, target).filter(({ feed }) => this.#isLiving(feed));
      const best = this.urlFor(client, target);
      const holding = held.find(({ url }) => url === best);
      const feed = holding?.feed ?? target;
      const url = holding?.url ?? this.#find(target)?.feedUrl ?? "";
      add.push(url);
      named.set(feed, url);
    }
    for (const [feed, clients] of this.#holdings) {
      const known = clients.get(client);
      if (known?.ended === 0 && !named.has(feed)) this.#deleteHolding(known);
    }
    for (const [feed, url] of named) this.#setHolding(newHolding(client, feed, url, sequence));
    return { add, remove: [] };
  }

  #tellSince(client: string, from: number): Omit<Told, "tracked"> {
    const add: string[] = [];
    const { sequence } = this.#list;
    if (!this.#progress.some((each) => each.client === client)) this.#assume(client, from);
    for (const clients of this.#holdings.values()) {
      const known = clients.get(client);
      if (known?.ended === 0 && !known.isSure && known.got <= from) this.#setHolding({ ...known, isSure: true });
    }
    for (const target of this.#listedTargets()) {
      const mine = this.#rowsFor(client, target).filter(({ feed }) => this.#isLiving(feed));
      if (mine.some(({ ended, got }) => ended === 0 && got <= from)) {
        // What an answer that was lost named besides is not there.
        for (const each of mine) if (!each.isSure && each.got > from) this.#deleteHolding(each);
        continue;
      }
      mine.sort((one, other) => Number(one.ended > 0) - Number(other.ended > 0) || other.got - one.got);
      // If the response that told it to replace a URL was lost, it still has that, and not the other one.
      const isUnconfirmed = ({ got, ended, isTold }: Holding) => isTold && ended > from && got > NEVER && got <= from;
      const kept = mine.find(isUnconfirmed);
      const known = kept ?? mine[0];
      if (kept !== undefined) for (const each of mine) if (each.ended === 0 && !each.isSure) this.#deleteHolding(each);
      const url = known?.url ?? this.#find(target)?.feedUrl ?? "";
      add.push(url);
      if (known === undefined) this.#setHolding(newHolding(client, target, url, sequence));
      else if (known.ended > 0)
        this.#setHolding({ ...newHolding(client, known.feed, url, sequence), isAgain: known.isTold });
      this.#resend(client, target);
    }
    return { add, remove: this.#tellRemovals(client, from) };
  }

  /** Of a removed feed, all URLs: the client may have followed a redirect by itself. */
  #tellRemovals(client: string, from: number): string[] {
    const gone = new Map<string, string>();
    for (const [feed, clients] of this.#holdings) {
      const known = clients.get(client);
      if (known === undefined || this.#isLiving(feed) || (known.ended > 0 && known.ended <= from)) continue;
      gone.set(known.url, feed);
      const target = this.#urls.get(feed)?.target ?? "";
      if (this.#find(target) !== undefined) continue;
      for (const each of this.#urlsOf(target)) if (!this.#isOther(each)) gone.set(each.url, each.feed);
    }
    const ended = Math.max(this.#list.sequence, 1);
    for (const [url, feed] of gone) {
      const known = this.#holdings.get(feed)?.get(client);
      if (known === undefined || known.ended === 0)
        this.#setHolding({ ...(known ?? newHolding(client, feed, url, NEVER)), ended, isTold: true });
    }
    return [...gone.keys()];
  }

  /** A new client that does not ask for everything has synced before, as another one: it has what the list had then. */
  #assume(client: string, from: number): void {
    for (const { feed, url, currentAt, formerAt } of this.#urls.values()) {
      const wasCurrent = currentAt > 0 && currentAt <= from && !(formerAt > currentAt && formerAt <= from);
      if (wasCurrent && !this.#holdings.get(feed)?.has(client))
        this.#setHolding(newHolding(client, feed, url, currentAt));
    }
  }

  // Rows

  #setUrl(row: FeedUrl): void {
    this.#dropUrl(row.feed);
    this.#keepUrl(row);
    this.changedUrls.add(row.feed);
  }

  #keepUrl(row: FeedUrl): void {
    this.#urls.set(row.feed, row);
    const feeds = this.#feedsOf.get(row.target) ?? new Set();
    this.#feedsOf.set(row.target, feeds.add(row.feed));
  }

  #dropUrl(feed: string): void {
    this.#feedsOf.get(this.#urls.get(feed)?.target ?? "")?.delete(feed);
    this.#urls.delete(feed);
  }

  #deleteUrl(feed: string): void {
    this.#dropUrl(feed);
    this.changedUrls.add(feed);
  }

  #setHolding(holding: Holding): void {
    this.#clientsOf(holding.feed).set(holding.client, holding);
    this.#markChanged(holding);
  }

  #deleteHolding(holding: Holding): void {
    this.#holdings.get(holding.feed)?.delete(holding.client);
    this.#markChanged(holding);
  }

  #markChanged({ client, feed }: Holding): void {
    const feeds = this.changedHoldings.get(client) ?? new Set();
    this.changedHoldings.set(client, feeds.add(feed));
  }

  #refuse(move: RefusedMove): void {
    if (this.#refused.has(pairOf(move))) return;
    this.#refused.add(pairOf(move));
    this.newlyRefused.push(move);
  }

  #lookAtAll(target: string): void {
    for (const row of this.#urlsOf(target)) if (row.leads !== "self") this.#setUrl(this.#withLook(row));
  }

  /** With the look that is due. */
  #withLook(row: FeedUrl): FeedUrl {
    const lookAt = row.leads === "self" ? 0 : row.leads === "yes" ? this.#at + LOOK_AGAIN_MS : this.#at;
    return { ...row, lookAt, looks: 0, looksSince: 0 };
  }
}

const SHOWN = { isShown: true, isSighted: false, formerAt: 0 } as const;

function newHolding(client: string, feed: string, url: string, got: number): Holding {
  return { client, feed, url, got, ended: 0, isTold: false, isSure: false, isAgain: false };
}

function pairOf({ feed, target }: RefusedMove): string {
  return `${feed} ${target}`;
}
