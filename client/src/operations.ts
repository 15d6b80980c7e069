import { type ResultsDocument, readDocument, readResult, writeOperation } from "./documents.ts";
import { JSON_API, type Send } from "./requests.ts";
import type { CallOptions, Me, Operation, OperationResult } from "./types.ts";

/** Operations per request: few enough to show progress. */
const MAX_OPERATIONS = 1_000;
/** Small enough for the default settings of most proxies. */
const MAX_BODY_BYTES = 1_000_000;
/** Every server allows this many per request, so there is no need to ask for its limits. */
const SAFE_OPERATIONS = 100;

/** The results of one request. */
interface BatchResult {
  readonly results: readonly OperationResult[];
  /** Whether an earlier attempt without a response may have executed the request. */
  readonly isRetry: boolean;
}

/** Sends as many requests as needed, one after another. */
export async function* sendOperations(
  send: Send,
  operations: readonly Operation[],
  { bodyBytes = MAX_BODY_BYTES, operationsPerRequest = SAFE_OPERATIONS, operationsPerMinute }: Partial<Me["limits"]>,
  { batchSize, signal }: CallOptions & { readonly batchSize?: number | undefined },
): AsyncGenerator<BatchResult, void, undefined> {
  const maxBytes = Math.min(MAX_BODY_BYTES, bodyBytes);
  const allowed = Math.min(batchSize || MAX_OPERATIONS, operationsPerRequest, operationsPerMinute ?? Infinity);
  const maxSize = Math.max(1, allowed || 1);
  let size = maxSize;
  for (let sent = 0; sent < operations.length; ) {
    const texts = takeOperations(operations.slice(sent, sent + size), maxBytes);
    const { text, error, attempt } = await send("/v1/operations", {
      method: "POST",
      contentType: `${JSON_API};ext="https://jsonapi.org/ext/atomic"`,
      body: `{"atomic:operations":[${texts.join()}]}`,
      allowedError: 413,
      signal,
    });
    if (error && texts.length > 1) {
      size = texts.length >> 1;
      continue;
    }
    size = Math.min(maxSize, 2 * size);
    // If a single operation is too large for a request, only that operation is refused.
    const results: OperationResult[] = error
      ? [{ outcome: "refused", error }]
      : readDocument(text, (document: ResultsDocument) => texts.map((_, index) => readResult(document, index)));
    yield { results, isRetry: attempt > 1 };
    sent += texts.length;
  }
}

export async function applyOperations(
  send: Send,
  me: (options: CallOptions) => Promise<Me>,
  operations: readonly Operation[],
  { signal }: CallOptions,
): Promise<OperationResult[]> {
  const limits = operations.length > SAFE_OPERATIONS ? (await me({ signal })).limits : {};
  const all: OperationResult[] = [];
  for await (const { results } of sendOperations(send, operations, limits, { signal })) all.push(...results);
  return all;
}

/** The first operations that fit into one request body; at least one. */
function takeOperations(operations: readonly Operation[], maxBytes: number): string[] {
  const texts: string[] = [];
  let bytes = 0;
  for (const operation of operations) {
    const text = JSON.stringify(writeOperation(operation));
    // A UTF-16 code unit takes at most three bytes in UTF-8.
    bytes += 3 * text.length;
    if (texts.length > 0 && bytes > maxBytes) break;
    texts.push(text);
  }
  return texts;
}
