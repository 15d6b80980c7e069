import type { SequenceRange } from "../../lists/list-store.ts";
import { applyAccepted } from "../../util/apply-accepted.ts";
import { JSON_API_ATOMIC } from "../wire/dialect.ts";
import { respond, respondInPieces } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { resolveStateMeta } from "./changes.ts";
import { type Operation, writeResultChunks, writeResults } from "./documents/operations.ts";
import { isMalformed } from "./documents/resource.ts";
import type { Services } from "./services.ts";

/** More results than this are sent in pieces, with other requests in between. */
const MAX_RESULTS_AT_ONCE = 250;

/** `POST /v1/operations` */
export function createOperationsHandler(
  { config: { basePath }, store, outcomes: counter, clock }: Services,
  readOperations: (call: Call) => Promise<Operation[]>,
): (call: Call) => Promise<void> {
  return async (call) => {
    const { request, response, caller } = call;
    const operations = await readOperations(call);
    /** Undefined if no operation was valid. */
    let written: SequenceRange | undefined;
    const outcomes = await applyAccepted(operations, isMalformed, async (changes) => {
      const done = await store.change(caller, changes, clock());
      written = done;
      return done.outcomes;
    });
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
