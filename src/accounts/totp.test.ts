import assert from "node:assert/strict";
import { test } from "node:test";
import { findStep, latestStep, provisioningUri, stepAt, toBase32, totpCode } from "./totp.ts";

/** The secret of the RFCs. */
const SECRET = toBase32(Buffer.from("12345678901234567890"));
const at = (seconds: number) => new Date(seconds * 1_000);

test("totp: base32 → as in RFC 4648", () => {
  assert.equal(toBase32(Buffer.from("fooba")), "MZXW6YTB");
  assert.equal(SECRET, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
});

test("totp: the examples of RFC 6238 → their last six digits", () => {
  const examples: readonly (readonly [seconds: number, code: string])[] = [
    [59, "94287082"],
    [1_111_111_109, "07081804"],
    [1_111_111_111, "14050471"],
    [1_234_567_890, "89005924"],
    [2_000_000_000, "69279037"],
    [20_000_000_000, "65353130"],
  ];
  for (const [seconds, code] of examples) assert.equal(totpCode(SECRET, stepAt(at(seconds))), code.slice(-6));
});

test("totp: the examples of RFC 4226 → their codes", () => {
  const codes = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"];
  assert.deepEqual(
    codes.map((_, step) => totpCode(SECRET, step)),
    codes,
  );
});

test("totp: a code → found at its step, the one before and the one after", () => {
  const step = 41_152_263;
  const code = totpCode(SECRET, step);
  const found = [-60, -31, -30, -1, 0, 29, 30, 59, 60].map((offset) => findStep(SECRET, code, at(step * 30 + offset)));
  const [no, yes] = [undefined, step];
  assert.deepEqual(found, [no, no, yes, yes, yes, yes, yes, yes, no]);
});

test("totp: the latest step that can have been used → a little ahead of the clock", () => {
  assert.equal(latestStep(at(3_000)) - stepAt(at(3_000)), 3);
});

test("totp: a name with special characters → encoded in the URI", () => {
  assert.equal(provisioningUri("ABC", "a+b@c"), "otpauth://totp/Earmark:a%2Bb%40c?secret=ABC&issuer=Earmark");
});
