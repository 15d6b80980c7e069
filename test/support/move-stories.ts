import { asUser, type UserId } from "../../src/accounts/caller.ts";
import type { StoredAction, UploadedAction } from "../../src/apps/episode-actions.ts";
import { AppSync } from "../../src/apps/sync.ts";
import { feedKeyHex, readFeedUrl } from "../../src/lists/feed-url.ts";
import type { Look } from "../../src/lists/moves.ts";
import type { Change, MoveChange, Subscription } from "../../src/lists/subscription.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import { collect } from "./app-clients.ts";
import { idOf } from "./lists.ts";
import { CLOCK_KINDS, type FeedChanges, type Observer, PHONE_KINDS, Phone } from "./move-phones.ts";
import { podcastOf, World } from "./move-world.ts";

const START = Date.parse("2026-01-02T03:04:05.678Z");
const [PODCASTS, EPISODES, STEPS] = [3, 2, 25];
const HOUR_MS = 3_600_000;

/** What went wrong in a story, and the story. */
export interface Told {
  readonly faults: readonly string[];
  readonly log: readonly string[];
}

/** A random story of apps, a person, publishers and the server, up to when nothing happens any more. */
export async function tellStory(store: Store, user: UserId, random: () => number): Promise<Told> {
  const story = new Story(store, user, random);
  await story.begin();
  for (let step = 0; step < STEPS; step += 1) await story.step();
  await story.rest();
  await story.check();
  return story;
}

class Story implements Observer {
  readonly faults: string[] = [];
  readonly log: string[] = [];
  readonly #world = new World();
  readonly #store: Store;
  readonly #server: AppSync;
  readonly #user: UserId;
  readonly #random: () => number;
  readonly #phones: Phone[];
  /** All that the server has seen, and where it has seen it lead at last. */
  readonly #seen = new Map<string, string>();
  /** What the person has said to be another podcast. */
  readonly #others = new Set<string>();
  /** The last position of each episode that has reached the server. */
  readonly #played = new Map<string, { readonly actedAt: number; readonly position: number }>();
  #now = START;
  #ids = 0;
  #isResting = false;
  #listedBefore: ReadonlySet<number> = new Set();

  constructor(store: Store, user: UserId, random: () => number) {
    this.#store = store;
    this.#server = new AppSync(store);
    this.#user = user;
    this.#random = random;
    const kinds = [...PHONE_KINDS, this.#pick(CLOCK_KINDS)];
    this.#phones = kinds.map((kind, index) => new Phone(kind, `phone-${index}`, user, this.#server, this));
  }

  // Chance

  #chance(sides: number): boolean {
    return this.#below(sides) === 0;
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#below(items.length)] as Item;
  }

