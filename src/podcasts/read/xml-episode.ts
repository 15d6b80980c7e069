import { decodeXML } from "entities/decode";
import type { FeedEpisode } from "./episodes.ts";

type TextField = "guid" | "title" | "publishedAt";

/** By the name of the child element. The lowest rank wins, and then the first. */
const TEXTS = new Map<string, readonly [field: TextField, rank: number]>([
  ["guid", ["guid", 1]],
  ["id", ["guid", 2]],
  ["title", ["title", 1]],
  ["itunes:title", ["title", 2]],
  ["pubdate", ["publishedAt", 1]],
  ["published", ["publishedAt", 1]],
  ["dc:date", ["publishedAt", 2]],
  ["updated", ["publishedAt", 3]],
]);

/** More than a title of the maximum length needs, even with markup. */
const MAX_TEXT = 4 * 1024;
const MAX_MEDIA_URLS = 20;

/** Reads one item or entry of a feed, element by element. Depths count from its children, which are at 1. */
export class XmlEpisode {
  readonly #texts = new Map<TextField, { readonly text: string; readonly rank: number }>();
  readonly #mediaUrls: string[] = [];
  #collected: { readonly field: TextField; readonly rank: number; readonly depth: number; raw: string } | undefined;
  #element = "";
  /** Attributes of the Atom link that is being read. */
  #link: { rel?: string; href?: string } = {};

  open(name: string, depth: number): void {
    this.#element = name;
    this.#link = {};
    const target = depth === 1 ? TEXTS.get(name) : undefined;
    if (target !== undefined) this.#collected = { field: target[0], rank: target[1], depth, raw: "" };
  }

  /** Of the element that was opened last. */
  attribute(name: string, value: string): void {
    const isMedia = this.#element === "enclosure" || this.#element === "media:content";
    if (isMedia && name === "url") this.#addMediaUrl(value);
    if (this.#element === "link" && (name === "rel" || name === "href")) this.#link[name] ??= value;
  }

  text(text: string): void {
    const collected = this.#collected;
    if (collected !== undefined && collected.raw.length < MAX_TEXT)
      collected.raw += text.slice(0, MAX_TEXT - collected.raw.length);
  }

  close(name: string, depth: number): void {
    if (name === "link" && this.#link.rel === "enclosure" && this.#link.href !== undefined) {
      this.#addMediaUrl(this.#link.href);
      this.#link = {};
    }
    if (this.#collected?.depth !== depth) return;
    const { field, rank, raw } = this.#collected;
    this.#collected = undefined;
    const text = decodeXML(raw).trim();
    const known = this.#texts.get(field);
    if (text !== "" && (known === undefined || rank < known.rank)) this.#texts.set(field, { text, rank });
  }

  #addMediaUrl(raw: string): void {
    if (this.#mediaUrls.length < MAX_MEDIA_URLS) this.#mediaUrls.push(decodeXML(raw.slice(0, MAX_TEXT)));
  }

  end(): FeedEpisode {
    const textOf = (field: TextField) => this.#texts.get(field)?.text;
    return {
      guid: textOf("guid"),
      mediaUrls: this.#mediaUrls,
      title: textOf("title"),
      publishedAt: textOf("publishedAt"),
    };
  }
}
