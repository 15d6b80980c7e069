import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres } from "../test/support/postgres.ts";
import { callServer, type HttpResponse } from "../test/support/server.ts";
import { type Clients, killRepeatedly } from "./kill.ts";
import { type ReliabilityTest, runAll } from "./support/run.ts";
import { postgresTarget, sqliteTarget } from "./support/target-db.ts";

const APPS = 6;
const FEEDS_PER_UPLOAD = 5;
const ACTIONS_PER_UPLOAD = 20;
const RETRY_MS = 20;
const MAX_TRIES = 50;
const NEXTCLOUD = "/index.php/apps/gpoddersync";

export const killApps: ReliabilityTest = {
  name: "kill -9 while apps sync",
  promises: ["P1"],
  async check(run) {
    const database = await startPostgres([], run.onEnd);
    const count = run.isQuick ? 3 : 20;
    return runAll([
      killRepeatedly(run, sqliteTarget(`${run.folder}/earmark.db`), syncingApps, { count }),
      killRepeatedly(run, await postgresTarget(database), syncingApps, { count, database }),
    ]);
  },
  control: {
    name: "the write-ahead log is lost",
    check: (run) =>
      killRepeatedly(run, sqliteTarget(`${run.folder}/earmark.db`), syncingApps, { count: 1, losesLog: true }),
  },
};

function syncingApps(): Clients {
  const apps = Array.from({ length: APPS }, (_, number) => new SyncingApp(number));
  const use = async (app: SyncingApp, port: number, isStopped: () => boolean) => {
    while (!isStopped()) if (!(await app.sync(port, true))) await sleep(RETRY_MS);
  };
  return {
    confirmed: () => apps.reduce((sum, { confirmed }) => sum + confirmed, 0),
    use: ({ port }, isStopped) => Promise.all(apps.map((app) => use(app, port, isStopped))),
    check: async (_db, port) => findLosses(await readAll(port), apps),
    async end(port) {
      // In the second round, each app receives what the others have uploaded in the first.
      for (const app of [...apps, ...apps])
        for (let tries = 1; !(await app.sync(port, false)); tries += 1)
          if (tries === MAX_TRIES) return ["an app cannot sync"];
      const { feeds, positions } = await readAll(port);
      const differ = apps.filter(
        (app) =>
          [...feeds].sort().join() !== [...app.feeds].sort().join() ||
          [...positions].some(([episode, at]) => app.positions.get(episode) !== at),
      );
      const differences = differ.map(({ name }) => `${name} has other feeds or positions than the server`);
      return [...differences, ...apps.flatMap(({ violations }) => violations)];
    },
  };
}

interface Content {
  readonly feeds: Set<string>;
  readonly positions: Map<string, number>;
}

/** What the server has, as a new device sees it. */
async function readAll(port: number): Promise<Content> {
  const get = async (path: string) => {
    for (let tries = 1; ; tries += 1) {
      const response = await callServer(port, "GET", path);
      if (response.status === 200) return response;
      if (tries === MAX_TRIES) throw new Error(`${path} returned ${response.status}: ${response.text}`);
      await sleep(10 * RETRY_MS);
    }
  };
  const feeds = new Set((await get("/subscriptions/any.txt")).text.split("\n").filter(Boolean));
  return { feeds, positions: positionsOf(await get("/api/2/episodes/any.json?since=0")) };
}

function positionsOf({ json }: HttpResponse): Map<string, number> {
  const actions: readonly { episode: string; position: number }[] = json.actions;
  return new Map(actions.map(({ episode, position }) => [episode, position]));
}

/** Confirmed changes that the server does not have. */
function findLosses({ feeds, positions }: Content, apps: readonly SyncingApp[]): string[] {
  const lost = apps.flatMap(({ added }) => [...added].filter((url) => !feeds.has(url)));
  const back = apps.flatMap(({ removed }) => [...removed].filter((url) => feeds.has(url)));
  const forgotten = apps.flatMap(({ played }) => [...played].filter(([url, at]) => (positions.get(url) ?? -1) < at));
  const counts = { "feeds are lost": lost, "removed feeds came back": back, "positions are lost": forgotten };
  return Object.entries(counts).flatMap(([what, { length }]) => (length === 0 ? [] : [`${length} ${what}`]));
}

type Kind = "feeds" | "actions";

interface Changes {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

interface Play {
  readonly episode: string;
  readonly position: number;
}

/**
 * A podcast app that syncs again and again, repeats what was not confirmed and keeps its state while the server is
 * killed. It removes only feeds that it has added, so that the result does not depend on the order of several apps.
 */
class SyncingApp {
  readonly name: string;
  readonly feeds = new Set<string>();
  readonly positions = new Map<string, number>();
  /** Own feeds that the server must have, and those that it must not have. */
  readonly added = new Set<string>();
  readonly removed = new Set<string>();
  /** Positions that the server must have, or later ones. */
  readonly played = new Map<string, number>();
  readonly violations: string[] = [];
  confirmed = 0;
  readonly #paths: Readonly<Record<Kind, Readonly<Record<"GET" | "POST", string>>>>;
  /** Kasts asks for one second more than it was told. */
  readonly #offset: number;
  /** Uploads that are not confirmed yet. */
  #changes: Changes | undefined;
  #plays: readonly Play[] | undefined;
  readonly #told = { feeds: 0, actions: 0 };
  #count = 0;

