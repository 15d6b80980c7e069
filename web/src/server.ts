import { createClient, EarmarkError, type Me, NetworkError } from "../../client/src/index.ts";
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
export const trouble = createState<"unreachable" | "busy" | undefined>(undefined);

/** A server that says nothing for so long is gone. */
const SILENCE_MS = 60_000;
const RETRY_MS = 10_000;
let isLeaving = false;
addEventListener("pagehide", () => {
  isLeaving = true;
});
addEventListener("pageshow", ({ persisted }) => {
  isLeaving = false;
  if (!persisted || person.value === undefined) return;
  // The browser had kept the page, and whoever comes back to it may be somebody else: nothing is shown until that is known.
  person.set(undefined);
  void greet();
});

/** One request, and whatever is answered. */
async function ask(url: string, init: RequestInit): Promise<Response> {
  const timeout = AbortSignal.timeout(SILENCE_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const response = await fetch(url, { ...init, signal, keepalive: isLeaving });
  if (response.status < 500 && response.status !== 429) trouble.set(undefined);
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

export const client = createClient({
  url: address,
  fetch: request,
  onRetry: ({ error }) => trouble.set(error instanceof NetworkError ? "unreachable" : "busy"),
});

/** For a person who waits: it says at once what is wrong, and leaves it to the person to try again. */
export const prompt = createClient({ url: address, fetch: request, retries: 0 });

/** For those who come and go, who are not asked to sign in first. */
export const door = createClient({ url: address, fetch: ask, retries: 0 });

/** Whose data is in this page, even while it is not shown. */
let owner: string | undefined;

/** False for somebody else: nothing that one person has left here is for another, so the page starts over. */
function isOwner(name: string): boolean {
  owner ??= name;
  if (owner === name) return true;
  tabs.onmessage = null;
  location.reload();
  return false;
}

/** Tabs share one cookie: whoever signs in in one of them is signed in in all. */
const tabs = new BroadcastChannel(`earmark ${address}`);
tabs.onmessage = ({ data }) => owner !== undefined && isOwner(data);

function receive(me: Me): boolean {
  tabs.postMessage(me.name);
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
      trouble.set(error instanceof NetworkError ? "unreachable" : "busy");
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
    return words.trouble.error(error.detail ?? error.title);
  }
  return words.trouble.failed;
}
