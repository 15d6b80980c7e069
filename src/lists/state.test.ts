import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/properties.ts";
import { isState, readState, stateAtPosition, stateAtSequence } from "./state.ts";

const number = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 2 ** 48 - 1 }));
const user = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const epoch = fc.uint8Array({ minLength: 8, maxLength: 8 });

test("state: any position → 36 characters for URLs and headers, and read back", () => {
  fc.assert(
    fc.property(epoch, user, number, number, (bytes, owner, one, other) => {
      const position = { sequence: Math.min(one, other), removalsAfter: Math.max(one, other) };
      const state = stateAtPosition(bytes, owner, position);
      assert.match(state, /^[A-Za-z0-9_-]{36}$/);
      assert.ok(isState(state));
      assert.deepEqual(readState(state, bytes, owner), position);
    }),
  );
});

test("state: of another user or epoch, or with a changed character → undefined or another position", () => {
  fc.assert(
    fc.property(epoch, user, number, fc.nat({ max: 35 }), (bytes, owner, sequence, at) => {
      const state = stateAtSequence(bytes, owner, sequence);
      assert.equal(readState(state, bytes, owner === 1 ? 2 : owner - 1), undefined);
      const other = Uint8Array.from(bytes, (byte, index) => (index === at % 8 ? byte ^ 1 : byte));
      assert.equal(readState(state, other, owner), undefined);
      const changed = state.slice(0, at) + (state[at] === "A" ? "B" : "A") + state.slice(at + 1);
      const position = readState(changed, bytes, owner);
      assert.notDeepEqual(position, { sequence, removalsAfter: sequence });
    }),
  );
});

test("state: `removalsAfter` below its sequence number → undefined", () => {
  const bytes = new Uint8Array(8);
  assert.equal(readState(stateAtPosition(bytes, 1, { sequence: 2, removalsAfter: 1 }), bytes, 1), undefined);
});

test("state: any other text → not a state", () => {
  const state = stateAtSequence(new Uint8Array(8), 1, 1);
  for (const text of [
    "",
    state.slice(1),
    `${state}A`,
    `${state.slice(1)}=`,
    `${state.slice(1)}+`,
    ` ${state.slice(1)}`,
  ])
    assert.equal(isState(text), false, text);
});
