import { randomBytes } from "node:crypto";

const BYTES = 18;
const SECRET = /^[\w-]{24}$/;

/** 144 random bits, as text without characters that end a link in a message. */
export function newSecret(): string {
  return randomBytes(BYTES).toString("base64url");
}

export function isSecret(text: string): boolean {
  return SECRET.test(text);
}
