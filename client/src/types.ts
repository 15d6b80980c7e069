import type { EarmarkError, ErrorCode, ErrorObject, NetworkError } from "./errors.ts";

export interface ClientOptions {
  /** URL of the server, including its base path. */
  readonly url: string;
  /** A token (`emk_…`) or a JWT. Not needed on a server without accounts. */
  readonly token?: string | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Maximum number of retries when the server is busy or unreachable. Default: 5. */
  readonly retries?: number | undefined;
  /** Called before the client waits for a retry. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Timeout of one attempt in milliseconds. Default: 60,000; 300,000 for imports and exports. */
  readonly timeoutMs?: number | undefined;
  /** Maximum size of one response in bytes. Default: 8 MiB; 64 MiB for imports and exports. */
  readonly maxResponseBytes?: number | undefined;
}

export interface Retry {
  /** Number of failed attempts so far. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: EarmarkError | NetworkError;
}

export interface CallOptions {
  /** Cancels the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface Subscription {
  readonly id: string;
  /** Exactly as it was sent. */
  readonly feedUrl: string;
  readonly subscribedAt: Date;
  /** The user's own name for it. */
  readonly title?: string | undefined;
  /** Paths such as `News/Tech`. */
  readonly folders?: readonly string[] | undefined;
  /** URLs that the feed had before, newest first. Each of them still finds the subscription. */
  readonly formerFeedUrls?: readonly string[] | undefined;
  /** Only if requested with `include`. */
  readonly podcast?: Podcast | undefined;
}

/** What the server knows about the podcast of a feed. Unknown values are absent. */
export interface Podcast {
  /** The same for all subscribers of the feed. */
  readonly id: string;
  readonly title?: string;
  readonly author?: string;
  /** Plain text. */
  readonly description?: string;
  readonly homepageUrl?: string;
  readonly language?: string;
  readonly podcastGuid?: string;
  /** Paths of WebP images of at most 160 and 600 pixels. */
  readonly artwork?: { readonly small: string; readonly large: string };
  readonly status: "pending" | "ok" | "moved" | "forbidden" | "failing" | "gone";
  readonly statusSince?: Date;
  /** Where the feed is now. To use it, update the subscription's `feedUrl`. */
  readonly movedTo?: string;
  /** Time of the last fetch; absent before the first. */
  readonly checkedAt?: Date;
  /** Why the last fetch failed; only with the status `failing`, `forbidden` or `gone`. */
  readonly failure?: FeedFailure;
  /** When the newest episode was published; episodes of the future do not count. */
  readonly latestEpisodeAt?: Date;
}

/** Why a feed cannot be read; newer servers may have others. */
export type FeedFailure =
  | "not-found"
  | "gone"
  | "forbidden"
  | "rate-limited"
  | "server-error"
  | "not-a-feed"
  | "timed-out"
  | "tls"
  | "unknown-host"
  | "unreachable"
  | "private-address"
  | "too-large"
  | "redirect"
  | "invalid"
  | "unknown";

export interface IncludeOptions {
  /** Also read what the server knows about each podcast. */
  readonly include?: "podcast" | undefined;
}

/** A feed to subscribe to. Without an id it gets `guid(url)`. */
export type Feed =
  | string
  | {
      readonly url: string;
      readonly id?: string | undefined;
      readonly title?: string | undefined;
      readonly folders?: readonly string[] | undefined;
    };

/** New values for a subscription; null clears one. Everything else stays, including its position and date. */
export interface Update {
  readonly id: string;
  readonly feedUrl?: string | undefined;
  readonly title?: string | null | undefined;
  readonly folders?: readonly string[] | null | undefined;
  /** Null forgets them. */
  readonly formerFeedUrls?: null | undefined;
}

