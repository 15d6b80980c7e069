import type { KeyedAction, StoredAction } from "./episode-actions.ts";
import type { Caller, UserId, Window } from "./subscriptions.ts";
import type { Progress, SyncKind, SyncState } from "./sync-marks.ts";

/** An installation of an app. */
export interface Client {
  /** Tells the user's clients apart: id of its token, else of its device, else its user agent. Some 100 characters. */
  readonly key: string;
  /** Id of the device that it synchronizes as, if it has one. */
  readonly device: string | undefined;
  /** Caption of the device until somebody gives it one; its id unless given. */
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
  /** Accurate to a few minutes. */
  readonly syncedAt: Date;
}

/** When there are more, the one that has not synchronized for the longest time is forgotten. */
export const MAX_DEVICES = 100;
const MAX_DEVICE_ID = 64;
/** Whether this can be the id of a device. */
export function isDeviceId(text: string): boolean {
  return text.length <= MAX_DEVICE_ID && /^[\w.-]+$/.test(text);
}

export const MAX_CAPTION = 100;
/** Clients per user and kind whose progress is kept. */
export const MAX_CLIENTS = 200;
export const MAX_SPELLINGS = 200_000;

/** A feed URL as a client spelled it when it uploaded the feed. */
export interface Spelling {
  readonly feed: string;
  readonly url: string;
  /** Key of the client; empty for a spelling that the server itself used. */
  readonly client: string;
}

/** What is written when a client has read or uploaded something, in one transaction. */
export interface Settlement {
  readonly kind: SyncKind;
  readonly client: Client;
  /** For actions, the store knows which numbers they take. */
  readonly progress: Progress | { readonly actions: readonly KeyedAction[] };
  readonly spellings: readonly Spelling[];
  /** Devices that the actions name. */
  readonly devices: readonly string[];
}

/**
 * Stores what apps synchronize beside the list: devices, episode actions, and what each client has seen. It gives the
 * same guarantees as `SubscriptionStore`. The rules are in `sync-marks.ts` and `episode-actions.ts`.
 */
export interface AppStore {
  /**
   * What is known about a client, with the newest mark at or before the timestamp `since`. Rejects with `AccessRevoked` if
   * the account was deleted.
   */
  state(user: UserId, kind: SyncKind, client: Client, since: number): Promise<SyncState>;
  /** Returns the timestamp to give to the client, which is durable. */
  settle(caller: Caller, settlement: Settlement, at: Date): Promise<number>;
  /** All spellings of these feeds. */
  spellings(user: UserId, feeds: readonly string[]): Promise<readonly Spelling[]>;
  /** Actions with numbers after `after` up to `upTo`, in that order; of one feed, if it is given. */
  actions(user: UserId, range: ActionRange): Promise<readonly StoredAction[]>;
  /** `size` actions in order after the first `offset`, and how many there are; of one feed, if it is given. */
  actionPage(user: UserId, window: Window & { readonly feed: string | undefined }): Promise<ActionPage>;
  /** In the order of their ids. */
  devices(user: UserId): Promise<readonly Device[]>;
  /** An app names the device of the client, which is created if it is new, and changes what is given. */
  saveDevice(caller: Caller, client: Client, changes: DeviceChanges, at: Date): Promise<void>;
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
  readonly feed: string | undefined;
}

export type DeviceChanges = Partial<Pick<Device, "caption" | "type">>;
