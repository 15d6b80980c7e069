import { createClient, EarmarkError, type Me, NetworkError } from "../../client/src/index.ts";
import { isolate } from "./control-characters.ts";
import { createState } from "./state.ts";
import { speech } from "./words/index.ts";

/** Address of the server, with the base path if it has one, without a slash at its end. */
export const address = new URL(".", location.href).href.replace(/\/$/, "");

/** "off": the server is one person's; "open": anyone may make an account. */
export const accounts = document.querySelector<HTMLMetaElement>("meta[name=earmark-accounts]")?.content ?? "off";

/** Whose page this is; undefined until the server has said so. */
export const person = createState<Me | undefined>(undefined);
/** True while something waits for the person to sign in. */
export const isSignedOut = createState(false);
/** What keeps the server from answering just now. */
export const trouble = createState<"unreachable" | "busy" | "blocked" | undefined>(undefined);

/** A server that says nothing for so long is gone. */
const SILENCE_MS = 60_000;
const RETRY_MS = 10_000;
/** A request may wait for the person to sign in, and each attempt has its own timeout. The longest that timers know. */
const NO_TIMEOUT = 2 ** 31 - 1;
let isLeaving = false;
addEventListener("pagehide", () => {
  isLeaving = true;
});
addEventListener("pageshow", ({ persisted }) => {
  isLeaving = false;
  // The browser had kept the page, and whoever comes back to it may be somebody else.
  if (persisted) askAgain();
});

/** One request, and whatever is answered. */
async function ask(url: string, init: RequestInit): Promise<Response> {
  if (isOver()) throw new Error("the page is somebody else's now");
  const timeout = AbortSignal.timeout(SILENCE_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const response = await fetch(url, { ...init, signal, keepalive: isLeaving });
  // A proxy with a sign-in of its own sends a page, or sends elsewhere. Only the browser itself can follow.
  const isPage = response.headers.get("content-type")?.startsWith("text/html");
  if (response.type === "opaqueredirect" || isPage || (response.status === 401 && accounts === "off")) {
    trouble.set("blocked");
  } else if (response.status < 500 && response.status !== 429) trouble.set(undefined);
  return response;
}

/**
 * A session can end in the middle of anything. So whatever was asked waits until the person has signed in, and is then
 * asked again.
 */
async function request(url: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const response = await ask(url, init);
    if (response.status !== 401 || accounts === "off") return response;
    isSignedOut.set(true);
    await new Promise<void>((resolve) => {
      const stop = isSignedOut.follow(() => {
        stop();
        resolve();
      });
    });
  }
}

function blame(error: unknown): void {
  if (trouble.value !== "blocked") trouble.set(error instanceof NetworkError ? "unreachable" : "busy");
}

export const client = createClient({
  url: address,
  fetch: request,
  timeoutMs: NO_TIMEOUT,
  onRetry: ({ error }) => blame(error),
});

/** For a person who waits: it says at once what is wrong, and leaves it to the person to try again. */
export const prompt = createClient({ url: address, fetch: request, retries: 0, timeoutMs: NO_TIMEOUT });

/** For those who come and go, who are not asked to sign in first. */
export const door = createClient({ url: address, fetch: ask, retries: 0 });

/** Whose data is in this page, even while it is not shown. */
let owner: string | undefined;
let isSomebodyElses = false;
/** True once somebody else has signed in: nothing more is sent from here, since it would be sent in their name. */
export const isOver = (): boolean => isSomebodyElses;

/** False for somebody else: nothing that one person has left here is for another, so the page starts over. */
function isOwner(name: string): boolean {
  owner ??= name;
  if (owner === name) return true;
  isSomebodyElses = true;
  location.reload();
  return false;
}

/** Nothing is shown until it is known who is here. */
function askAgain(): void {
  if (person.value === undefined) return;
  person.set(undefined);
  void greet();
}

/** Tabs share one cookie: whoever signs in or out in one of them does so in all. Some browsers forbid them to talk. */
const tabs = openChannel();
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(`earmark ${address}`);
  } catch {
    return undefined;
  }
}
tabs?.addEventListener("message", ({ data: { name } }: MessageEvent<{ name?: string }>) => {
  if (owner === undefined || isSomebodyElses) return;
  if (name === undefined) askAgain();
  else isOwner(name);
});

/** Tells the other tabs that the person has gone. */
export function sayGoodbye(): void {
  tabs?.postMessage({});
}

function receive(me: Me): boolean {
  tabs?.postMessage({ name: me.name });
  if (!isOwner(me.name)) return false;
  person.set(me);
  return true;
}

/** Learns who is here, however long that takes. */
export async function greet(): Promise<void> {
  for (;;) {
    try {
      receive(await client.me());
      return;
    } catch (error) {
      blame(error);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** For whoever has just signed in: lets everything go on that has waited for it. */
export async function enter(): Promise<void> {
  // Patient: to sign up once more would not do.
  const me = await createClient({ url: address, fetch: ask }).me();
  if (receive(me)) isSignedOut.set(false);
}

/** What went wrong, in words for people. */
export function explain(error: unknown): string {
  const { words } = speech.value;
  if (error instanceof EarmarkError) {
    if (error.status === 403) return words.trouble.forbidden;
    return words.trouble.error(isolate(error.detail ?? error.title));
  }
  return words.trouble.failed;
}
