import assert from "node:assert/strict";
import { test } from "node:test";
import { type FeedUrl, type Holding, type ListedFeed, Moves } from "./moves.ts";

const HOUR_MS = 3_600_000;
const PHONE = "phone";

/** A list in memory, whose feeds are keys and URLs in one. Each call of `open` is a transaction. */
function createList(...feeds: string[]) {
  const listed = new Map<string, ListedFeed>(
    feeds.map((feedUrl, index) => [feedUrl, { feedUrl, sequence: index + 1 }]),
  );
  const list = { sequence: feeds.length, find: (feed: string) => listed.get(feed) };
  const urls = new Map<string, FeedUrl>();
  const holdings = new Map<string, Holding>();
  const progress = new Map([[PHONE, { client: PHONE, sequence: list.sequence, from: 0 }]]);
  const open = <T>(work: (moves: Moves) => T, at = 0): { result: T; resends: string[] } => {
    const state = { urls: [...urls.values()], holdings: [...holdings.values()], refused: [] };
    const moves = new Moves(list, { ...state, progress: [...progress.values()], uploaded: [], readded: [] }, at);
    const result = work(moves);
    for (const feed of moves.changedUrls) {
      const row = moves.urlRow(feed);
      if (row === undefined) urls.delete(feed);
      else urls.set(feed, row);
    }
    for (const [client, changed] of moves.changedHoldings)
      for (const feed of changed) {
        const holding = moves.holding(client, feed);
        if (holding === undefined) holdings.delete(`${client} ${feed}`);
        else holdings.set(`${client} ${feed}`, holding);
      }
    return { result, resends: [...moves.resends.values()].map(({ client }) => client) };
  };
  const rename = (from: string, to: string) => {
    const { result } = open((moves) => {
      list.sequence += 1;
      return moves.renamed(from, to, to);
    });
    listed.set(to, { feedUrl: to, sequence: listed.get(from)?.sequence ?? 0 });
    listed.delete(from);
    return result;
  };
  const poll = (client: string) => {
    const from = progress.get(client)?.sequence ?? 0;
    const told = open((moves) => moves.tell(client, from === 0 ? 0 : 1, from));
    progress.set(client, { client, sequence: list.sequence, from });
    const { add, remove } = told.result;
    return { add, remove, resends: told.resends };
  };
  return { list, urls, open, rename, poll };
}

const QUIET = { add: [], remove: [], resends: [] };

test("moves: renamed → the old URL finds the feed, and nobody is told before a look", () => {
  const { open, rename, poll } = createList("a");
  rename("a", "b");
  assert.equal(open((moves) => moves.findNamed("a")).result, "b");
  assert.equal(open((moves) => moves.formerUrls("b")).result, "a");
  assert.deepEqual(poll(PHONE), QUIET);
});

test("moves: a look at a feed that has moved on → does not count", () => {
  const { open, rename, poll } = createList("a");
  rename("a", "b");
  rename("b", "c");
  open((moves) => moves.looked("a", "b", "elsewhere"));
  assert.deepEqual(poll(PHONE), QUIET);
  open((moves) => moves.looked("a", "c", "elsewhere"));
  assert.deepEqual(poll(PHONE), { add: ["c"], remove: ["a"], resends: [PHONE] });
  assert.deepEqual(poll(PHONE), QUIET);
});

test("moves: looks without an answer → repeated, each later than the one before, up to a verdict", () => {
  const { open, rename, urls } = createList("a");
  rename("a", "b");
  const waits: number[] = [];
  let at = 0;
  while (urls.get("a")?.leads === "pending" && waits.length < 50) {
    open((moves) => moves.looked("a", "b", "none"), at);
    const { lookAt = 0 } = urls.get("a") ?? {};
    waits.push(lookAt - at);
    at = lookAt;
  }
  const retries = waits.slice(0, -1);
  assert.deepEqual(
    retries,
    [...retries].sort((one, other) => one - other),
  );
  assert.ok(at > 72 * HOUR_MS, "a URL without an answer is not given up within three days");
  assert.equal(urls.get("a")?.leads, "no");
});

test("moves: a URL that leads here, looks without an answer → still leads here", () => {
  const { open, rename, urls } = createList("a");
  rename("a", "b");
  open((moves) => moves.looked("a", "b", "leads"));
  for (let day = 0; day < 30; day += 1) open((moves) => moves.looked("a", "b", "none"), day * 24 * HOUR_MS);
  assert.equal(urls.get("a")?.leads, "yes");
});

test("moves: an app adds the current URL and removes the old one → it has the current one", () => {
  const { open, rename } = createList("a");
  rename("a", "b");
  const replace = (moves: Moves) => {
    moves.hold(PHONE, "b", "b");
    return moves.removalBy(PHONE, "a");
  };
  assert.equal(open(replace).result, "nothing");
  assert.equal(open((moves) => moves.urlFor(PHONE, "b")).result, "b");
  assert.deepEqual(open((moves) => moves.removalBy(PHONE, "b")).result, { kind: "remove", feed: "b" });
});

test("moves: more than fifty URLs of a feed → the oldest are forgotten, with what apps had of them", () => {
  const { open, rename, urls } = createList("v0");
  for (let index = 0; index < 60; index += 1) rename(`v${index}`, `v${index + 1}`);
  assert.equal(urls.size, 50);
  assert.equal(open((moves) => moves.findFor(PHONE, "v0")).result, undefined);
  assert.equal(open((moves) => moves.findNamed("v40")).result, "v60");
});
