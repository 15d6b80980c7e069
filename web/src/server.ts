import { createClient, type Me, NetworkError } from "../../client/src/index.ts";
import { createState } from "./state.ts";

/** With the base path if there is one, without a slash at the end. */
export const serverUrl = new URL(".", location.href).href.replace(/\/$/, "");

/** The URL for other devices: the one from the settings of the server, else the one of this page. */
export const publicUrl = document.querySelector<HTMLMetaElement>("meta[name=earmark-url]")?.content || serverUrl;

/** Other devices would look for a loopback address on themselves. */
export const isLoopback = /^https?:\/\/(localhost|127\.[\d.]+|\[::1\])(?![^:/])/.test(publicUrl);

/** "off": the server has a single user; "open": anyone may create an account; otherwise by invitation only. */
export const accountMode = document.querySelector<HTMLMetaElement>("meta[name=earmark-accounts]")?.content ?? "off";

/** Undefined until the server has said who is signed in. */
export const currentUser = createState<Me | undefined>(undefined);
/** True while requests wait for the user to sign in. */
export const needsSignIn = createState(false);
export const connectionProblem = createState<"unreachable" | "busy" | "blocked" | undefined>(undefined);

const REQUEST_TIMEOUT_MS = 60_000;
const RETRY_MS = 10_000;
/** A request may wait until the user has signed in; each attempt has its own timeout. The maximum delay of a timer. */
export const NO_TIMEOUT = 2 ** 31 - 1;

let isUnloading = false;
addEventListener("pagehide", () => {
  isUnloading = true;
});
addEventListener("pageshow", ({ persisted }) => {
  isUnloading = false;
  // Restored from the back/forward cache, perhaps for another user.
  if (persisted) reloadUser();
});

/** Sends one request, whatever the response. */
async function fetchOnce(url: string, init: RequestInit): Promise<Response> {
  if (isStale()) throw new Error("another user has signed in");
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const response = await fetch(url, { ...init, signal, keepalive: isUnloading });
  // A proxy with its own sign-in sends an HTML page or a redirect, which only a page load can follow.
  const isHtml = response.headers.get("content-type")?.startsWith("text/html");
  if (response.type === "opaqueredirect" || isHtml || (response.status === 401 && accountMode === "off")) {
    connectionProblem.set("blocked");
  } else if (response.status < 500 && response.status !== 429) connectionProblem.set(undefined);
  return response;
}

/** A session can end at any time: the request then waits until the user has signed in, and is sent again. */
export async function fetchSignedIn(url: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const response = await fetchOnce(url, init);
    if (response.status !== 401 || accountMode === "off") return response;
    needsSignIn.set(true);
    await new Promise<void>((resolve) => {
      const unsubscribe = needsSignIn.subscribe(() => {
        unsubscribe();
        resolve();
      });
    });
  }
}

function reportProblem(error: unknown): void {
  if (connectionProblem.value !== "blocked")
    connectionProblem.set(error instanceof NetworkError ? "unreachable" : "busy");
}

export const client = createClient({
  url: serverUrl,
  fetch: fetchSignedIn,
  timeoutMs: NO_TIMEOUT,
  onRetry: ({ error }) => reportProblem(error),
});

/** For forms: the user sees a failure at once and decides whether to retry. */
export const noRetryClient = createClient({ url: serverUrl, fetch: fetchSignedIn, retries: 0, timeoutMs: NO_TIMEOUT });

/** For signing in and out: never asks the user to sign in first. */
export const anonymousClient = createClient({ url: serverUrl, fetch: fetchOnce, retries: 0 });

/** The user whose data this page has loaded, even while it is hidden. */
let owner: string | undefined;
let hasOtherUser = false;
/** True once another user has signed in: a request from this page would be sent in their name. */
export const isStale = (): boolean => hasOtherUser;

/** Reloads the page for another user, so that they find nothing of the previous one. */
function claimPage(name: string): boolean {
  owner ??= name;
  if (owner === name) return true;
  hasOtherUser = true;
  location.reload();
  return false;
}

/** Hides everything until the server has said who is signed in now. */
function reloadUser(): void {
  if (currentUser.value === undefined) return;
  currentUser.set(undefined);
  void loadUser();
}

/** Tabs share one cookie, so that signing in or out in one affects all of them. */
const channel = openChannel();
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(`earmark ${serverUrl}`);
  } catch {
    // Blocked by some privacy settings.
    return undefined;
  }
}
channel?.addEventListener("message", ({ data: { name } }: MessageEvent<{ name?: string }>) => {
  if (owner === undefined || hasOtherUser) return;
  if (name === undefined) reloadUser();
  else claimPage(name);
});

export function notifySignedOut(): void {
  channel?.postMessage({});
}

function setUser(me: Me): boolean {
  channel?.postMessage({ name: me.name });
  if (!claimPage(me.name)) return false;
  currentUser.set(me);
  return true;
}

/** Retries until the server responds. */
export async function loadUser(): Promise<void> {
  for (;;) {
    try {
      setUser(await client.me());
      return;
    } catch (error) {
      reportProblem(error);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Called after signing in: resumes the requests that waited for it. */
export async function finishSignIn(): Promise<void> {
  // With retries, since the user must not sign up a second time.
  const me = await createClient({ url: serverUrl, fetch: fetchOnce }).me();
  if (setUser(me)) needsSignIn.set(false);
}
