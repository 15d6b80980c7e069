import { indexedDbStorage } from "../../../client/src/browser.ts";
import {
  EarmarkError,
  type Feed,
  openReplica,
  type Refusal,
  type Replica,
  type ReplicaOptions,
  type Subscription,
  type Update,
} from "../../../client/src/index.ts";
import {
  accountMode,
  anonymousClient,
  connectionProblem,
  currentUser,
  isPageUnloading,
  needsSignIn,
  ownerOf,
  RETRY_MS,
  reportProblem,
  requireSignIn,
  serverUrl,
  setUser,
} from "../server/server.ts";
import { createState } from "../state/state.ts";
import { restorePodcasts, serializePodcasts } from "./known-podcasts.ts";
import { claimStorage, createMemoryStorage, type OwnedStorage } from "./owned-storage.ts";

interface SubscriptionList {
  /** Oldest first, with the edits that the server does not have yet. */
  readonly items: readonly Subscription[];
  readonly status: "loading" | "ready" | "failed";
  /** Number of edits that the server has not confirmed yet. */
  readonly pending: number;
}

export const subscriptionList = createState<SubscriptionList>({
  items: [],
  status: "loading",
  pending: 0,
});
/** Edits that the server refused, in all tabs, until the user dismisses them. */
export const refusals = createState<readonly Refusal[]>([]);

const update = (change: Partial<SubscriptionList>) => subscriptionList.update((list) => ({ ...list, ...change }));

/** Whose list it is; empty without accounts. */
let owner = "";
/** The copy of the list in this browser, once it is known whose list to show. */
let localCopy: Promise<{ readonly storage: OwnedStorage; readonly replica: Replica }> | undefined;

const replicaClient: ReplicaOptions["client"] = {
  ...anonymousClient,
  async apply(operations, options) {
    // Someone else may have signed in: edits are sent only on behalf of the user who made them.
    if (accountMode !== "off" && !setUser(await anonymousClient.me(options))) throw new Error("another user");
    return anonymousClient.apply(operations, options);
  },
};

/** Opens the copy. The page is reloaded for another user. */
function open(user: string): void {
  if (localCopy !== undefined) return;
  owner = user;
  localCopy = openStored().catch(() => openWith(createMemoryStorage()));
  void runIfNeeded();
}

async function openStored() {
  return openWith(await claimStorage(indexedDbStorage(`earmark ${serverUrl}`), owner));
}

async function openWith(storage: OwnedStorage) {
  let replica: Replica | undefined;
  storage.watchKey("refusals", () => void loadRefusals(storage).catch(() => {}));
  await loadRefusals(storage);
  restorePodcasts((await storage.read("podcasts")) ?? "");
  unfinishedImport.set((await storage.read("import")) ?? "");
  const show = (items: readonly Subscription[]) => {
    if (replica === undefined) return;
    const { pending, isLoaded } = replica;
    update({ items, pending, status: isLoaded || items.length > 0 ? "ready" : subscriptionList.value.status });
  };
  replica = await openReplica({
    client: replicaClient,
    storage,
    onChange: show,
    onRefused: saveRefusal,
  });
  show(replica.list());
  return { storage, replica };
}

const readRefusals = (text: string | undefined): readonly Refusal[] => JSON.parse(text || "[]");

async function loadRefusals(storage: OwnedStorage): Promise<void> {
  refusals.set(readRefusals(await storage.read("refusals")));
}

/** Changes the refusals in all tabs. If they cannot be saved, only in this one. */
export async function updateRefusals(change: (all: readonly Refusal[]) => readonly Refusal[]): Promise<void> {
  refusals.update(change);
  const { storage } = (await localCopy) ?? {};
  const saving = storage?.update("refusals", (saved) => JSON.stringify(change(readRefusals(saved))));
  await saving?.then((text) => refusals.set(readRefusals(text))).catch(() => {});
}

let unsaved: readonly Refusal[] = [];

