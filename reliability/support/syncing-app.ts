import { callServer, type HttpResponse } from "../../test/support/server.ts";

const FEEDS_PER_UPLOAD = 5;
const ACTIONS_PER_UPLOAD = 20;
const NEXTCLOUD = "/index.php/apps/gpoddersync";

/** The API that an app speaks. */
interface Dialect {
  readonly feeds: string;
  readonly changeFeeds: string;
  readonly actions: string;
  readonly addActions: string;
}

interface Changes {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

interface Play {
  readonly episode: string;
  readonly position: number;
}

/**
 * A podcast app that syncs again and again, repeats what was not acknowledged and keeps its state while the server is
 * killed. It removes only feeds that it has added, so that the result does not depend on the order of several apps.
 */
export class SyncingApp {
  readonly #name: string;
  readonly #dialect: Dialect;
  /** Kasts asks for one second more than it was told. */
  readonly #offset: number;
  readonly feeds = new Set<string>();
  readonly positions = new Map<string, number>();
  /** Own feeds that the server must have, and those that it must not have. */
  readonly added = new Set<string>();
  readonly removed = new Set<string>();
  /** Positions that the server must have, or later ones. */
  readonly played = new Map<string, number>();
  readonly violations: string[] = [];
  acknowledged = 0;
  /** Uploads that are not acknowledged yet. */
  #changes: Changes | undefined;
  #plays: readonly Play[] | undefined;
  #told = { feeds: 0, actions: 0 };
  #count = 0;

  constructor(number: number) {
    this.#name = `app-${number}`;
    this.#offset = number % 2;
    this.#dialect =
      number % 3 === 0
        ? {
            feeds: `${NEXTCLOUD}/subscriptions`,
            changeFeeds: `${NEXTCLOUD}/subscription_change/create`,
            actions: `${NEXTCLOUD}/episode_action`,
            addActions: `${NEXTCLOUD}/episode_action/create`,
          }
        : {
            feeds: `/api/2/subscriptions/any/${this.#name}.json`,
            changeFeeds: `/api/2/subscriptions/any/${this.#name}.json`,
            actions: "/api/2/episodes/any.json",
            addActions: "/api/2/episodes/any.json",
          };
  }

  /** Uploads something new if `isActive`. False if a response is missing or a refusal. */
  async sync(port: number, isActive: boolean): Promise<boolean> {
    return (
      (await this.#receiveFeeds(port)) &&
      (await this.#changeFeeds(port, isActive)) &&
      (await this.#receiveActions(port)) &&
      (await this.#addPlays(port, isActive))
    );
  }

  async #send(port: number, method: string, path: string, body?: string): Promise<HttpResponse | undefined> {
    const headers = { "User-Agent": this.#name };
    const sent = { headers, ...(body === undefined ? {} : { body }) };
    const response = await callServer(port, method, path, sent).catch(() => undefined);
    if (response === undefined || response.status === 200) return response;
    // A busy machine or a database that is away; everything else is wrong.
    const isExpected = [408, 503].includes(response.status) && typeof response.json?.message === "string";
    if (!isExpected)
      this.violations.push(`${method} ${path} returned ${response.status}: ${response.text.slice(0, 200)}`);
    return undefined;
  }

  #note(kind: "feeds" | "actions", { timestamp }: { readonly timestamp: number }): void {
    if (timestamp < this.#told[kind])
      this.violations.push(`${this.#name} was told ${this.#told[kind]}, then ${timestamp} for ${kind}`);
    this.#told[kind] = timestamp;
  }

  #since(kind: "feeds" | "actions"): string {
    const told = this.#told[kind];
    return `?since=${told === 0 ? 0 : told + this.#offset}`;
  }

  async #receiveFeeds(port: number): Promise<boolean> {
    const response = await this.#send(port, "GET", this.#dialect.feeds + this.#since("feeds"));
    if (response === undefined) return false;
    for (const url of response.json.add) this.feeds.add(url);
    for (const url of response.json.remove) this.feeds.delete(url);
    this.#note("feeds", response.json);
    return true;
  }

  async #changeFeeds(port: number, isActive: boolean): Promise<boolean> {
    if (this.#changes === undefined && isActive) this.#changes = this.#nextChanges();
    if (this.#changes === undefined) return true;
    const { add, remove } = this.#changes;
    const response = await this.#send(port, "POST", this.#dialect.changeFeeds, JSON.stringify({ add, remove }));
    if (response === undefined) return false;
    for (const url of add) {
      this.feeds.add(url);
      this.added.add(url);
    }
    for (const url of remove) {
      this.feeds.delete(url);
      this.removed.add(url);
    }
    this.acknowledged += add.length + remove.length;
    this.#changes = undefined;
    this.#note("feeds", response.json);
    return true;
  }

  /** New feeds, and every third time the removal of some of the feeds so far. */
  #nextChanges(): Changes {
    this.#count += 1;
    const add = Array.from(
      { length: FEEDS_PER_UPLOAD },
      (_, index) => `https://feeds.example/${this.#name}/${this.#count}/${index}`,
    );
    const remove = this.#count % 3 === 0 ? [...this.added].slice(-2) : [];
    for (const url of remove) this.added.delete(url);
    return { add, remove };
  }

  async #receiveActions(port: number): Promise<boolean> {
    const response = await this.#send(port, "GET", this.#dialect.actions + this.#since("actions"));
    if (response === undefined) return false;
    readPositions(response, this.positions);
    this.#note("actions", response.json);
    return true;
  }

  async #addPlays(port: number, isActive: boolean): Promise<boolean> {
    if (this.#plays === undefined && isActive) this.#plays = this.#nextPlays();
    if (this.#plays === undefined) return true;
    const response = await this.#send(port, "POST", this.#dialect.addActions, JSON.stringify(this.#plays));
    if (response === undefined) return false;
    for (const { episode, position } of this.#plays) {
      this.played.set(episode, position);
      this.positions.set(episode, position);
    }
    this.acknowledged += this.#plays.length;
    this.#plays = undefined;
    this.#note("actions", response.json);
    return true;
  }

  /** Later positions of the same episodes, and new episodes. */
  #nextPlays(): Play[] {
    const shared = {
      podcast: `https://feeds.example/${this.#name}`,
      action: "play",
      position: this.#count,
      started: 0,
      total: 10_000,
      timestamp: new Date(Date.UTC(2026, 0, 1) + this.#count * 1_000).toISOString().slice(0, 19),
    };
    return Array.from({ length: ACTIONS_PER_UPLOAD }, (_, index) => ({
      ...shared,
      episode: `https://media.example/${this.#name}/${index % 2 === 0 ? index : `${this.#count}-${index}`}.mp3`,
    }));
  }
}

export function readPositions({ json }: HttpResponse, positions: Map<string, number>): Map<string, number> {
  for (const { episode, position } of json.actions) positions.set(episode, position);
  return positions;
}
