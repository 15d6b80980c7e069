/** What a URL answers: with a feed, with a permanent redirect, or that it does not exist. */
type State = "feed" | "dead" | { readonly to: string };

/** The publishers. A URL belongs to one podcast for ever, and says which. */
export class World {
  readonly #states = new Map<string, State>();

  newUrl(podcast: number): string {
    const url = `https://feeds.example/${podcast}/${this.#states.size}`;
    this.#states.set(url, "feed");
    return url;
  }

  set(url: string, state: State): void {
    this.#states.set(url, state);
  }

  stateOf(url: string): State {
    return this.#states.get(url) ?? "dead";
  }

  urls(podcast?: number): string[] {
    return [...this.#states.keys()].filter((url) => podcast === undefined || podcastOf(url) === podcast);
  }

  /** The URL and those that its redirects lead to. A loop ends it. */
  path(url: string): string[] {
    const path = [url];
    for (let state = this.stateOf(url); typeof state === "object"; state = this.stateOf(state.to)) {
      if (path.includes(state.to)) break;
      path.push(state.to);
    }
    return path;
  }

  end(url: string): string {
    return this.path(url).at(-1) ?? url;
  }

  isAlive(url: string): boolean {
    return this.stateOf(this.end(url)) === "feed";
  }

  /** Whether both lead to the same feed. */
  meet(one: string, other: string): boolean {
    const path = this.path(other);
    return this.path(one).some((url) => path.includes(url));
  }
}

export function podcastOf(url: string): number {
  return Number(/example\/(\d+)/.exec(url)?.[1]);
}