/** Saves the refusals of one response together. */
function saveRefusal(refusal: Refusal): void {
  unsaved = [...unsaved, refusal];
  if (unsaved.length > 1) return;
  queueMicrotask(() => {
    const added = unsaved;
    unsaved = [];
    void updateRefusals((all) => [...all, ...added]);
  });
}

let running: AbortController | undefined;

/** Keeps the list in sync with the server, but not while nobody is signed in or the page is in the back/forward cache. */
async function runIfNeeded(): Promise<void> {
  const { replica, storage } = (await localCopy) ?? {};
  // A browser opens six connections to a host at most. Without locks each tab has its own stream of events, so only
  // visible tabs may have one.
  const canRun = storage?.lock !== undefined || document.visibilityState === "visible";
  if (replica === undefined || isPageUnloading() || needsSignIn.value || !canRun) {
    running?.abort();
    running = undefined;
  } else if (running === undefined) {
    const current = new AbortController();
    running = current;
    await replica.run({ signal: current.signal, onError }).catch((error) => {
      if (running !== current) return;
      running = undefined;
      if (!onError(error)) setTimeout(runIfNeeded, RETRY_MS);
    });
  }
}

/** Returns true if the user has to sign in before it makes sense to try again. */
function onError(error: unknown): boolean {
  // An error without a code is from a proxy with its own sign-in.
  if (accountMode !== "off" && error instanceof EarmarkError && error.status === 401 && error.code !== undefined) {
    requireSignIn();
    return true;
  }
  reportProblem(error);
  if (subscriptionList.value.status === "loading") update({ status: "failed" });
  return false;
}

/** Retries immediately. */
export function reconnect(): void {
  running?.abort();
  running = undefined;
  if (subscriptionList.value.status === "failed") update({ status: "loading" });
  void runIfNeeded();
}

/** Sends what is waiting and reads what changed. Fails if the server is unreachable. */
export async function sync(signal?: AbortSignal): Promise<void> {
  const { replica, storage } = (await localCopy) ?? {};
  await replica?.sync({ signal });
  // Another tab may have sent the edits of this one.
  if (storage !== undefined) await loadRefusals(storage);
}

export const refresh = (): Promise<unknown> => sync().catch(onError);

/** Adds feeds to the copy in this browser. The server gets them as soon as possible. */
export async function addToLocalCopy(feeds: readonly Feed[]): Promise<void> {
  await (await localCopy)?.replica.add(feeds);
}

/** An import that this browser has begun and not finished; empty if there is none. It is kept with the copy of the list. */
export const unfinishedImport = createState("");

export async function saveUnfinishedImport(text: string): Promise<void> {
  unfinishedImport.set(text);
  await (await localCopy)?.storage.update("import", () => text);
}

/** Edits subscriptions in the copy in this browser. The server gets the new values as soon as possible. */
export async function edit(updates: readonly Update[]): Promise<void> {
  await (await localCopy)?.replica.update(updates);
}

/** Keeps what is known about podcasts with the copy of the list. */
export async function savePodcasts(): Promise<void> {
  await (await localCopy)?.storage.update("podcasts", () => serializePodcasts(subscriptionList.value.items));
}

/** Deletes the copy of the list from this browser; called after signing out. */
export async function deleteLocalCopy(): Promise<void> {
  running?.abort();
  running = undefined;
  await (await localCopy)?.storage.clear().catch(() => {});
}

/** Removes subscriptions from the copy in this browser. The server learns of it as soon as possible. */
export async function removeFromCopy(ids: readonly string[]): Promise<void> {
  await (await localCopy)?.replica.remove(ids);
}

if (accountMode === "off") open("");
currentUser.subscribe(() => {
  if (accountMode !== "off" && currentUser.value !== undefined) open(ownerOf(currentUser.value));
});
needsSignIn.subscribe(runIfNeeded);
addEventListener("pagehide", () => void runIfNeeded());
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) void runIfNeeded();
});
addEventListener("online", reconnect);
addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible" || running === undefined) void runIfNeeded();
  else if (connectionProblem.value === undefined) void refresh();
  else reconnect();
});
