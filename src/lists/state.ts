import { hash } from "node:crypto";
import type { UserId } from "../accounts/caller.ts";
import { type ListPosition, positionAt } from "./changes.ts";

const VERSION = 1;
const EPOCH_BYTES = 8;
const USER_BYTES = 6;
const NUMBER_BYTES = 6;
/** A multiple of three bytes, so that both parts can be base64url-encoded separately and unambiguously. */
const PREFIX_BYTES = 1 + EPOCH_BYTES + USER_BYTES;
const STATE = /^[\w-]{36}$/;

/**
 * The state of a list, as clients get it: opaque, and different for every user and for every epoch of a database. A
 * database gets a new epoch when its history may have been replaced.
 */
export function stateAtPosition(epoch: Uint8Array, user: UserId, { sequence, removalsAfter }: ListPosition): string {
  const numbers = Buffer.allocUnsafe(2 * NUMBER_BYTES);
  numbers.writeUIntBE(sequence, 0, NUMBER_BYTES);
  numbers.writeUIntBE(removalsAfter, NUMBER_BYTES, NUMBER_BYTES);
  return writePrefix(epoch, user) + numbers.toString("base64url");
}

let last: { readonly epoch: Uint8Array; readonly user: UserId; readonly text: string } | undefined;

/** The first part of a state: version, epoch and user. Cached, because a response to a write has two states. */
function writePrefix(epoch: Uint8Array, user: UserId): string {
  if (last?.epoch === epoch && last.user === user) return last.text;
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES);
  bytes[0] = VERSION;
  bytes.set(epoch, 1);
  hash("sha256", `${user}`, "buffer").copy(bytes, 1 + EPOCH_BYTES, 0, USER_BYTES);
  last = { epoch, user, text: bytes.toString("base64url") };
  return last.text;
}

/** The state of a list at this sequence number. */
export function stateAtSequence(epoch: Uint8Array, user: UserId, sequence: number): string {
  return stateAtPosition(epoch, user, positionAt(sequence));
}

/** Whether the text has the form of a state. */
export function isState(text: string): boolean {
  return STATE.test(text);
}

/** The position in a state of this user's list; undefined if it belongs to another user or another epoch. */
export function readState(text: string, epoch: Uint8Array, user: UserId): ListPosition | undefined {
  const bytes = Buffer.from(text, "base64url");
  const sequence = bytes.readUIntBE(PREFIX_BYTES, NUMBER_BYTES);
  const position = { sequence, removalsAfter: bytes.readUIntBE(PREFIX_BYTES + NUMBER_BYTES, NUMBER_BYTES) };
  return stateAtPosition(epoch, user, position) === text && sequence <= position.removalsAfter ? position : undefined;
}