export type Operation =
  | ({ readonly op: "add" } & Pick<Subscription, "id" | "feedUrl" | "title" | "folders">)
  | ({ readonly op: "update" } & Update)
  /** With `mergeInto`, another subscription takes over its URLs and its episode actions. */
  | { readonly op: "remove"; readonly id: string; readonly mergeInto?: string | undefined };

/** The result of one operation. `subscription` is null after a removal. */
export type OperationResult =
  | { readonly outcome: "done"; readonly subscription: Subscription | null }
  | { readonly outcome: "refused"; readonly error: ErrorObject };

/** Subscriptions that seem to be for the same podcast. */
export interface Duplicate {
  /** Derived from the ids of the subscriptions: a new member makes a new group. */
  readonly id: string;
  readonly reason: "same-guid" | "same-title-and-site";
  /** Ids of subscriptions in the order of the list; at most 1,000. */
  readonly subscriptions: readonly string[];
}

/** What changed after a state. Apply `removed` first. */
export interface Changes {
  /** Subscriptions that were added or updated, as they are now. */
  readonly changed: readonly Subscription[];
  /** Ids of subscriptions that existed at the given state and are gone. */
  readonly removed: readonly string[];
  /** Where the next call continues. */
  readonly state: string;
  readonly hasMore: boolean;
}

/** A subscription that was removed. To restore it, pass `{ url: feedUrl, id, title, folders }` to `subscribe`. */
export interface Removal {
  readonly id: string;
  readonly feedUrl: string;
  readonly removedAt: Date;
  readonly title?: string;
  readonly folders?: readonly string[];
}

export interface EventsOptions extends CallOptions {
  /** Maximum time between two polls in milliseconds, while there is no stream. Default: 60,000. */
  readonly pollMs?: number | undefined;
}

/** The result for one feed. */
export type SubscribeResult = {
  /** The feed URL as given. */
  readonly feed: string;
  /** The id in the request, in lower case. An existing subscription may have another id. */
  readonly id: string;
} & (
  | { readonly outcome: "added"; readonly subscription: Subscription }
  | { readonly outcome: "already-subscribed" | "refused"; readonly error: ErrorObject }
);

export interface Progress {
  /** Number of feeds with a result so far. */
  readonly done: number;
  readonly total: number;
  readonly added: number;
  readonly alreadySubscribed: number;
  readonly refused: number;
  /** Results of the last request. Keep them if you need them when a later request fails. */
  readonly results: readonly SubscribeResult[];
}

export interface SubscribeOptions extends CallOptions {
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Maximum number of feeds per request. Default: 1,000, or the server's limit if that is lower. */
  readonly batchSize?: number | undefined;
}

export interface Page {
  readonly items: readonly Subscription[];
  /** Number of subscriptions in the whole list. */
  readonly total: number;
  readonly number: number;
  readonly size: number;
  readonly hasNext: boolean;
}

export interface PageOptions extends CallOptions {
  /** Starts at 1. */
  readonly number?: number | undefined;
  /** 1 to 100. Default: 100; for an `AdminClient`, 25. */
  readonly size?: number | undefined;
}

export interface ImportReport {
  readonly dryRun: boolean;
  readonly counts: {
    readonly found: number;
    readonly added: number;
    readonly alreadySubscribed: number;
    readonly skipped: number;
    readonly refused: number;
  };
  /** Why feeds were skipped or refused, with the number of feeds. */
  readonly reasons: readonly { readonly code: ErrorCode; readonly count: number }[];
  readonly entries: readonly ImportEntry[];
}

export interface ImportEntry {
  readonly feedUrl: string;
  readonly title: string | null;
  readonly folders: readonly string[];
  /** Line of the file, from 1. */
  readonly line: number | null;
  readonly outcome: "added" | "already-subscribed" | "skipped" | "refused";
  /** Why the feed was skipped or refused. */
  readonly code: ErrorCode | null;
  readonly detail: string | null;
  /**
   * Id of the new subscription; in a preview, the id that an import would give it. To add only some feeds after a
   * preview, pass it to `subscribe`, with title and folders.
   */
  readonly subscriptionId: string | null;
}

