import { collect } from "../../../test/support/app-clients.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { Installation } from "../../apps/app-store.ts";
import type { UploadedAction } from "../../apps/episode-actions.ts";
import { AppSync } from "../../apps/sync.ts";
import type { Store } from "../shared/contract.ts";

export const START = Date.parse("2026-01-02T03:04:05.678Z");
export const HOUR = 3_600;

export const A: Installation = { key: "a", device: "phone" };
export const B: Installation = { key: "b", device: "desk" };
export const url = (name: string) => `https://feeds.example/${name}`;

export function play(
  episode: string,
  position: number | undefined,
  more: Partial<UploadedAction> = {},
): UploadedAction {
  return {
    podcast: url("a"),
    episode: `https://media.example/${episode}`,
    guid: undefined,
    device: undefined,
    kind: "play",
    actedAt: new Date(START),
    position,
    started: 0,
    total: 100,
    ...more,
  };
}

let users = 3_000_000;

/** Requests of clients, with a clock that only `advance` moves. */
export function createAppContext(store: Store) {
  const sync = new AppSync(store);
  const newUser = (): UserId => {
    users += 1;
    return users;
  };
  let now = START;
  const at = () => new Date(now);
  const advance = (ms: number) => {
    now += ms;
  };
  const add = (user: UserId, installation: Installation, ...urls: string[]) =>
    sync.changeFeeds(asUser(user), installation, { add: urls, remove: [] }, at());
  const remove = (user: UserId, installation: Installation, ...urls: string[]) =>
    sync.changeFeeds(asUser(user), installation, { add: [], remove: urls }, at());
  const feeds = async (user: UserId, installation: Installation, since: number) => {
    const changes = await sync.feedsSince(asUser(user), installation, since, at());
    const [add, remove] = [await collect(changes.add), await collect(changes.remove)];
    return { add, remove, timestamp: await changes.timestamp() };
  };
  const actions = async (user: UserId, installation: Installation, since: number, podcast?: string) => {
    const { pages, timestamp } = await sync.actionsSince(asUser(user), installation, since, podcast, at());
    return { actions: await collect(pages), timestamp };
  };
  const upload = (user: UserId, installation: Installation, ...some: UploadedAction[]) =>
    sync.addActions(asUser(user), installation, some, at());
  const listed = async (user: UserId) =>
    (await store.page(user, { offset: 0, size: 1_000 })).items.map(({ feedUrl }) => feedUrl);
  const positions = async (user: UserId, installation: Installation, since: number) =>
    (await actions(user, installation, since)).actions.map(({ episode, position }) => [
      episode.split("/").at(-1),
      position,
    ]);

  return { sync, newUser, at, advance, add, remove, feeds, actions, upload, listed, positions };
}
