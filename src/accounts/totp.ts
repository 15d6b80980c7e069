import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Time-based one-time codes (RFC 6238) with what every authenticator app supports, and many apps support nothing else:
 * HMAC-SHA-1, six digits, steps of 30 seconds.
 */

const STEP_MS = 30_000;
const DIGITS = 6;
export const TOTP_SECRET_BYTES = 20;
/** The code of the step before or after is accepted too, for slow people and inaccurate clocks. */
const WINDOW = 1;
/** How many steps the clocks of two processes may be apart. */
const MAX_SKEW = 2;

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** RFC 4648 without padding. The length must be a multiple of five bytes. */
export function toBase32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.replaceAll(/.{5}/g, (five) => BASE32.charAt(Number.parseInt(five, 2)));
}

function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (digit) => BASE32.indexOf(digit).toString(2).padStart(5, "0")).join("");
  return Buffer.from(Array.from(bits.matchAll(/.{8}/g), ([byte]) => Number.parseInt(byte, 2)));
}

export function stepAt(at: Date): number {
  return Math.floor(at.getTime() / STEP_MS);
}

export function totpCode(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac("sha1", fromBase32(secret)).update(counter).digest();
  const number = mac.readUInt32BE((mac.at(-1) ?? 0) & 0xf) & 0x7fff_ffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, "0");
}

/** The step around this time that has this code; undefined if none has. */
export function findStep(secret: string, code: string, at: Date): number | undefined {
  const now = stepAt(at);
  const steps = Array.from({ length: 2 * WINDOW + 1 }, (_, index) => now - WINDOW + index);
  // All are compared, so that the time does not depend on which one it is.
  return steps.filter((step) => timingSafeEqual(Buffer.from(totpCode(secret, step)), Buffer.from(code))).at(-1);
}

/**
 * The highest step that a code can have been used for. A higher one was stored before the clock was set back, and no longer
 * counts: otherwise the user could not sign in until the clock is there again.
 */
export function latestStep(at: Date): number {
  return stepAt(at) + WINDOW + MAX_SKEW;
}

/** What authenticator apps read from a QR code. */
export function provisioningUri(secret: string, name: string): string {
  return `otpauth://totp/Earmark:${encodeURIComponent(name)}?secret=${secret}&issuer=Earmark`;
}
