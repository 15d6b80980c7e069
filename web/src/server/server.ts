import { createClient, EarmarkError, type Me, NetworkError } from "../../../client/src/index.ts";
import { createState } from "../state/state.ts";
import { storage } from "../state/storage.ts";

/** With the base path if there is one, without a slash at the end. */
export const serverUrl = new URL(".", location.href).href.replace(/\/$/, "");

/** The URL for other devices: the one from the settings of the server, else the one of this page. */
export const publicUrl = document.querySelector<HTMLMetaElement>("meta[name=earmark-url]")?.content || serverUrl;

/** Other devices would look for a loopback address on themselves. */
export const isLoopback = /^https?:\/\/(localhost|127\.[\d.]+|\[::1\])(?![^:/])/.test(publicUrl);

const accountsMeta = document.querySelector<HTMLMetaElement>("meta[name=earmark-accounts]");
/** "off": the server has a single user; "open": anyone may create an account; otherwise by invitation only. */
export const accountMode = accountsMeta?.content ?? "off";
/** The identity provider that people can sign in with; empty if there is none. */
export const providerName = accountsMeta?.dataset["provider"] ?? "";

/** Undefined until the server has said who is signed in. */
export const currentUser = createState<Me | undefined>(undefined);
/** The user has created the account on this page. */
export const isNewAccount = createState(false);
/** True while requests wait for the user to sign in. */
export const needsSignIn = createState(false);
export const connectionProblem = createState<"unreachable" | "busy" | "blocked" | "noAccount" | "disabled" | undefined>(
  undefined,
);

const REQUEST_TIMEOUT_MS = 60_000;
export const RETRY_MS = 10_000;
/** How long a new page waits for the server before it shows the copy of the list in this browser. */
const SHOW_LAST_USER_AFTER_MS = 4_000;
/** A request may wait until the user has signed in; each attempt has its own timeout. The maximum delay of a timer. */
export const NO_TIMEOUT = 2 ** 31 - 1;

const EVENT_STREAMS = /\/v1\/(?:events|account-imports)(?:\?|$)/;

let isUnloading = false;
addEventListener("pagehide", () => {
  isUnloading = true;
});
addEventListener("pageshow", ({ persisted }) => {
  isUnloading = false;
  // Restored from the back/forward cache, perhaps for another user.
  if (persisted) reloadUser();
});
/** True from when the page is left until it comes back from the back/forward cache. */
export const isPageUnloading = (): boolean => isUnloading;

/** Whether a proxy with its own sign-in has sent an HTML page, a redirect or 401: only a page load gets past it. */
function isBlocked({ type, status, headers }: Response): boolean {
  const contentType = headers.get("content-type") ?? "";
  const isFromProxy = accountMode === "off" || !contentType.startsWith("application/vnd.api+json");
  return type === "opaqueredirect" || contentType.startsWith("text/html") || (status === 401 && isFromProxy);
}

/** Sends a request once, and resolves to the response whatever its status. */
export async function fetchOnce(url: string, init: RequestInit): Promise<Response> {
  if (isStale()) {
    reloadOnce();
    throw new Error("the user of this page has signed out");
  }
  const signals = init.signal ? [init.signal] : [];
  // The client itself detects a stalled event stream.
  if (!EVENT_STREAMS.test(url)) signals.push(AbortSignal.timeout(REQUEST_TIMEOUT_MS));
  const response = await fetch(url, { ...init, signal: AbortSignal.any(signals), keepalive: isUnloading });
  if (isBlocked(response)) connectionProblem.set("blocked");
  else if (response.status < 500 && response.status !== 429) connectionProblem.set(undefined);
  return response;
}

/** A session can end at any time: the request then waits until the user has signed in, and is sent again. */
export async function fetchSignedIn(url: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const response = await fetchOnce(url, init);
    if (response.status !== 401 || isBlocked(response)) return response;
    requireSignIn();
    await new Promise<void>((resolve) => {
      const unsubscribe = needsSignIn.subscribe(() => {
        unsubscribe();
        resolve();
      });
    });
  }
}

/** A proxy has signed in someone without an account, or whose account is disabled. */
const PROXY_PROBLEMS: Readonly<Record<string, "noAccount" | "disabled">> = {
  "no-account": "noAccount",
  "account-disabled": "disabled",
};
const codeOf = (error: unknown) => (error instanceof EarmarkError ? (error.code ?? "") : "");

export function reportProblem(error: unknown): void {
  if (connectionProblem.value === "blocked") return;
  connectionProblem.set(error instanceof NetworkError ? "unreachable" : (PROXY_PROBLEMS[codeOf(error)] ?? "busy"));
}

