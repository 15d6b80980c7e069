import type { Details } from "./details.ts";

export interface Subscription extends Details {
  /** Chosen by the client, unique within the user's list, always in lower case. */
  readonly id: string;
  /** Exactly as it was sent. */
  readonly feedUrl: string;
  readonly subscribedAt: Date;
}

/** A subscription to add, without its timestamp, which the server sets. */
export interface Addition extends Details {
  readonly kind: "add";
  readonly id: string;
  /** Used instead of `id` if another subscription in the list already has that one. */
  readonly fallbackId?: string;
  readonly feedUrl: string;
  /** From `readFeedUrl`: the same for all spellings of a feed's URL. */
  readonly normalizedUrl: string;
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
}

export type Removal =
  | { readonly kind: "remove"; readonly id: string }
  | { readonly kind: "remove-feed"; readonly normalizedUrl: string };

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

export type Refusal = Conflict | QuotaExceeded | NotFound | DetailsTooLong;

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
