import { hash } from "node:crypto";
import type { UserId } from "../accounts/caller.ts";
import { type ListPosition, positionAt } from "./changes.ts";

const VERSION = 1;
const EPOCH_BYTES = 8;
const USER_BYTES = 6;
const NUMBER_BYTES = 6;
const PREFIX_BYTES = 1 + EPOCH_BYTES + USER_BYTES;
const STATE = /^[\w-]{36}$/;

/**
 * The state of a list, as clients get it: opaque, and different for every user and for every epoch of a database. A
 * database gets a new epoch when its history may have been replaced.
 */
export function stateAtPosition(epoch: Uint8Array, user: UserId, { sequence, removalsAfter }: ListPosition): string {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + 2 * NUMBER_BYTES);
  bytes[0] = VERSION;
  bytes.set(epoch, 1);
  // Hashing to bytes takes three times as long.
  bytes.write(hash("sha256", `${user}`, "hex").slice(0, 2 * USER_BYTES), 1 + EPOCH_BYTES, "hex");
  bytes.writeUIntBE(sequence, PREFIX_BYTES, NUMBER_BYTES);
  bytes.writeUIntBE(removalsAfter, PREFIX_BYTES + NUMBER_BYTES, NUMBER_BYTES);
  return bytes.toString("base64url");
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