export const client = createClient({
  url: serverUrl,
  fetch: fetchSignedIn,
  timeoutMs: NO_TIMEOUT,
  onRetry: ({ error }) => reportProblem(error),
});

/** For forms: the user sees a failure at once and decides whether to retry. */
export const SIGNED_IN = { url: serverUrl, fetch: fetchSignedIn, retries: 0, timeoutMs: NO_TIMEOUT } as const;
export const noRetryClient = createClient(SIGNED_IN);

/** For signing in and out, and for the copy of the list, which retries on its own: never waits for the user to sign in. */
export const ANONYMOUS = { url: serverUrl, fetch: fetchOnce, retries: 0 } as const;
export const anonymousClient = createClient(ANONYMOUS);

/** The last user of this browser, for all its tabs and for when the server is unreachable. */
interface LastUser {
  readonly owner: string;
  /** Undefined while the session has ended and the user has not signed in again. */
  readonly me?: Me | undefined;
}
const LAST_USER = `user ${serverUrl}`;

function readLastUser(): LastUser | undefined {
  try {
    const { owner, me } = JSON.parse(storage.get(LAST_USER) ?? "");
    return { owner, me: me && { ...me, createdAt: me.createdAt && new Date(me.createdAt) } };
  } catch {
    return undefined;
  }
}

function writeLastUser(user: LastUser | undefined): void {
  storage.set(LAST_USER, user ? JSON.stringify(user) : null);
}

/** Identifies an account, even if its name is later given to another one. */
export const ownerOf = ({ id, createdAt }: Me): string => `${id} ${createdAt?.toISOString() ?? ""}`;

/** The user whose data this page has loaded, even while it is hidden. */
let owner: string | undefined;
let isLeaving = false;
/** True once the user has signed out or another one has signed in, in whichever tab. */
export const isStale = (): boolean =>
  isLeaving || (owner !== undefined && accountMode !== "off" && readLastUser()?.owner !== owner);

/** Reloads the page, so that nothing of its user is left in memory. */
function reloadOnce(): void {
  if (isLeaving) return;
  isLeaving = true;
  location.reload();
}

/** Hides everything until the server has said who is signed in now. */
function reloadUser(): void {
  if (currentUser.value === undefined) return;
  if (isStale()) reloadOnce();
  currentUser.set(undefined);
  void loadUser();
}

export function requireSignIn(): void {
  const user = readLastUser();
  if (user?.me) writeLastUser({ owner: user.owner });
  needsSignIn.set(true);
}

// Tabs share one cookie, so that signing in or out in one affects all of them.
storage.watch(LAST_USER, () => {
  const user = readLastUser();
  if (isStale()) reloadOnce();
  else if (user?.me) needsSignIn.set(false);
  // The session has ended: this request returns 401, so that this tab asks the user to sign in too.
  else if (user) void noRetryClient.me().catch(() => {});
});

/** Called after signing out, before the page is loaded again. A request must not load it too: that would abort the first load. */
export function forgetUser(): void {
  isLeaving = true;
  writeLastUser(undefined);
}

/** Called with each response that says who is signed in. Returns false if the page belongs to someone else. */
export function setUser(me: Me): boolean {
  if (accountMode !== "off") {
    // A late response must not bring back a user who has signed out since.
    if (!isStale()) writeLastUser({ owner: ownerOf(me), me });
    owner ??= ownerOf(me);
    if (isStale()) {
      reloadOnce();
      return false;
    }
  }
  currentUser.set(me);
  return true;
}

/** Retries until the server responds. Meanwhile the page shows the list that this browser has stored for its last user. */
export async function loadUser(): Promise<void> {
  const showLastUser = () => {
    const user = readLastUser();
    if (currentUser.value !== undefined || needsSignIn.value || user?.me === undefined) return;
    owner ??= user.owner;
    if (!isStale()) currentUser.set(user.me);
  };
  const timer = setTimeout(showLastUser, SHOW_LAST_USER_AFTER_MS);
  for (let delayMs = 500; ; delayMs = Math.min(2 * delayMs, RETRY_MS)) {
    try {
      setUser(await noRetryClient.me());
      clearTimeout(timer);
      return;
    } catch (error) {
      reportProblem(error);
      if (error instanceof NetworkError) showLastUser();
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
  }
}

/** Called after signing in: resumes the requests that waited for it. */
export async function finishSignIn(): Promise<void> {
  // With retries, since the user must not sign up a second time.
  const me = await createClient({ url: serverUrl, fetch: fetchOnce }).me();
  if (setUser(me)) needsSignIn.set(false);
}

/** Whether nobody else has signed in. If someone has, the page is loaded again for them. */
export async function isSameUser(): Promise<boolean> {
  return accountMode === "off" || setUser(await noRetryClient.me());
}
