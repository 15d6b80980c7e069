import type { Details } from "./details.ts";
import type { Look } from "./moves.ts";

export interface Subscription extends Details {
  /** Chosen by the client, unique within the user's list, always in lower case. */
  readonly id: string;
  /** Exactly as it was sent. */
  readonly feedUrl: string;
  readonly subscribedAt: Date;
}

/** A subscription to add. */
export interface Addition extends Details {
  readonly kind: "add";
  readonly id: string;
  /** Used instead of `id` if another subscription in the list already has that one. */
  readonly fallbackId?: string;
  readonly feedUrl: string;
  /** From `readFeedUrl`: the same for all spellings of a feed's URL. */
  readonly normalizedUrl: string;
  /** When the person subscribed; now unless given, as for a subscription that comes back or from another server. */
  readonly subscribedAt?: Date;
  /** The app that adds it, if one does: a key of its installation. */
  readonly client?: string;
}

/**
 * Changes a subscription, which keeps its id, its place in the list and its timestamp. Members that are undefined stay
 * unchanged, and empty details are cleared. An update without effect takes no sequence number.
 */
export interface Update extends Details {
  readonly kind: "update";
  readonly id: string;
  /** Given together with `normalizedUrl`, or not at all. */
  readonly feedUrl?: string;
  readonly normalizedUrl?: string;
  /** Apply the update only if this is still the title. */
  readonly expectedTitle?: string;
  /** Apply it only if the subscription was not changed after this sequence number. */
  readonly unchangedSince?: number;
  readonly subscribedAt?: Date;
}

export type Removal =
  /** With `mergeInto`, another subscription takes over its URLs and its episode actions. */
  | { readonly kind: "remove"; readonly id: string; readonly mergeInto?: string; readonly unchangedSince?: number }
  | { readonly kind: "remove-feed"; readonly normalizedUrl: string; readonly client?: string };

/** What the server learns of feeds that move, and what apps do with them. Feeds are given by their keys, as text. */
export type MoveChange =
  /** The server follows a move that is proven. */
  | { readonly kind: "follow"; readonly feed: string; readonly to: KeyedUrl }
  /** It has seen a feed lead to another URL, or no longer. */
  | { readonly kind: "sight"; readonly feed: string; readonly to?: KeyedUrl }
  /** It has looked where a URL leads whose subscription is at `target`. */
  | { readonly kind: "look"; readonly feed: string; readonly target: string; readonly look: Look }
  /** An app polls, and is told what it must know of feeds that have moved. */
  | { readonly kind: "tell"; readonly client: string; readonly since: number; readonly from: number }
  /** An app uploads its whole list. */
  | { readonly kind: "keep"; readonly client: string; readonly feeds: readonly string[] }
  /** An app uploads actions of these feeds. */
  | { readonly kind: "act"; readonly client: string; readonly feeds: readonly KeyedUrl[] };

export interface KeyedUrl {
  readonly feed: string;
  readonly url: string;
}

export type Change = Addition | Update | Removal;

/** What identifies a subscription in a list. */
export type SubscriptionKey =
  | { readonly kind: "id"; readonly id: string }
  | { readonly kind: "feed"; readonly normalizedUrl: string };

/** The change collides with a subscription that the user already has. */
export interface Conflict {
  readonly kind: "refused";
  readonly code: "already-subscribed" | "id-in-use";
  /** The subscription it collides with. */
  readonly existingId: string;
}

/** The list has no such subscription to update or remove. */
export interface NotFound {
  readonly kind: "refused";
  readonly code: "not-found";
}

/** The user's list is full. */
export interface QuotaExceeded {
  readonly kind: "refused";
  readonly code: "quota-exceeded";
  readonly max: number;
}

/** Title and folders of the subscription would together be too long. */
export interface DetailsTooLong {
  readonly kind: "refused";
  readonly code: "details-too-long";
}

/** There is no subscription to merge into, or it is the same one. */
export interface CannotMerge {
  readonly kind: "refused";
  readonly code: "merge-target-not-found" | "merge-into-itself";
}

/** It was changed after what is to be undone. */
export interface ChangedLater {
  readonly kind: "refused";
  readonly code: "changed-later";
}

export type Refusal = Conflict | QuotaExceeded | NotFound | DetailsTooLong | CannotMerge | ChangedLater;

export interface Done {
  readonly kind: "done";
  /** As it is after the change; for a removal, before it. */
  readonly subscription: Subscription;
}

export type Outcome = Done | Refusal;

/** A subscription that was removed, with what is needed to restore it. */
export interface RemovedSubscription extends Details {
  readonly id: string;
  readonly feedUrl: string;
  readonly removedAt: Date;
}
