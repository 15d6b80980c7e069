import { type ErrorResource, readDocument, readError } from "./documents.ts";
import { EarmarkError, type ErrorObject, invalidResponse, NetworkError } from "./errors.ts";
import { trimEndSlashes } from "./guid.ts";
import type { CallOptions, ClientOptions } from "./types.ts";

export const JSON_API = "application/vnd.api+json";
/** If the server asks for a longer wait, the error is thrown and the caller decides. */
const MAX_WAIT_MS = 120_000;
const MIB = 1_048_576;

export interface Call extends CallOptions {
  readonly method?: string;
  readonly contentType?: string;
  readonly body?: string | Blob;
  /** Whether executing the request twice would do harm. If so, it is retried only if the server certainly did nothing. */
  readonly atMostOnce?: boolean;
  /** An error status that is returned instead of thrown. */
  readonly allowedError?: number;
  /** An import or export: large, and slow. */
  readonly isTransfer?: boolean;
}

export interface TextResponse {
  readonly text: string;
  /** Number of the attempt that succeeded, from 1. */
  readonly attempt: number;
  /** Set for the status in `allowedError`. */
  readonly error?: EarmarkError;
}

export type Send = (path: string, call: Call) => Promise<TextResponse>;

/** Sends a request once, and resolves when the headers of the response have arrived. */
export type PathFetcher = (
  path: string,
  init: RequestInit & { readonly headers: Record<string, string> },
) => Promise<Response>;

export function createFetch({ url, token, fetch: request = fetch }: ClientOptions): PathFetcher {
  const base = trimEndSlashes(new URL(url).href);
  const authorization = token ? { Authorization: `Bearer ${token}` } : {};
  // Following a redirect would turn POST into GET and lose the token.
  return (path, init) =>
    request(base + path, { redirect: "manual", ...init, headers: { ...init.headers, ...authorization } });
}

export function createSend(request: PathFetcher, options: ClientOptions): Send {
  const { retries = 5, onRetry, timeoutMs, maxResponseBytes } = options;

  return async (path, call) => {
    const { method = "GET", contentType, body = null, atMostOnce, allowedError, isTransfer, signal } = call;
    // The wildcard is for OPML files.
    const headers: Record<string, string> = { Accept: `${JSON_API}, */*;q=0.1` };
    if (contentType) headers["Content-Type"] = contentType;
    for (let attempt = 1; ; attempt += 1) {
      signal?.throwIfAborted();
      let error: EarmarkError | NetworkError;
      let canRetry = !atMostOnce;
      let delayMs = 125 * 2 ** attempt * (1 + Math.random());
      try {
        const timeout = AbortSignal.timeout(timeoutMs ?? (isTransfer ? 300_000 : 60_000));
        const response = await request(path, { method, headers, body, signal: anyOf(timeout, signal) });
        const { status } = response;
        const text = await readText(response, maxResponseBytes ?? (isTransfer ? 64 : 8) * MIB);
        if (response.ok) return { text, attempt };
        error = readFailure(response, text);
        if (status === allowedError) return { text, attempt, error };
        // With 502, 503 and 504 the server may have executed part of the request, which must not happen twice if `atMostOnce`.
        canRetry = status === 429 || (canRetry && status >= 502 && status <= 504);
        if (error.retryAfter !== undefined) delayMs = error.retryAfter * 1_000;
      } catch (cause) {
        signal?.throwIfAborted();
        if (cause instanceof EarmarkError) throw cause;
        error = new NetworkError(cause);
      }
      if (!canRetry || attempt > retries || delayMs > MAX_WAIT_MS) throw error;
      onRetry?.({ attempt, delayMs, error });
      await sleep(delayMs, signal);
    }
  };
}

export function anyOf(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

/** Sends a document with one resource object. */
export function sendResource(
  send: Send,
  path: string,
  type: string,
  attributes: object,
  call: Call,
): Promise<TextResponse> {
  return send(path, {
    method: "POST",
    contentType: JSON_API,
    body: JSON.stringify({ data: { type, attributes } }),
    ...call,
  });
}

/** Resolves to false if there is nothing with this id. */
export async function sendDelete(send: Send, path: string, id: string, { signal }: CallOptions): Promise<boolean> {
  const { error } = await send(`${path}/${encodeURIComponent(id)}`, { method: "DELETE", allowedError: 404, signal });
  return error === undefined;
}

/** Counts the bytes while reading: the Content-Length may be wrong, and a compressed body is longer when decompressed. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for (let bytes = 0; reader; ) {
    const { value } = await reader.read();
    if (!value) return new Blob(chunks).text();
    chunks.push(value);
    bytes += value.length;
    if (bytes > maxBytes) {
      await reader.cancel();
      throw invalidResponse("response-too-large", "Response Too Large");
    }
  }
  return response.text();
}

export function readFailure({ status, statusText, headers }: Response, text: string): EarmarkError {
  const after = headers.get("Retry-After") ?? "";
  const seconds = Math.max(0, Number(after) || (Date.parse(after) - Date.now()) / 1_000);
  const retryAfter = Number.isNaN(seconds) ? undefined : seconds;
  const errors = readErrors(text);
  return new EarmarkError({ title: statusText || "Failed", ...errors[0], status }, errors, retryAfter);
}

/** The errors of a document; none if it is another text, such as the error page of a proxy. */
export function readErrors(text: string): readonly ErrorObject[] {
  try {
    return readDocument(text, (document: { readonly errors: readonly ErrorResource[] }) =>
      document.errors.map(readError),
    );
  } catch {
    return [];
  }
}

/** Ends early if the signal is aborted; the caller checks the signal. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end);
  });
}
