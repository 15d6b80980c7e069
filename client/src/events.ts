import { EarmarkError, invalidResponse } from "./errors.ts";
import { anyOf, type PathFetcher, readFailure, readText, sleep } from "./requests.ts";
import type { CallOptions, EventsOptions, Me } from "./types.ts";

/** The server sends a comment every 20 seconds. Longer silence means a lost connection, or a proxy that buffers. */
const SILENCE_MS = 45_000;
/** Maximum length of an event or an error document. */
const MAX_LENGTH = 65_536;
export const EVENT_STREAM = "text/event-stream";

/** Retrying does not help: the credentials are invalid, or do not allow this. */
export const isAccessDenied = (error: unknown) =>
  error instanceof EarmarkError && (error.status === 401 || error.status === 403);

export async function* watchState(
  request: PathFetcher,
  me: (options: CallOptions) => Promise<Me>,
  { pollMs = 60_000, signal }: EventsOptions,
): AsyncGenerator<string, never, undefined> {
  let last: string | undefined;
  let retryMs = 5_000;
  const assertTemporary = (error: unknown) => {
    signal?.throwIfAborted();
    if (isAccessDenied(error)) throw error;
  };
  for (let failures = 0; ; failures += 1) {
    try {
      const events = streamEvents((silence) =>
        request("/v1/events", { headers: { Accept: EVENT_STREAM }, signal: anyOf(silence, signal) }),
      );
      for await (const { event, data, retry } of events) {
        retryMs = retry ?? retryMs;
        const state = event === "state" && readState(data);
        if (!state) continue;
        // The loop adds 1.
        failures = -1;
        if (state !== last) yield state;
        last = state;
      }
    } catch (error) {
      assertTemporary(error);
    }
    if (failures >= 0) {
      const state = (await me({ signal }).catch(assertTemporary))?.state ?? last;
      if (state && state !== last) yield state;
      last = state;
    }
    // With jitter, because a stopped server disconnects all clients at once.
    const delayMs = failures < 0 ? retryMs : Math.min(pollMs, 1_000 * 2 ** failures);
    await sleep(delayMs * (0.5 + Math.random() / 2), signal);
    signal?.throwIfAborted();
  }
}

interface StreamEvent {
  readonly event: string | undefined;
  readonly data: string;
  /** Milliseconds to wait before reconnecting. */
  readonly retry: number | undefined;
}

/** The events of one stream, until the server ends it. `open` gets a signal that aborts after a long silence. */
export async function* streamEvents(
  open: (silence: AbortSignal) => Promise<Response>,
): AsyncGenerator<StreamEvent, void, undefined> {
  const silence = new AbortController();
  const abort = () => silence.abort();
  let timer = setTimeout(abort, SILENCE_MS);
  try {
    const response = await open(silence.signal);
    if (!response.headers.get("Content-Type")?.startsWith(EVENT_STREAM))
      throw readFailure(response, await readText(response, MAX_LENGTH));
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    for (let text = ""; reader; ) {
      const { value } = await reader.read();
      if (!value) return;
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE_MS);
      const events = (text + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      text = events.pop() ?? "";
      if (text.length > MAX_LENGTH) throw invalidResponse("response-too-large", "Event Too Large");
      yield* events.map(readEvent);
    }
  } finally {
    clearTimeout(timer);
    abort();
  }
}

function readEvent(text: string): StreamEvent {
  const lines = text.matchAll(/^(event|data|retry): ?(.*)$/gm);
  const fields = new Map(Array.from(lines, ([, name, value]) => [name, value]));
  return {
    event: fields.get("event"),
    data: fields.get("data") ?? "",
    retry: Number(fields.get("retry")) || undefined,
  };
}

function readState(data: string): string | undefined {
  const { subscriptions: state } = JSON.parse(data);
  return typeof state === "string" ? state : undefined;
}