  #say(...words: readonly unknown[]): void {
    this.log.push(words.map((word) => (typeof word === "string" ? word : JSON.stringify(word))).join(" "));
  }

  #fault(kind: string, ...words: readonly unknown[]): void {
    this.faults.push(kind);
    this.#say("!!!", kind, ...words);
  }

  // The list

  async #listed(): Promise<readonly Subscription[]> {
    const { items } = await this.#store.page(this.#user, { offset: 0, size: 100 });
    for (const { feedUrl } of items) if (!this.#seen.has(feedUrl)) this.#seen.set(feedUrl, feedUrl);
    return items;
  }

  async #listedPodcasts(): Promise<Set<number>> {
    return new Set((await this.#listed()).map(({ feedUrl }) => podcastOf(feedUrl)));
  }

  async #change(...changes: readonly Change[]): Promise<void> {
    const { outcomes } = await this.#store.change(asUser(this.#user), changes, new Date(this.#now));
    for (const outcome of outcomes) if (outcome.kind === "refused") this.#say("  refused:", outcome.code);
  }

  async #move(change: MoveChange): Promise<void> {
    await this.#store.move(asUser(this.#user), change, new Date(this.#now));
  }

  // What the phones say

  now = () => this.#now;

  isLost = () => !this.#isResting && this.#chance(7);

  async received(phone: Phone, { add, remove }: FeedChanges, before: ReadonlySet<number>): Promise<void> {
    if (add.length + remove.length > 0 && !phone.kind.isWhole) this.#say(`  ${phone.key} is told`, { add, remove });
    const listed = await this.#listedPodcasts();
    const own = phone.podcasts;
    for (const podcast of before)
      if (
        !own.has(podcast) &&
        listed.has(podcast) &&
        !phone.unnoticed.has(podcast) &&
        !phone.unsubscribed.has(podcast) &&
        !add.some((url) => podcastOf(url) === podcast)
      )
        this.#fault("told to lose a listed podcast", phone.key, podcast);
  }

  async uploading(phone: Phone, changes: FeedChanges): Promise<void> {
    this.#say(`  ${phone.key} uploads`, changes);
    this.#listedBefore = await this.#listedPodcasts();
  }

  async uploaded(phone: Phone): Promise<void> {
    const listed = await this.#listedPodcasts();
    for (const podcast of this.#listedBefore)
      if (!listed.has(podcast) && !phone.unsubscribed.has(podcast))
        this.#fault("removed everywhere, though nobody removed it", phone.key, podcast);
  }

  played(actions: readonly UploadedAction[]): void {
    for (const { podcast, episode, actedAt = new Date(this.#now), position = -1 } of actions) {
      this.#say("  plays are uploaded", podcast, episode, position);
      const key = `${podcastOf(podcast)} ${episode}`;
      const known = this.#played.get(key);
      if (known === undefined || known.actedAt <= actedAt.getTime())
        this.#played.set(key, { actedAt: actedAt.getTime(), position });
    }
  }

  // What happens

  async begin(): Promise<void> {
    for (let podcast = 0; podcast < PODCASTS; podcast += 1) await this.#addByPerson(this.#world.newUrl(podcast));
    for (const phone of this.#phones) await phone.sync();
  }

  async step(): Promise<void> {
    this.#now += 1_000 * (1 + this.#below(20));
    const events = [...ALL, "sync", "sync", "sync", "play", "play", "move"] as const;
    await this.#events[this.#pick(events)]();
  }

  readonly #events = {
    sync: async () => {
      const phone = this.#pick(this.#phones);
      this.#say(phone.key, "syncs");
      await phone.sync();
    },
    play: () => {
      const phone = this.#pick(this.#phones);
      const url = this.#pick([...phone.feeds.keys()]);
      if (url === undefined) return;
      this.#say(phone.key, "plays", url);
      const episode = `https://media.example/${podcastOf(url)}/${this.#below(EPISODES)}`;
      phone.play(url, episode, Math.floor(this.#now / 1_000) * 1_000, this.log.length);
    },
    subscribe: () => {
      const phone = this.#pick(this.#phones);
      phone.subscribe(this.#anyUrl());
      this.#say(phone.key, "has now", [...phone.feeds.keys()]);
    },
    unsubscribe: () => {
      const phone = this.#pick(this.#phones);
      const url = this.#pick([...phone.feeds.keys()]);
      if (url === undefined || this.#chance(2)) return;
      phone.unsubscribe(url);
      this.#say(phone.key, "unsubscribes", url);
    },
    replaceByHand: () => {
      const phone = this.#pick(this.#phones);
      const url = [...phone.feeds.keys()].find((each) => this.#world.end(each) !== each);
      if (url === undefined || phone.feeds.has(this.#world.end(url))) return;
      phone.subscribe(this.#world.end(url));
      if (!this.#chance(3)) phone.unsubscribe(url);
      this.#say(phone.key, "has replaced", url, "by", this.#world.end(url));
    },
    follow: () => {
      for (const phone of this.#phones.filter(({ kind }) => kind.follows))
        for (const url of [...phone.feeds.keys()]) {
          const to = this.#world.end(url);
          if (to === url || !this.#world.isAlive(to)) continue;
          phone.follow(url, to, this.#chance(2));
          if (!this.#seen.has(to)) phone.unnoticed.add(podcastOf(url));
          this.#say(phone.key, "follows", url, "to", to);
        }
    },
    reinstall: () => {
      const phone = this.#pick(this.#phones);
      if (!this.#chance(3)) return;
      phone.reinstall();
      this.#say(phone.key, "is installed again");
    },
    newToken: () => {
      const phone = this.#pick(this.#phones);
      if (!this.#chance(3) || phone.kind.isWhole) return;
      phone.signIn(`${phone.key}x`);
      this.#say(phone.key, "has a new token");
    },
    add: async () => {
      const url = this.#anyUrl();
      if (!(await this.#listedPodcasts()).has(podcastOf(url))) await this.#addByPerson(url);
    },
    remove: async () => {
      const subscription = this.#pick(await this.#listed());
      if (subscription === undefined || !this.#chance(3)) return;
      this.#say("the person removes", subscription.feedUrl);
      await this.#change({ kind: "remove", id: subscription.id });
    },
    move: async () => {
      const subscription = this.#pick(await this.#listed());
      if (subscription === undefined) return;
      const { feedUrl } = subscription;
      const to = this.#world.newUrl(podcastOf(feedUrl));
      this.#world.set(feedUrl, this.#pick([{ to }, { to }, { to }, "dead", "feed"] as const));
      this.#say("the person moves", feedUrl, "to", to, this.#world.stateOf(feedUrl));
      await this.#rename(subscription, to);
    },
    undo: async () => {
      const subscription = this.#pick(await this.#listed());
      const [former] = subscription?.former_feed_urls ?? [];
      if (subscription === undefined || former === undefined) return;
      if (this.#chance(2)) this.#world.set(former, "feed");
      this.#say("the person moves", subscription.feedUrl, "back to", former, this.#world.stateOf(former));
      await this.#rename(subscription, former);
      this.#others.add(subscription.feedUrl);
    },
    forget: async () => {
      const subscription = this.#pick(await this.#listed());
      if (subscription?.former_feed_urls === undefined) return;
      this.#say("the person forgets", subscription.former_feed_urls);
      await this.#change({ kind: "update", id: subscription.id, former_feed_urls: [] });
      for (const url of subscription.former_feed_urls) this.#others.add(url);
    },
    merge: async () => {
      const listed = await this.#listed();
      for (const [index, one] of listed.entries()) {
        const other = listed.slice(index + 1).find(({ feedUrl }) => podcastOf(feedUrl) === podcastOf(one.feedUrl));
        if (other === undefined) continue;
        const [from, into] = this.#chance(2) ? [one, other] : [other, one];
        this.#say("the person merges", from.feedUrl, "into", into.feedUrl);
        await this.#change({ kind: "remove", id: from.id, mergeInto: into.id });
        return;
      }
    },
    redirect: async () => {
      const subscription = this.#pick(await this.#listed());
      if (subscription === undefined || this.#world.stateOf(subscription.feedUrl) !== "feed") return;
      const to = this.#world.newUrl(podcastOf(subscription.feedUrl));
      this.#world.set(subscription.feedUrl, { to });
      this.#say("the publisher redirects", subscription.feedUrl, "to", to);
      if (this.#chance(2)) await this.#fetch(subscription);
    },
    loop: async () => {
      const subscription = this.#pick(await this.#listed());
      const [former] = subscription?.former_feed_urls ?? [];
      if (subscription === undefined || former === undefined) return;
      this.#world.set(subscription.feedUrl, { to: former });
      this.#say("the publisher redirects", subscription.feedUrl, "back to", former);
    },
    stop: () => {
      const url = this.#pick(this.#world.urls().filter((each) => typeof this.#world.stateOf(each) === "object"));
      if (url === undefined) return;
      this.#world.set(url, this.#pick(["dead", "feed"] as const));
      this.#say("stops to redirect:", url, this.#world.stateOf(url));
    },
    fetch: async () => {
      const subscription = this.#pick(await this.#listed());
      if (subscription !== undefined) await this.#fetch(subscription);
    },
    followByServer: async () => {
      for (const subscription of await this.#listed()) await this.#followByServer(subscription);
    },
    look: () => this.#lookAll(),
    wait: () => {
      this.#now += 40 * HOUR_MS;
    },
  };

  #anyUrl(): string {
    const podcast = this.#below(PODCASTS);
    const known = this.#world.urls(podcast).filter((url) => this.#world.isAlive(url));
    if (known.length === 0) return this.#world.newUrl(podcast);
    const url = this.#pick(known);
    return this.#chance(2) ? url : this.#world.end(url);
  }

  async #addByPerson(feedUrl: string): Promise<void> {
    this.#say("the person adds", feedUrl);
    this.#ids += 1;
    await this.#change({ kind: "add", id: idOf(this.#ids), feedUrl, normalizedUrl: normalize(feedUrl) });
  }

  async #rename({ id, feedUrl: from }: Subscription, feedUrl: string): Promise<void> {
    await this.#change({ kind: "update", id, feedUrl, normalizedUrl: normalize(feedUrl) });
    this.#seen.set(from, from);
    this.#seen.set(feedUrl, feedUrl);
  }

  // What the server does by itself

  async #fetch({ feedUrl, former_feed_urls = [] }: Subscription): Promise<void> {
    if (!this.#world.isAlive(feedUrl)) return;
    const url = this.#world.end(feedUrl);
    // It knows only where the feed leads now.
    const before = this.#seen.get(feedUrl) ?? feedUrl;
    if (before !== feedUrl && !former_feed_urls.includes(before)) this.#seen.delete(before);
    this.#seen.set(url, url);
    this.#seen.set(feedUrl, url);
    const to = url === feedUrl ? {} : { to: { feed: keyOf(url), url } };
    this.#say("the server fetches", feedUrl, to.to?.url ?? "");
    await this.#move({ kind: "sight", feed: keyOf(feedUrl), ...to });
  }

  async #followByServer(subscription: Subscription): Promise<void> {
    const { feedUrl } = subscription;
    const url = this.#world.end(feedUrl);
    if (url === feedUrl || !this.#world.isAlive(url)) return;
    await this.#fetch(subscription);
    this.#say("the server follows", feedUrl, "to", url);
    await this.#move({ kind: "follow", feed: keyOf(feedUrl), to: { feed: keyOf(url), url } });
  }

  async #lookAll(): Promise<void> {
    this.#say("the server looks");
    for (const { feedUrl, former_feed_urls = [] } of await this.#listed()) {
      for (const url of this.#world.urls(podcastOf(feedUrl))) {
        if (url === feedUrl) continue;
        const seen: Look = this.#world.meet(url, feedUrl) ? "leads" : "elsewhere";
        if (former_feed_urls.includes(url)) this.#seen.set(url, seen === "leads" ? feedUrl : url);
        const look = !this.#isResting && this.#chance(5) ? "none" : seen;
        await this.#move({ kind: "look", feed: keyOf(url), target: keyOf(feedUrl), look });
      }
    }
  }

  // The end

  async rest(): Promise<void> {
    this.#say("--- rest");
    this.#isResting = true;
    for (const subscription of await this.#listed()) await this.#followByServer(subscription);
    for (let pass = 0; pass < 6; pass += 1) {
      await this.#lookAll();
      for (const phone of this.#phones) {
        this.#now += 120_000;
        this.#say(phone.key, "syncs");
        await phone.sync();
      }
      this.#now += 37 * HOUR_MS;
    }
  }

  async check(): Promise<void> {
    const listed = await this.#listed();
    this.#say(
      "listed",
      listed.map(({ feedUrl }) => feedUrl),
    );
    const podcasts = new Set(listed.map(({ feedUrl }) => podcastOf(feedUrl)));
    const actions = await collect(this.#server.everyAction(this.#user));
    for (const phone of this.#phones) {
      this.#say(phone.key, "has", [...phone.feeds.keys()]);
      const surplus = [...phone.podcasts].filter((podcast) => !podcasts.has(podcast));
      // It may have followed a redirect that the server has never looked at.
      const isKnown = (podcast: number) =>
        phone.urlsOf(podcast).every((url) => this.#seen.has(url) && !this.#others.has(url));
      const isMissing = (podcast: number) => !phone.podcasts.has(podcast) && !phone.doubtful.has(podcast);
      const missing = [...podcasts].filter((podcast) => isMissing(podcast) && !phone.unnoticed.has(podcast));
      if (surplus.some(isKnown)) this.#fault("no convergence: not listed", phone.key, surplus);
      if (missing.length > 0) this.#fault("no convergence: not on the phone", phone.key, missing);
      for (const { feedUrl } of listed) {
        if (listed.filter((each) => podcastOf(each.feedUrl) === podcastOf(feedUrl)).length === 1)
          this.#checkPodcast(phone, feedUrl, actions);
      }
      if (phone.kind.isWhole) continue;
      const { add, remove } = await phone.poll();
      if (add.length + remove.length > 0) this.#fault("not quiet in the end", phone.key, { add, remove });
    }
    this.#checkActions(listed, actions);
  }

  #checkPodcast(phone: Phone, feedUrl: string, actions: readonly StoredAction[]): void {
    const podcast = podcastOf(feedUrl);
    const urls = phone.urlsOf(podcast);
    if (urls.length === 0) return;
    const isDead = !urls.some((url) => this.#world.isAlive(url) || this.#world.meet(url, feedUrl));
    if (isDead && this.#world.isAlive(feedUrl)) this.#fault("has only dead URLs", phone.key, urls);
    for (const action of actions) {
      if (action.podcast !== feedUrl) continue;
      const { episode, actedAt, position } = action;
      const has = urls.some((url) => (phone.feeds.get(url)?.get(episode)?.actedAt ?? 0) >= actedAt.getTime());
      if (!has && !phone.forgotten.has(`${episode} ${position}`))
        this.#fault("position is missing on a phone", phone.key, episode, position);
    }
  }

  #checkActions(listed: readonly Subscription[], actions: readonly StoredAction[]): void {
    for (const [key, { position }] of this.#played) {
      const [of, episode = ""] = key.split(" ");
      const stored = actions.filter((action) => action.episode === episode);
      if (!stored.some((action) => action.position === position)) this.#fault("position is lost", key, position);
      const own = listed.filter(({ feedUrl }) => podcastOf(feedUrl) === Number(of)).map(({ feedUrl }) => feedUrl);
      const current = stored.find((action) => action.position === position)?.podcast ?? "";
      if (own.length === 1 && this.#seen.get(current) === own[0] && !this.#others.has(current) && current !== own[0])
        this.#fault("position is under another identity", current, position);
    }
  }
}

const ALL = [
  ...(["sync", "play", "subscribe", "unsubscribe", "replaceByHand", "follow", "reinstall", "newToken"] as const),
  ...(["add", "remove", "move", "undo", "forget", "merge", "redirect", "loop", "stop", "fetch"] as const),
  ...(["followByServer", "look", "wait"] as const),
];

function normalize(url: string): string {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : "";
}

function keyOf(url: string): string {
  return feedKeyHex(normalize(url));
}