export interface Me {
  readonly id: string;
  /** `local` on a server without accounts. */
  readonly name: string;
  readonly issuer: string | null;
  /** Null on a server without accounts. */
  readonly role: "administrator" | "member" | null;
  readonly createdAt: Date | null;
  /** Null on a server without accounts, and for a JWT. */
  readonly credential: { readonly kind: string; readonly id: string; readonly scope: "read" | "write" } | null;
  readonly counts: { readonly subscriptions: number; readonly tokens: number; readonly sessions: number };
  readonly limits: {
    readonly operationsPerRequest: number;
    readonly bodyBytes: number;
    readonly pageSize: number;
    readonly requestsPerMinute: number | null;
    readonly operationsPerMinute: number | null;
    readonly subscriptions: number | null;
  };
  /** The state of the list, for `changes`. */
  readonly state: string;
  /** Whether the server updates the feed URLs of subscriptions by itself when feeds have moved. */
  readonly followMoves: boolean;
}

export interface NameAndPassword {
  readonly name: string;
  readonly password: string;
}

/** An app's token or a browser's session. */
export interface Credential {
  readonly id: string;
  readonly kind: "token" | "session";
  /** For a session, the browser's `User-Agent`. */
  readonly label: string;
  /** Always `write` for a session. */
  readonly scope: "read" | "write";
  readonly createdAt: Date;
  /** Accurate to five minutes; null if never used. */
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  /** Whether the client itself is using it. */
  readonly isCurrent: boolean;
}

/** A device under which a podcast app syncs. */
export interface Device {
  readonly id: string;
  readonly caption: string;
  readonly deviceType: "desktop" | "laptop" | "mobile" | "server" | "other";
  /** The app's `User-Agent`. */
  readonly app: string | null;
  /** Accurate to five minutes. */
  readonly lastSyncAt: Date;
  /** Length of the list, which all devices share. */
  readonly subscriptions: number;
}

/** The latest action of its kind for an episode. */
export interface EpisodeAction {
  /** Changes when a newer action of the same kind replaces this one. */
  readonly id: string;
  readonly feedUrl: string;
  readonly mediaUrl: string;
  readonly guid: string | null;
  readonly device: string | null;
  readonly action: "play" | "download" | "delete" | "new" | "flattr";
  readonly actedAt: Date;
  /** In seconds; only for `play`. */
  readonly position: number | null;
  readonly started: number | null;
  readonly total: number | null;
  /** What the feed says about the episode; absent if the server has not found it there. */
  readonly title?: string;
  readonly publishedAt?: Date;
}

/** An app's request for access. */
export interface AppLogin {
  readonly id: string;
  /** The app's `User-Agent`. Anyone can send any name. */
  readonly app: string | null;
  /** The IP address from which it asks. */
  readonly address: string;
  readonly status: "pending" | "allowed" | "denied";
  readonly requestedAt: Date;
  readonly expiresAt: Date;
}

/** What podcast apps have synchronized, and apps that ask for access. */
export interface AppMethods {
  devices(options?: CallOptions): Promise<Device[]>;
  /** Resolves to the updated device. */
  changeDevice(
    id: string,
    changes: { readonly caption?: string | undefined; readonly deviceType?: Device["deviceType"] | undefined },
    options?: CallOptions,
  ): Promise<Device>;
  /** Resolves to false if there is none with this id. An app that still uses the device creates it again. */
  forgetDevice(id: string, options?: CallOptions): Promise<boolean>;
  /** One page of up to 1,000, in order of upload; only those of one feed if `feedUrl` is given. */
  episodeActions(
    options?: PageOptions & { readonly feedUrl?: string | undefined },
  ): Promise<Omit<Page, "items"> & { readonly items: readonly EpisodeAction[] }>;
  /** `id` is what follows `#app-login=` in the link. Resolves to undefined if it is invalid or has expired. */
  appLogin(id: string, options?: CallOptions): Promise<AppLogin | undefined>;
  /** Gives the app a token with this label. */
  allowAppLogin(id: string, label: string, options?: CallOptions): Promise<Credential>;
  /** Resolves to false if the login has expired or was allowed. */
  denyAppLogin(id: string, options?: CallOptions): Promise<boolean>;
}

