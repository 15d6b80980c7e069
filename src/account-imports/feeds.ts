import type { ServiceItem } from "../podcasts/read/service.ts";
import { isObject } from "../util/is-object.ts";
import { tooLarge } from "./failures.ts";

/** Collects feed URLs in order. */
export class FoundFeeds {
  urls: string[] = [];
  /** How many others are no texts. */
  invalid = 0;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.urls.length + this.invalid;
  }

  /** A URL, or what a server says about a feed: its URL is in the first of these members. */
  add(item: ServiceItem, members: readonly string[] = []): void {
    const name = isObject(item) ? members.find((member) => member in item) : undefined;
    const url = isObject(item) ? item[name ?? ""] : item;
    if (typeof url === "string") this.urls.push(url);
    else this.invalid += 1;
    if (this.size > this.#max) throw tooLarge("subscriptions");
  }
}