  constructor(number: number) {
    this.name = `app-${number}`;
    this.#offset = number % 2;
    const [feeds, actions] = [`/api/2/subscriptions/any/${this.name}.json`, "/api/2/episodes/any.json"];
    const gpodder = { feeds: { GET: feeds, POST: feeds }, actions: { GET: actions, POST: actions } };
    const nextcloud = {
      feeds: { GET: `${NEXTCLOUD}/subscriptions`, POST: `${NEXTCLOUD}/subscription_change/create` },
      actions: { GET: `${NEXTCLOUD}/episode_action`, POST: `${NEXTCLOUD}/episode_action/create` },
    };
    this.#paths = number % 3 === 0 ? nextcloud : gpodder;
  }

  /** Uploads something new if `isActive`. False if a response is missing or a refusal. */
  async sync(port: number, isActive: boolean): Promise<boolean> {
    const received = await this.#send(port, "GET", "feeds");
    if (received === undefined) return false;
    for (const url of received.json.add) this.feeds.add(url);
    for (const url of received.json.remove) this.feeds.delete(url);
    if (isActive) this.#changes ??= this.#nextChanges();
    if (this.#changes !== undefined && !(await this.#uploadChanges(port, this.#changes))) return false;
    const actions = await this.#send(port, "GET", "actions");
    if (actions === undefined) return false;
    for (const [episode, position] of positionsOf(actions)) this.positions.set(episode, position);
    if (isActive) this.#plays ??= this.#nextPlays();
    return this.#plays === undefined || this.#uploadPlays(port, this.#plays);
  }

  /** Undefined without a response with status 200. */
  async #send(port: number, method: "GET" | "POST", kind: Kind, body?: object): Promise<HttpResponse | undefined> {
    const told = this.#told[kind];
    const since = told === 0 ? 0 : told + this.#offset;
    const path = `${this.#paths[kind][method]}${method === "GET" ? `?since=${since}` : ""}`;
    const sent = {
      headers: { "User-Agent": this.name },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const response = await callServer(port, method, path, sent).catch(() => undefined);
    if (response === undefined) return undefined;
    const { status, json, text } = response;
    if (status === 200) {
      const { timestamp } = json;
      if (timestamp < told) this.violations.push(`${this.name} was told ${told}, then ${timestamp} for ${kind}`);
      this.#told[kind] = timestamp;
      return response;
    }
    // A busy machine, or a database that is unavailable.
    const isExpected = [408, 503].includes(status) && typeof json?.message === "string";
    if (!isExpected) this.violations.push(`${method} ${path} returned ${status}: ${text.slice(0, 200)}`);
    return undefined;
  }

  async #uploadChanges(port: number, { add, remove }: Changes): Promise<boolean> {
    if ((await this.#send(port, "POST", "feeds", { add, remove })) === undefined) return false;
    for (const url of add) for (const feeds of [this.feeds, this.added]) feeds.add(url);
    for (const url of remove) this.feeds.delete(url);
    for (const url of remove) this.removed.add(url);
    this.confirmed += add.length + remove.length;
    this.#changes = undefined;
    return true;
  }

  /** New feeds, and every third time the removal of some of the feeds so far. */
  #nextChanges(): Changes {
    this.#count += 1;
    const prefix = `https://feeds.example/${this.name}/${this.#count}`;
    const add = Array.from({ length: FEEDS_PER_UPLOAD }, (_, index) => `${prefix}/${index}`);
    const remove = this.#count % 3 === 0 ? [...this.added].slice(-2) : [];
    for (const url of remove) this.added.delete(url);
    return { add, remove };
  }

  async #uploadPlays(port: number, plays: readonly Play[]): Promise<boolean> {
    if ((await this.#send(port, "POST", "actions", plays)) === undefined) return false;
    for (const { episode, position } of plays)
      for (const positions of [this.played, this.positions]) positions.set(episode, position);
    this.confirmed += plays.length;
    this.#plays = undefined;
    return true;
  }

  /** Later positions of the same episodes, and new episodes. */
  #nextPlays(): Play[] {
    const podcast = `https://feeds.example/${this.name}`;
    const timestamp = new Date(Date.UTC(2026, 0, 1) + this.#count * 1_000).toISOString().slice(0, 19);
    const play = { podcast, action: "play", position: this.#count, started: 0, total: 10_000, timestamp };
    return Array.from({ length: ACTIONS_PER_UPLOAD }, (_, index) => {
      const number = index % 2 === 0 ? index : `${this.#count}-${index}`;
      return { ...play, episode: `https://media.example/${this.name}/${number}.mp3` };
    });
  }
}