/** What a secret link is to show. */
export interface NewLink {
  /** `list`: a page and an OPML file. `alerts`: an Atom feed. */
  readonly kind: "list" | "alerts";
  readonly title?: string | undefined;
  /** Of the link's texts; unless given, that of the `Accept-Language` header. */
  readonly language?: "en" | "de" | "es" | "fr" | "zh" | undefined;
  /** Share only this folder and what is below it. */
  readonly folder?: string | undefined;
  /** Ids of subscriptions that are not shared; at most 200. */
  readonly except?: readonly string[] | undefined;
  /** Show your own titles instead of the publishers'. */
  readonly ownTitles?: boolean | undefined;
}

/** A secret link: anyone who has its URL can open it. The last three are only for lists. */
export interface Link {
  readonly id: string;
  readonly kind: NewLink["kind"];
  readonly title: string | null;
  readonly language: NonNullable<NewLink["language"]>;
  readonly url: string;
  readonly createdAt: Date;
  readonly folder?: string | null;
  readonly except?: readonly string[];
  readonly ownTitles?: boolean;
}

/** What a link shares and leaves out. */
export interface LinkPreview {
  readonly sharedFeeds: number;
  /** Feeds that are left out because they may be private, and the ids of their subscriptions. */
  readonly privateFeeds: number;
  readonly privateSubscriptions: readonly string[];
}

/** What needs attention. */
export interface Alert {
  /** Stays the same while the alert lasts. */
  readonly id: string;
  readonly code:
    | "feed-gone"
    | "feed-forbidden"
    | "feed-moved"
    | "device-silent"
    | "large-change"
    | "new-sign-in"
    | "backup-old";
  readonly title: string;
  /** What it means, and what to do. */
  readonly text: string;
  readonly raisedAt: Date;
  /** Ids of the subscriptions that it is about; at most 50. */
  readonly subscriptions: readonly string[];
}

/** Secret links and alerts. They need a session, or a server without accounts. */
export interface LinkMethods {
  /** Newest first; at most 50. `language` is that of the texts. */
  alerts(options?: CallOptions & { readonly language?: NewLink["language"] }): Promise<Alert[]>;
  /** Oldest first. */
  links(options?: CallOptions): Promise<Link[]>;
  createLink(link: NewLink, options?: CallOptions): Promise<Link & Omit<LinkPreview, "privateSubscriptions">>;
  /** What the link would share. Creates nothing. */
  previewLink(link: NewLink, options?: CallOptions): Promise<LinkPreview>;
  /** Resolves to false if there is none with this id. */
  revokeLink(id: string, options?: CallOptions): Promise<boolean>;
}

/** Changes of one author to the list. */
export interface ChangeSet {
  readonly id: string;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly by: {
    readonly kind: "app" | "page" | "token" | "import" | "command" | "server" | "unknown";
    /** The caption of the app's device, or the label of the token. */
    readonly name: string | null;
  };
  /** How many subscriptions differ from what they were before. */
  readonly added: number;
  readonly updated: number;
  readonly removed: number;
  /** Whether an app added or removed more than half of the list. */
  readonly isLarge: boolean;
  /** Whether all of it was undone, and that was not undone itself. */
  readonly isUndone: boolean;
  /** Only if it is an undo. */
  readonly undoes?: { readonly id: string; readonly scope: "this" | "some" | "since" };
}

