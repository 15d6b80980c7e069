import { isObject } from "../util/is-object.ts";
import { readTimestamp, readWholeNumber } from "./action-values.ts";
import { isDeviceId } from "./app-store.ts";
import { ACTION_KINDS, type ActionKind, type UploadedAction } from "./episode-actions.ts";

/** The members of an episode action that are read. */
export const ACTION_MEMBERS: readonly string[] =
  "podcast episode guid device action timestamp position started total".split(" ");

/** An episode action as apps and servers send it. Undefined if it can be none. */
export function readUploadedAction(item: unknown): UploadedAction | undefined {
  if (!isObject(item)) return undefined;
  const { podcast, episode, guid, device } = item;
  const kind = readKind(item["action"]);
  const actedAt = readActionTime(item["timestamp"]);
  if (typeof podcast !== "string" || typeof episode !== "string" || kind === undefined || actedAt === "unreadable")
    return undefined;
  return {
    podcast,
    episode,
    guid: typeof guid === "string" && guid !== "" ? guid : undefined,
    device: typeof device === "string" && isDeviceId(device) ? device : undefined,
    kind,
    actedAt,
    position: readWholeNumber(item["position"]),
    started: readWholeNumber(item["started"]),
    total: readWholeNumber(item["total"]),
  };
}

const KINDS: ReadonlySet<string> = new Set(ACTION_KINDS);

function readKind(value: unknown): ActionKind | undefined {
  const kind = typeof value === "string" ? value.toLowerCase() : "";
  return KINDS.has(kind) ? (kind as ActionKind) : undefined;
}

function readActionTime(value: unknown): Date | "unreadable" | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  return readTimestamp(value) ?? "unreadable";
}
