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
let isLeaving = false;
addEventListener("pagehide", () => {
  isLeaving = true;
});
addEventListener("pageshow", () => {
  isLeaving = false;
});

/**
 * A session can end in the middle of anything. So whatever was asked waits until the person has signed in, and is then
 * asked again.
 */
async function request(url: string, init: RequestInit): Promise<Response> {
  const isSigningIn = init.method === "POST" && /\/v1\/(sessions|accounts)$/.test(url);
  for (;;) {
    const timeout = AbortSignal.timeout(SILENCE_MS);
    const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
    const response = await fetch(url, { ...init, signal, keepalive: isLeaving });
    if (response.status < 500 && response.status !== 429) trouble.set(undefined);
    if (response.status !== 401 || isSigningIn || accounts === "off") return response;
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
export const door = createClient({ url: address, fetch: request, retries: 0 });

/** Learns who is here, and lets everything go on that has waited for it. */
export async function greet(): Promise<void> {
  if (isSignedOut.value) isSignedOut.set(false);
  person.set(await client.me());
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