/** What a change set did to one subscription. */
export interface SubscriptionChange {
  readonly change: "added" | "updated" | "removed";
  readonly subscriptionId: string;
  readonly feedUrl: string;
  readonly title: string | null;
  /** What an update changed; absent if that is no longer recorded. */
  readonly before?: ChangedValues;
  readonly after?: ChangedValues;
}

export interface ChangedValues {
  readonly feedUrl?: string;
  readonly title?: string | null;
  readonly folders?: readonly string[] | null;
  readonly formerFeedUrls?: readonly string[] | null;
}

export interface ChangeSetWithChanges extends ChangeSet {
  /** At most 1,000. */
  readonly changes: readonly SubscriptionChange[];
}

export interface ChangeSetPage extends Omit<Page, "items"> {
  readonly items: readonly ChangeSet[];
}

export interface UndoOptions extends CallOptions {
  /** "this" (the default) undoes the change set, "since" everything since before it. */
  readonly scope?: "this" | "since" | undefined;
  /** Ids of at most 1,000 subscriptions, only with the scope "this": only the last change of each of them is undone. */
  readonly subscriptions?: readonly string[] | undefined;
  /** Changes nothing. */
  readonly dryRun?: boolean | undefined;
}

export interface Undone {
  /** The change set that the undo became, if it changed anything. */
  readonly id: string;
  readonly restored: number;
  readonly removed: number;
  readonly reverted: number;
  readonly skipped: readonly Skipped[];
}

/** What was not undone. */
export interface Skipped {
  /** Of the subscription. */
  readonly id: string;
  readonly code:
    | "changed-later"
    | "already-subscribed"
    | "id-in-use"
    | "quota-exceeded"
    | "already-removed"
    | "not-found";
}

/** Who changed the list, and undo. */
export interface HistoryMethods {
  /**
   * Newest first; 25 per page unless `size` says otherwise. With the id of a subscription, only the sets in which it was
   * added, updated or removed.
   */
  history(options?: PageOptions & { readonly subscription?: string | undefined }): Promise<ChangeSetPage>;
  /** Resolves to undefined if there is none with this id. */
  changeSet(id: string, options?: CallOptions): Promise<ChangeSetWithChanges | undefined>;
  /** An undo can be undone. Fails with `history-incomplete` if what the list was is no longer recorded. */
  undo(id: string, options?: UndoOptions): Promise<Undone>;
}

