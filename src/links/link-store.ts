import type { Caller, UserId } from "../accounts/caller.ts";
import type { Language } from "../util/languages.ts";

export const LINK_KINDS = ["list", "alerts"] as const;
export type LinkKind = (typeof LINK_KINDS)[number];

/** Per account. */
export const MAX_LINKS = 50;

/** What the owner of a secret link chose. */
export interface LinkChoice {
  readonly kind: LinkKind;
  /** The heading of the page or the feed; undefined for the usual one. */
  readonly title: string | undefined;
  /** Of its texts. */
  readonly language: Language;
  /** Only subscriptions in this folder and below are shared; undefined for all. */
  readonly folder: string | undefined;
  /** Ids of subscriptions that are not shared. */
  readonly except: readonly string[];
  /** Share the titles that the owner gave, instead of the publishers'. */
  readonly ownTitles: boolean;
}

/** An address that shows a list or alerts to anyone who knows it. */
export interface Link extends LinkChoice {
  readonly id: string;
  readonly user: UserId;
  /** Stored as it is, because the owner can see the URL again. */
  readonly secret: string;
  readonly createdAt: Date;
}

/**
 * Stores secret links. Every engine guarantees: a link that was removed, or whose account was deleted or disabled, is not
 * found by any process from then on.
 */
export interface LinkStore {
  /** `full` if the account has the maximum; `gone` if it was deleted or disabled. */
  add(caller: Caller, link: Link): Promise<"added" | "full" | "gone">;
  /** Oldest first. */
  list(user: UserId): Promise<readonly Link[]>;
  /** False if the caller has no such link. */
  remove(caller: Caller, id: string, at: Date): Promise<boolean>;
  find(secret: string): Promise<Link | undefined>;
}
