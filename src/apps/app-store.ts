import type { Caller, UserId } from "../accounts/caller.ts";
import type { PageRange } from "../util/page-range.ts";
import type { KeyedAction, StoredAction } from "./episode-actions.ts";
import type { Progress, SyncKind, SyncState } from "./marks.ts";

/** An installation of an app. */
export interface Installation {
  /** Identifies it among those of the user: by its token, else its device, else its user agent. About 100 characters. */
  readonly key: string;
  /** Id of the device that it syncs as, if any. */
  readonly device: string | undefined;
  /** Initial caption of the device; by default its id. */
  readonly caption?: string | undefined;
  /** User agent of the app. */
  readonly app?: string | undefined;
}

export const DEVICE_TYPES = ["desktop", "laptop", "mobile", "server", "other"] as const;
export type DeviceType = (typeof DEVICE_TYPES)[number];

export interface Device {
  readonly id: string;
  readonly caption: string;
  readonly type: DeviceType;
  /** User agent of the app that last used it; empty if unknown. */
  readonly app: string;
  /** Accurate to five minutes. */
  readonly syncedAt: Date;
}

/** When a user has more than this, the least recently synced device is deleted. */
export const MAX_DEVICES = 100;
const MAX_DEVICE_ID = 64;
/** Whether this can be the id of a device. */
export function isDeviceId(text: string): boolean {
  return text.length <= MAX_DEVICE_ID && /^[\w.-]+$/.test(text);
}

export const MAX_CAPTION = 100;
/** Installations per user and kind whose sync state is kept. */
export const MAX_INSTALLATIONS = 200;
export const MAX_SPELLINGS = 200_000;

/** A feed URL as an installation spelled it when it uploaded the URL. */
export interface Spelling {
  readonly normalizedUrl: string;
  readonly url: string;
  /** Key of the installation; empty for a spelling that the server itself used. */
  readonly installation: string;
  /** Sequence number of the list after that. */
  readonly listSequence: number;
}

/** A feed of which all actions are due again to an installation. */
export interface Resend {
  /** Key of the feed of actions (`actionFeedKey`). */
  readonly feed: string;
  readonly sequence: number;
}

/** Under which URL an installation gets the actions of a feed that has moved. */
export interface MovedFeed {
  /** Keys of the feed's URLs, by which actions may have been stored. */
  readonly keys: readonly string[];
  /** The key by which they are stored. */
  readonly key: string;
  readonly url: string;
  /** Whether the installation has the current URL. It may have others, too. */
  readonly hasCurrent: boolean;
}

/** What a poll or an upload records, in one transaction. */
export interface SyncRecord {
  readonly kind: SyncKind;
  readonly installation: Installation;
  /** Uploaded actions get their sequence numbers from the store. */
  readonly progress: Progress | { readonly kind: "actions"; readonly actions: readonly KeyedAction[] };
  readonly spellings: readonly Spelling[];
  /** Recorded spellings of feeds that the installation has added again. */
  readonly reused?: readonly Spelling[];
  /** URLs of feeds that the installation gets: all their actions are due to it. Not together with uploaded actions. */
  readonly newFeeds?: readonly string[];
  /** Devices that the actions name. */
  readonly devices: readonly string[];
}

/**
 * Stores what apps sync besides the list: devices, episode actions, and what each installation has received. It gives the
 * same guarantees as `SubscriptionStore`. The rules are in `marks.ts` and `episode-actions.ts`.
 */
export interface AppStore {
  /**
   * The sync state of an installation, with the newest mark at or before the timestamp `since`. Rejects with
   * `AccessRevoked` if the account was deleted.
   */
  state(user: UserId, kind: SyncKind, installation: Installation, since: number): Promise<SyncState>;
  /** Returns the timestamp for the installation. Its mark is durable. */
  recordSync(caller: Caller, record: SyncRecord, at: Date): Promise<number>;
  /** All spellings of the feeds with these normalized URLs. */
  spellings(user: UserId, normalizedUrls: readonly string[]): Promise<readonly Spelling[]>;
  /**
   * Actions with sequence numbers from `after` (exclusive) to `upTo` (inclusive), in order; only those of one feed, if
   * given.
   */
  actions(user: UserId, range: ActionRange): Promise<readonly StoredAction[]>;
  /** Result N is the stored action of the same episode and kind as action N. */
  findActions(user: UserId, actions: readonly KeyedAction[]): Promise<readonly (StoredAction | undefined)[]>;
  /**
   * Stores the actions that win over what is stored, and no others: no client still shows a position that loses. Result N
   * is whether action N was stored.
   */
  importActions(caller: Caller, actions: readonly KeyedAction[], at: Date): Promise<readonly boolean[]>;
  /** `size` actions in order after the first `offset`, with the total; only those of one feed, if given. */
  actionPage(user: UserId, range: PageRange & { readonly feed: string | undefined }): Promise<ActionPage>;
  /** Calls `onActions` after every upload or import of actions by this store. Supports one listener only. */
  watchActions(onActions: (user: UserId) => void): void;
  /** Whether the server follows proven moves by itself; true unless the user has changed it. */
  followsMoves(user: UserId): Promise<boolean>;
  changeFollowsMoves(caller: Caller, followsMoves: boolean, at: Date): Promise<void>;
  /** In the order of their ids. */
  devices(user: UserId): Promise<readonly Device[]>;
  /** Adds devices of another server; a time in the future becomes `at`. Those that exist stay as they are. */
  importDevices(caller: Caller, devices: readonly Device[], at: Date): Promise<void>;
  /** Those with a sequence number after the given one. */
  resends(user: UserId, installation: string, after: number): Promise<readonly Resend[]>;
  /** The feeds that have moved, as an installation knows them. Those that are not listed keep their actions. */
  movedFeeds(user: UserId, installation: string): Promise<readonly MovedFeed[]>;
  /** Creates the device of the installation if it is new, and applies the changes. */
  saveDevice(caller: Caller, installation: Installation, changes: DeviceChanges, at: Date): Promise<void>;
  /** False if there is no such device. */
  changeDevice(caller: Caller, id: string, changes: DeviceChanges, at: Date): Promise<boolean>;
  /** False if there is no such device. */
  forgetDevice(caller: Caller, id: string, at: Date): Promise<boolean>;
}

export interface ActionPage {
  readonly items: readonly StoredAction[];
  readonly total: number;
}

export interface ActionRange {
  readonly after: number;
  readonly upTo: number;
  readonly limit: number;
  /** Key of the feed of actions. */
  readonly feed: string | undefined;
}

export type DeviceChanges = Partial<Pick<Device, "caption" | "type">>;
