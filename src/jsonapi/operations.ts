import { type Draft, isRefusal, type Malformed, type Outcome } from "../subscriptions.ts";
import { malformedDocument, RequestFailure, writeError } from "./failure.ts";
import { ATOMIC } from "./media-type.ts";
import { COLLECTION, explain, isObject, isUuidLike, readResource, writeResource } from "./resource.ts";

const OPERATIONS = "atomic:operations";

/** Attempt N stands for operation N. Throws where the envelope is at fault; then no operation is carried out. */
export function readOperations(document: unknown, maxOperations: number, base: string): (Draft | Malformed)[] {
  if (!isObject(document)) throw malformedDocument("The document must be a JSON object.", "");
  for (const member of ["data", "errors", "included", "atomic:results"]) {
    if (member in document)
      throw malformedDocument(`A document with operations must not have the member \`${member}\`.`, `/${member}`);
  }
  const operations = document[OPERATIONS];
  if (!Array.isArray(operations)) {
    throw malformedDocument(
      `The document must have the member \`${OPERATIONS}\`, an array.`,
      OPERATIONS in document ? `/${OPERATIONS}` : "",
    );
  }
  if (operations.length > maxOperations) {
    throw new RequestFailure({
      status: 413,
      title: "Too Many Operations",
      detail: `A request may hold at most ${maxOperations} operations, and this one holds ${operations.length}. Send them in several requests.`,
      source: { pointer: `/${OPERATIONS}` },
      meta: { max: maxOperations },
    });
  }
  return operations.map((operation) => readOperation(operation, base));
}

function readOperation(operation: unknown, base: string): Draft | Malformed {
  if (!isObject(operation)) return invalid("An operation must be an object.");
  const { op, data } = operation;
  if (typeof op !== "string") return invalid('`op` must be "add".');
  if (op !== "add") {
    return { refused: "unsupported-operation", detail: 'The only `op` that is supported is "add".', at: "" };
  }
  if (!isObject(data)) return invalid("`data` must be exactly one resource object.");
  if ("ref" in operation && !isSame(operation["ref"], data))
    return invalid("`ref` must name the same `type` and `id` as `data`, or be left out.");
  if ("href" in operation && operation["href"] !== base + COLLECTION)
    return invalid(`\`href\` must be "${base}${COLLECTION}", or be left out.`);
  return readResource(data);
}

function invalid(detail: string): Malformed {
  return { refused: "invalid-operation", detail, at: "" };
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
