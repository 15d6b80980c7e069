import { anyText, fc } from "./properties.ts";

const MEMBERS = [
  "atomic:operations",
  "data",
  "op",
  "add",
  "type",
  "subscription",
  "id",
  "attributes",
  "feed_url",
  "ref",
  "href",
  "meta",
];

/** Bodies that look more or less like documents with operations; `familiar` are values that mean something in one. */
export function oddBodies(familiar: readonly string[]): fc.Arbitrary<string | Uint8Array> {
  const member = fc.constantFrom(...MEMBERS);
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      fc.constant(null),
      fc.boolean(),
      fc.double(),
      fc.string(),
      anyText,
      member,
      fc.constantFrom(...familiar),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(member, tie("value"), { maxKeys: 6 }),
    ),
  }));
  return fc.oneof(
    value.map((inner) => JSON.stringify({ "atomic:operations": inner })),
    value.map((inner) => JSON.stringify(inner)),
    fc.array(value, { maxLength: 5 }).map((inner) => JSON.stringify({ "atomic:operations": inner })),
    fc.string(),
    fc.uint8Array({ maxLength: 200 }),
  );
}
