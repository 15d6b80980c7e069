import type { FoundActions } from "./action-pages.ts";
import type { Address } from "./address.ts";
import type { FoundFeeds } from "./feeds.ts";
import type { Probe } from "./other-server.ts";

export type SourceKind = "gpodder" | "nextcloud";

/** An API that subscriptions and actions are read from. */
export interface Source {
  readonly kind: SourceKind;
  /** Finds the API at an address, or below it, without a password. */
  find(address: Address): Promise<Probe>;
  signIn(): Promise<void>;
  signOut(): Promise<void>;
  subscriptions(): Promise<FoundFeeds>;
  actions(onProgress: (found: number) => void): Promise<FoundActions>;
}
