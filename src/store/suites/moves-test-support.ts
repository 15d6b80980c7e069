import assert from "node:assert/strict";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { UploadedAction } from "../../apps/episode-actions.ts";
import { feedKeyHex, readFeedUrl } from "../../lists/feed-url.ts";
import { toAddition } from "../../lists/imports.ts";
import type { Look } from "../../lists/moves.ts";
import type { Addition, Change, MoveChange, Outcome, Subscription } from "../../lists/subscription.ts";
import type { Store } from "../shared/contract.ts";
import { createAppContext, play } from "./apps-test-support.ts";

export const HOUR_MS = 3_600_000;
export const QUIET = { add: [], remove: [] };

export function normalize(url: string): string {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : assert.fail(url);
}

function keyOf(url: string): string {
  return feedKeyHex(normalize(url));
}

/** A new user's list, with what a person, apps and the server do to it. */
export type Scene = ReturnType<ReturnType<typeof createMoveContext>>;

export function createMoveContext(store: Store) {
  const context = createAppContext(store);
  const { sync, newUser, at, advance } = context;

  return () => {
    const user = newUser();
    const caller = asUser(user);
    const change = async (...changes: Change[]): Promise<readonly Outcome[]> => {
      advance(1_000);
      return (await store.change(caller, changes, at())).outcomes;
    };
    const move = (moved: MoveChange) => store.move(caller, moved, at());
    const items = async () => (await store.page(user, { offset: 0, size: 1_000 })).items;
    const find = async (feedUrl: string): Promise<Subscription> =>
      (await items()).find((item) => item.feedUrl === feedUrl) ?? assert.fail(`${feedUrl} is not listed`);
    const person = {
      add: async (feedUrl: string, details: Partial<Addition> = {}) => {
        const [outcome] = await change({ ...(toAddition(feedUrl) as Addition), ...details });
        return outcome;
      },
      move: async (from: string, feedUrl: string) => {
        const { id } = await find(from);
        const [outcome] = await change({ kind: "update", id, feedUrl, normalizedUrl: normalize(feedUrl) });
        return outcome;
      },
      forget: async (feedUrl: string) => change({ kind: "update", id: (await find(feedUrl)).id, former_feed_urls: [] }),
      remove: async (feedUrl: string) => change({ kind: "remove", id: (await find(feedUrl)).id }),
      merge: async (from: string, into: string) => {
        const [{ id }, target] = [await find(from), await find(into)];
        const [outcome] = await change({ kind: "remove", id, mergeInto: target.id });
        return outcome;
      },
    };
    const server = {
      /** It has looked where a former URL leads. */
      look: async (from: string, current: string, look: Look) => {
        await move({ kind: "look", feed: keyOf(from), target: keyOf(current), look });
      },
      sight: async (from: string, to?: string) => {
        const sighted = to === undefined ? {} : { to: { feed: keyOf(to), url: to } };
        await move({ kind: "sight", feed: keyOf(from), ...sighted });
      },
      follow: async (from: string, to: string) => {
        await move({ kind: "follow", feed: keyOf(from), to: { feed: keyOf(to), url: to } });
      },
    };
    const list = async () => (await items()).map(({ feedUrl }) => feedUrl);
    const app = (key: string, agent?: string) => new App(context, user, key, agent);
    return { user, caller, change, items, find, person, server, list, app, sync, at, advance };
  };
}

type Context = ReturnType<typeof createAppContext>;

/** An app that keeps the timestamps that it gets. */
export class App {
  readonly #context: Context;
  readonly #user: UserId;
  readonly #installation;
  since = 0;
  actionsSince = 0;

  constructor(context: Context, user: UserId, key: string, agent?: string) {
    this.#context = context;
    this.#user = user;
    this.#installation = { key, device: key, app: agent };
  }

  /** Without `since`, since its last poll. */
  async poll(since = this.since) {
    this.#context.advance(3_000);
    const { add, remove, timestamp } = await this.#context.feeds(this.#user, this.#installation, since);
    this.since = timestamp;
    return { add, remove };
  }

  async upload(changes: { readonly add?: readonly string[]; readonly remove?: readonly string[] }) {
    this.#context.advance(3_000);
    const { add = [], remove = [] } = changes;
    const { sync, at } = this.#context;
    const done = await sync.changeFeeds(asUser(this.#user), this.#installation, { add, remove }, at());
    this.since = done.timestamp;
    return done.rewritten;
  }

  async put(...urls: string[]) {
    this.#context.advance(3_000);
    const { sync, at } = this.#context;
    await sync.replaceFeeds(asUser(this.#user), this.#installation, urls, at());
  }

  /** Plays episodes of a podcast up to a second. */
  async play(podcast: string, ...played: (readonly [episode: string, position: number])[]) {
    const actions = played.map(([episode, position]) => this.#toPlay(podcast, episode, position));
    this.actionsSince = (await this.#context.upload(this.#user, this.#installation, ...actions)).timestamp;
  }

  #toPlay(podcast: string, episode: string, position: number): UploadedAction {
    this.#context.advance(3_000);
    return play(episode, position, {
      podcast,
      actedAt: new Date(Math.floor(this.#context.at().getTime() / 1_000) * 1_000),
    });
  }

  /** What it gets of actions: URL of the podcast, episode, position. */
  async actions(podcast?: string, since = this.actionsSince) {
    this.#context.advance(3_000);
    const { actions, timestamp } = await this.#context.actions(this.#user, this.#installation, since, podcast);
    if (podcast === undefined) this.actionsSince = timestamp;
    return actions.map((action) => [action.podcast, action.episode.split("/").at(-1), action.position]);
  }
}