export interface Client extends AppMethods, LinkMethods, HistoryMethods {
  /**
   * Subscribes to any number of feeds. Result N is about feed N. "added" means that the feed was not in the list before
   * this call and now is, with this id.
   */
  subscribe(feeds: Iterable<Feed>, options?: SubscribeOptions): Promise<SubscribeResult[]>;
  /** Iterates over all subscriptions, oldest first. Removing items meanwhile does not cause others to be skipped. */
  subscriptions(
    options?: CallOptions & IncludeOptions & { readonly pageSize?: number | undefined },
  ): AsyncIterableIterator<Subscription>;
  page(options?: PageOptions & IncludeOptions): Promise<Page>;
  /** Resolves to undefined if there is no subscription with this id. */
  get(id: string, options?: CallOptions): Promise<Subscription | undefined>;
  /** Resolves to undefined if the user is not subscribed to this podcast. */
  podcast(id: string, options?: CallOptions): Promise<Podcast | undefined>;
  /** Asks the server to fetch the feed of a podcast soon. */
  refresh(id: string, options?: CallOptions): Promise<void>;
  /** Asks the server to fetch soon the feeds that cannot be read. Resolves to how many will be fetched. */
  retryFailing(options?: CallOptions): Promise<number>;
  /** The subscription to a feed, however its URL is spelled; undefined if there is none. */
  find(feedUrl: string, options?: CallOptions): Promise<Subscription | undefined>;
  /**
   * Resolves to false if there is none with this id: perhaps an earlier attempt removed it, and its response was lost.
   */
  remove(id: string, options?: CallOptions): Promise<boolean>;
  /** Removes any number of subscriptions. Result N is about id N. */
  remove(ids: Iterable<string>, options?: CallOptions): Promise<OperationResult[]>;
  /** Updates any number of subscriptions. Result N is about update N. */
  update(updates: Iterable<Update>, options?: CallOptions): Promise<OperationResult[]>;
  /** Applies any number of operations in order, each independently. Result N is about operation N. */
  apply(operations: Iterable<Operation>, options?: CallOptions): Promise<OperationResult[]>;
  /**
   * What changed after `state`; without it, everything. Repeat with the new state while `hasMore`. Fails with
   * `state-expired` if the server no longer knows the state: start without one.
   */
  changes(state?: string, options?: CallOptions & { readonly pageSize?: number | undefined }): Promise<Changes>;
  /** Subscriptions that were removed and not added again, newest first; at most 500. */
  removals(options?: CallOptions): Promise<Removal[]>;
  /** Groups of subscriptions that may be one podcast. To merge two of them, pass `mergeInto` to `apply`. */
  duplicates(options?: CallOptions): Promise<Duplicate[]>;
  /** Says that these are different podcasts. Resolves to false if there is no such group. */
  dismissDuplicate(id: string, options?: CallOptions): Promise<boolean>;
  /**
   * Yields the state of the list immediately and after each change, wherever it comes from. Reconnects automatically,
   * and polls while there is no stream. Throws only if the credentials are invalid or insufficient, or the signal is
   * aborted.
   */
  events(options?: EventsOptions): AsyncIterableIterator<string>;
  /**
   * Subscribes to the feeds of an OPML file; with `dryRun`, only previews the result. After an error it is safe to send
   * the file again.
   */
  importOpml(
    opml: string | Blob | Uint8Array,
    options?: CallOptions & { readonly dryRun?: boolean | undefined },
  ): Promise<ImportReport>;
  exportOpml(options?: CallOptions): Promise<string>;
  /** The current user with counts and limits. */
  me(options?: CallOptions): Promise<Me>;
  /** Resolves to the updated user. */
  changeMe(changes: Pick<Me, "followMoves">, options?: CallOptions): Promise<Me>;

  /** Creates an account and signs in. Requires an invitation unless sign-up is open. */
  signUp(account: NameAndPassword & { readonly invitation?: string | undefined }, options?: CallOptions): Promise<void>;
  /** Creates a session. The server sets its cookie, which browsers send automatically. */
  signIn(
    account: NameAndPassword & {
      /** Of an account with a second factor: a code of the authenticator app, or a recovery code. */
      readonly oneTimeCode?: string | undefined;
    },
    options?: CallOptions,
  ): Promise<void>;
  /** Ends the current session. Succeeds if it has already ended. */
  signOut(options?: CallOptions): Promise<void>;
  /** Also ends every other session. With `revokeTokens`, apps lose access too. */
  changePassword(
    change: { readonly current: string; readonly new: string; readonly revokeTokens?: boolean | undefined },
    options?: CallOptions,
  ): Promise<void>;
  tokens(options?: CallOptions): Promise<Credential[]>;
  sessions(options?: CallOptions): Promise<Credential[]>;
  /** The default scope is `write`. `secret` is the token for the app; the server shows it only once. */
  createToken(
    token: {
      readonly label: string;
      readonly scope?: Credential["scope"] | undefined;
      readonly expiresAt?: Date | undefined;
    },
    options?: CallOptions,
  ): Promise<Credential & { readonly secret: string }>;
  /** Resolves to false if it no longer exists. Use `signOut` for the current session. */
  revoke(credential: Pick<Credential, "kind" | "id">, options?: CallOptions): Promise<boolean>;
  /** All of the user's data, as the text of a JSON document. */
  exportAccount(options?: CallOptions): Promise<string>;
  /** Deletes the account and all its data. Requires a sign-in within the last ten minutes. */
  deleteAccount(options?: CallOptions): Promise<void>;
}
