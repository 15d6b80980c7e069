import { type ErrorObject, failure } from "../../../errors/catalog.ts";
import { isUuidLike, notAnObject } from "../../../jsonapi/document.ts";
import { toJsonError } from "../../../jsonapi/failure.ts";
import { ATOMIC } from "../../../jsonapi/media-type.ts";
import type { Outcome } from "../../../lists/subscription.ts";
import { isObject } from "../../../util/is-object.ts";
import type { StateMeta } from "./changes.ts";
import {
  COLLECTION,
  isMalformed,
  type Malformed,
  MERGE_INTO,
  malformed,
  malformedError,
  type RequestedChange,
  readAddition,
  readRemoval,
  readUpdate,
  refusalError,
  selfLink,
  writeSubscriptionResource,
} from "./resource.ts";

const OPERATIONS = "atomic:operations";

/** What a client asks for with one operation, or why the operation is invalid. */
export type Operation = RequestedChange | Malformed;

/** Throws if the document as a whole is invalid. */
export function readOperations(document: unknown, maxOperations: number, basePath: string): Operation[] {
  if (!isObject(document)) throw notAnObject();
  for (const member of ["data", "errors", "included", "atomic:results"]) {
    if (member in document)
      throw failure("malformed-document", {
        reason: `A document with operations must not have the member \`${member}\``,
        source: { pointer: `/${member}` },
      });
  }
  const operations = document[OPERATIONS];
  if (!Array.isArray(operations)) {
    throw failure("malformed-document", {
      reason: `The document must have an \`${OPERATIONS}\` member that is an array`,
      source: { pointer: OPERATIONS in document ? `/${OPERATIONS}` : "" },
    });
  }
  if (operations.length > maxOperations) {
    throw failure("too-many-operations", {
      items: "operations",
      count: operations.length,
      max: maxOperations,
      source: { pointer: `/${OPERATIONS}` },
      meta: { max: maxOperations },
    });
  }
  return operations.map((operation) => readOperation(operation, basePath));
}

function readOperation(operation: unknown, basePath: string): Operation {
  if (!isObject(operation)) return invalid("it must be an object");
  const { op, data, ref } = operation;
  if (typeof op !== "string") return invalid('`op` must be "add", "update" or "remove"');
  if (op === "remove") {
    if (!isObject(ref) || "relationship" in ref) return invalid("`ref` must be an object with `type` and `id`");
    return checkHref(operation, readRemoval(ref, operation["meta"]), basePath);
  }
  if (op !== "add" && op !== "update") return malformed("unsupported-operation", "");
  if (!isObject(data)) return invalid("`data` must be exactly one resource object");
  if ("ref" in operation && !isSame(ref, data))
    return invalid("`ref` must have the same `type` and `id` as `data`, or be omitted");
  if (op === "update") return checkHref(operation, readUpdate(data), basePath);
  if ("href" in operation && operation["href"] !== basePath + COLLECTION)
    return invalid(`\`href\` must be "${basePath}${COLLECTION}", or be omitted`);
  return readAddition(data);
}

/** Returns the change, unless the operation has an `href` other than the `self` link of its subscription. */
function checkHref(operation: object, change: Operation, basePath: string): Operation {
  if (!("href" in operation) || isMalformed(change)) return change;
  const self = selfLink(change.id, basePath);
  return operation.href === self ? change : invalid(`\`href\` must be "${self}", or be omitted`);
}

function invalid(reason: string): Malformed {
  return malformed("invalid-operation", "", reason);
}

function isSame(ref: unknown, data: Readonly<Record<string, unknown>>): boolean {
  if (!isObject(ref) || "relationship" in ref || ref["type"] !== data["type"]) return false;
  const [refId, dataId] = [ref["id"], data["id"]];
  if (typeof refId !== "string" || typeof dataId !== "string") return false;
  return refId === dataId || (isUuidLike(dataId) && refId.toLowerCase() === dataId.toLowerCase());
}

const HEAD = `{"jsonapi":${JSON.stringify(ATOMIC.jsonapi)},"atomic:results":[`;

/** Result N is the outcome of operation N. For a malformed operation, `outcomes` has the operation itself. */
export function writeResults(
  operations: readonly Operation[],
  outcomes: readonly (Outcome | Malformed)[],
  basePath: string,
  meta: StateMeta,
): string {
  const results = operations.map((operation, index) => writeResult(operation, outcomes[index], index, basePath));
  return HEAD + results.join() + writeEnd(meta);
}

/** The same document in chunks, one for each result. */
export function* writeResultChunks(
  operations: readonly Operation[],
  outcomes: readonly (Outcome | Malformed)[],
  basePath: string,
  meta: StateMeta,
): Generator<string> {
  yield HEAD;
  for (const [index, operation] of operations.entries())
    yield (index === 0 ? "" : ",") + writeResult(operation, outcomes[index], index, basePath);
  yield writeEnd(meta);
}

function writeEnd(meta: StateMeta): string {
  return `],"meta":${JSON.stringify(meta)}}`;
}

function writeResult(
  operation: Operation,
  outcome: Outcome | Malformed | undefined,
  index: number,
  basePath: string,
): string {
  // Pointers name the operation, or its `merge_into`.
  const toPointer = (pointer: string) => `/${OPERATIONS}/${index}${pointer === MERGE_INTO ? pointer : ""}`;
  if (isMalformed(operation)) return writeErrors(malformedError(operation, toPointer));
  if (outcome === undefined || isMalformed(outcome)) throw new Error("the store has no outcome for a valid operation");
  if (outcome.kind === "refused") return writeErrors(refusalError(outcome, operation, toPointer));
  return operation.kind === "remove"
    ? '{"data":null}'
    : `{"data":${writeSubscriptionResource(outcome.subscription, basePath)}}`;
}

function writeErrors(error: ErrorObject): string {
  return `{"errors":[${JSON.stringify(toJsonError(error))}]}`;
}
