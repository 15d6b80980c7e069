import { failure } from "../errors.ts";
import { parseJson } from "../jsonapi/json.ts";
import { type Operation, readOperations, writeResultParts, writeResults } from "../jsonapi/operations.ts";
import { isMalformed } from "../jsonapi/resource.ts";
import { answerInOrder } from "../subscriptions.ts";
import { readBody } from "./body.ts";
import { Budget, type Reservation } from "./budget.ts";
import { JSON_API_ATOMIC } from "./dialect.ts";
import type { Parser } from "./parser.ts";
import { respond, respondInPieces } from "./respond.ts";
import type { Call } from "./router.ts";
import type { Services } from "./services.ts";

/** The approximate length of an operation. */
const OPERATION_BYTES = 160;
/** Bodies up to this length are parsed on the main thread: the worst of them takes 2 ms. */
const SHORT_BYTES = 32 * 1024;
/** More results than this are sent in pieces, with other requests in between. */
const MAX_RESULTS_AT_ONCE = 1_000;

/** `POST /v1/operations` */
export function createOperationsHandler(
  { config, store, accounts, metrics, clock }: Services,
  parser: Parser,
): (call: Call) => Promise<void> {
  const { limits, basePath } = config;
  const maxQueued = config.maxQueuedOperations * OPERATION_BYTES;
  // Without accounts one owner has the whole queue.
  const queue = new Budget(maxQueued, accounts === undefined ? maxQueued : maxQueued / 2);
  /** The longest body leaves capacity for long bodies of others. */
  const charge = (bytes: number) => Math.min(bytes, maxQueued / 2);

  const read = async (call: Call, place: Reservation): Promise<Operation[]> => {
    const { request, response, caller } = call;
    // An overloaded server has no time to read bodies that it rejects.
    if (!place.fits(charge(Number(request.headers["content-length"] ?? 0)))) throw failure("queue-full");
    const bytes = await readBody(request, response, call.maxBytes);
    if (!place.resize(charge(bytes.length))) throw failure("queue-full");
    const { maxOperations } = limits;
    if (bytes.length <= SHORT_BYTES) {
      const operations = readOperations(parseJson(bytes), maxOperations, basePath);
      await caller.spend(operations.length);
      return operations;
    }
    const job = { kind: "operations", bytes, maxOperations, base: basePath } as const;
    return parser.parse(job, request.owner, caller.spend, () => !response.destroyed);
  };

  return async (call) => {
    const { request, response, caller } = call;
    const place = queue.reserve(request);
    try {
      const operations = await read(call, place);
      const outcomes = await answerInOrder(operations, isMalformed, async (drafts) => {
        return (await store.change(caller, drafts, clock())).outcomes;
      });
      metrics?.countOutcomes(outcomes);
      if (operations.length <= MAX_RESULTS_AT_ONCE)
        respond(response, 200, JSON_API_ATOMIC, writeResults(operations, outcomes, basePath));
      else {
        const headers = { "content-type": JSON_API_ATOMIC.contentType };
        await respondInPieces(request, response, writeResultParts(operations, outcomes, basePath), headers);
      }
    } finally {
      place.release();
    }
  };
}
