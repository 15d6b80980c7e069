import {
  DEVICE_TYPES,
  type Device,
  type DeviceChanges,
  type DeviceType,
  MAX_CAPTION,
} from "../../../apps/app-store.ts";
import { failure } from "../../../errors/catalog.ts";
import { isObject } from "../../../util/is-object.ts";

/**
 * Reads the caption (the name) and the type of a device. If the caption is missing or empty, the device keeps its
 * caption; if the type is missing, it keeps its type.
 */
export function readDevice(document: unknown): DeviceChanges {
  if (!isObject(document))
    throw failure("malformed-document", { reason: "The body must be a JSON object with `caption` and `type`" });
  const { caption, type } = document;
  const text = typeof caption === "string" ? cleanCaption(caption) : "";
  return { ...(text === "" ? {} : { caption: text }), ...(typeof type === "string" ? { type: readType(type) } : {}) };
}

const TYPES: ReadonlySet<string> = new Set(DEVICE_TYPES);

/** Replaces the unknown types that some apps send, because the gPodder app rejects a device list that contains one. */
function readType(type: string): DeviceType {
  const lower = type.toLowerCase();
  return TYPES.has(lower) ? (lower as DeviceType) : "other";
}

function cleanCaption(text: string): string {
  // A code point has at most two code units.
  const start = text.trim().slice(0, 2 * MAX_CAPTION);
  const characters = Array.from(start.toWellFormed().replaceAll(/\p{Cc}/gu, ""));
  return characters.slice(0, MAX_CAPTION).join("").trim();
}

/**
 * The response that lists the devices. All share the account's list, so each has as many subscriptions as the account.
 */
export function writeDevices(devices: readonly Device[], subscriptions: number): string {
  return JSON.stringify(devices.map(({ id, caption, type }) => ({ id, caption, type, subscriptions })));
}

/** The response that lists the sync groups. All devices are in one group, if there are at least two. */
export function writeSyncGroups(devices: readonly Device[]): string {
  const ids = devices.map(({ id }) => id);
  const isGroup = ids.length > 1;
  return JSON.stringify({ synchronized: isGroup ? [ids] : [], "not-synchronized": isGroup ? [] : ids });
}
