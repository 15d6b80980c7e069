import { failure } from "../errors.ts";
import { type Draft, isRefusal, type Malformed, type Outcome } from "../subscriptions.ts";
import { writeError } from "./failure.ts";
import { ATOMIC } from "./media-type.ts";
import { COLLECTION, explain, isObject, isUuidLike, notAnObject, readResource, writeResource } from "./resource.ts";

const OPERATIONS = "atomic:operations";

/** Attempt N stands for operation N. Throws where the envelope is at fault; then no operation is carried out. */
export function readOperations(document: unknown, maxOperations: number, base: string): (Draft | Malformed)[] {
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
      reason: `The document must have the member \`${OPERATIONS}\`, an array`,
      source: { pointer: OPERATIONS in document ? `/${OPERATIONS}` : "" },
    });
  }
  if (operations.length > maxOperations) {
    throw failure("too-many-operations", {
      count: operations.length,
      max: maxOperations,
      source: { pointer: `/${OPERATIONS}` },
      meta: { max: maxOperations },
    });
  }
  return operations.map((operation) => readOperation(operation, base));
}

function readOperation(operation: unknown, base: string): Draft | Malformed {
  if (!isObject(operation)) return invalid("it must be an object");
  const { op, data } = operation;
  if (typeof op !== "string") return invalid('`op` must be "add"');
  if (op !== "add") return { refused: "unsupported-operation", at: "" };
  if (!isObject(data)) return invalid("`data` must be exactly one resource object");
  if ("ref" in operation && !isSame(operation["ref"], data))
    return invalid("`ref` must have the same `type` and `id` as `data`, or be omitted");
  if ("href" in operation && operation["href"] !== base + COLLECTION)
    return invalid(`\`href\` must be "${base}${COLLECTION}", or be omitted`);
  return readResource(data);
}

function invalid(reason: string): Malformed {
  return { refused: "invalid-operation", reason, at: "" };
}

function isSame(ref: unknown, data: Readonly<Record<string, unknown>>): boolean {
  if (!isObject(ref) || "relationship" in ref || ref["type"] !== data["type"]) return false;
  const [theirs, ours] = [ref["id"], data["id"]];
  if (typeof theirs !== "string" || typeof ours !== "string") return false;
  return theirs === ours || (isUuidLike(ours) && theirs.toLowerCase() === ours.toLowerCase());
}

const HEAD = `{"jsonapi":${JSON.stringify(ATOMIC.jsonapi)},"atomic:results":[`;

export function writeResults(outcomes: readonly Outcome[], base: string): string {
  let text = "";
  for (const part of writeResultParts(outcomes, base)) text += part;
  return text;
}

/** The same document in parts, one for each result. */
export function* writeResultParts(outcomes: readonly Outcome[], base: string): Generator<string> {
  yield HEAD;
  for (const [index, outcome] of outcomes.entries()) {
    const comma = index === 0 ? "" : ",";
    if (isRefusal(outcome)) {
      const error = explain(outcome, () => `/${OPERATIONS}/${index}`);
      yield `${comma}{"errors":[${JSON.stringify(writeError(error))}]}`;
    } else {
      yield `${comma}{"data":${writeResource(outcome, base)}}`;
    }
  }
  yield "]}";
}
