import { parseJson } from "../../jsonapi/json.ts";
import type { SequenceRange } from "../../lists/list-store.ts";
import type { Outcome } from "../../lists/subscription.ts";
import { applyAccepted } from "../../util/apply-accepted.ts";
import { LONG_BYTES, readBody } from "../wire/body.ts";
import { JSON_API_ATOMIC } from "../wire/dialect.ts";
import type { Parser } from "../wire/parser.ts";
import { respond, respondInPieces } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { resolveStateMeta } from "./changes.ts";
import { type Operation, readOperations, writeResultChunks, writeResults } from "./documents/operations.ts";
import { isMalformed, type Malformed } from "./documents/resource.ts";
import type { Services } from "./services.ts";

/** More results than this are sent in pieces, with other requests in between. */
const MAX_RESULTS_AT_ONCE = 250;

interface Applied {
  readonly operations: readonly Operation[];
  readonly outcomes: readonly (Outcome | Malformed)[];
  /** Undefined if no operation was valid. */
  readonly written: SequenceRange | undefined;
}

/** `POST /v1/operations` */
export function createOperationsHandler(
  { config, store, outcomes: counter, clock }: Services,
  parser: Parser,
): (call: Call) => Promise<void> {
  const { limits, basePath } = config;

  /** Parses and applies the operations of a request; long bodies are parsed in a worker thread. */
  const execute = async ({ request, response, caller, maxBytes }: Call): Promise<Applied> => {
    const bytes = await readBody(request, response, maxBytes);
    const { maxOperations } = limits;
    const apply = async (operations: readonly Operation[]) => {
      let written: SequenceRange | undefined;
      const outcomes = await applyAccepted(operations, isMalformed, async (changes) => {
        const done = await store.change(caller, changes, clock());
        written = done;
        return done.outcomes;
      });
      return { operations, outcomes, written };
    };
    if (bytes.length <= LONG_BYTES) {
      const operations = readOperations(parseJson(bytes), maxOperations, basePath);
      await caller.spend(operations.length);
      return apply(operations);
    }
    const job = { kind: "operations", bytes, maxOperations, basePath } as const;
    return parser.parse(job, request.owner, caller.spend, () => !response.destroyed, apply);
  };

  return async (call) => {
    const { request, response, caller } = call;
    const { operations, outcomes, written } = await execute(call);
    counter?.countOutcomes(operations, outcomes);
    const meta = await resolveStateMeta(store, caller.user, written);
    if (operations.length <= MAX_RESULTS_AT_ONCE)
      respond(response, 200, JSON_API_ATOMIC, writeResults(operations, outcomes, basePath, meta));
    else {
      const headers = { "content-type": JSON_API_ATOMIC.contentType };
      await respondInPieces(request, response, writeResultChunks(operations, outcomes, basePath, meta), headers);
    }
  };
}
