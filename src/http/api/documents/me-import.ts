import type { Belongings, BroughtIn } from "../../../account-imports/bring-in.ts";
import { DEVICE_TYPES, type Device, isDeviceId, MAX_CAPTION } from "../../../apps/app-store.ts";
import { ACTION_KINDS, type UploadedAction } from "../../../apps/episode-actions.ts";
import { failure } from "../../../errors/catalog.ts";
import { type Attributes, isUuidLike, notAnObject, writeOne } from "../../../jsonapi/document.ts";
import { readDetails } from "../../../lists/details.ts";
import type { FeedToImport } from "../../../lists/imports.ts";
import { isObject } from "../../../util/is-object.ts";
import { forEachInTurns } from "../../../util/turns.ts";
import { validateLabel } from "./accounts.ts";
import { SUBSCRIPTION_TYPE } from "./resource.ts";

/** Of a document of `GET /v1/me/export` that is to be imported. */
export const MAX_EXPORT_BYTES = 64 * 1024 * 1024;

/** What an import takes from the export of an account. */
export type ExportedItem =
  | { readonly kind: "subscription"; readonly feed: FeedToImport }
  | { readonly kind: "action"; readonly action: UploadedAction }
  /** An action of a kind that this version does not know. */
  | { readonly kind: "unknown-action" }
  | { readonly kind: "device"; readonly device: Device };

const READERS: Readonly<Record<string, (resource: Resource) => ExportedItem>> = {
  [SUBSCRIPTION_TYPE]: readSubscription,
  "episode-action": readAction,
  device: readDevice,
};

/** A resource object, and where it is in the document. */
interface Resource {
  readonly id: unknown;
  readonly attributes: Attributes;
  readonly pointer: string;
}

/** Ignores the account itself, its credentials, and what later versions may add. */
export function readAccountExport(document: unknown): ExportedItem[] {
  if (!isObject(document)) throw notAnObject();
  const { data } = document;
  if (!Array.isArray(data)) throw notAnExport("data" in document ? "/data" : "");
  let isExport = false;
  const items = data.flatMap((resource: unknown, index) => {
    const pointer = `/data/${index}`;
    if (!isObject(resource) || typeof resource["type"] !== "string") throw notAnExport(pointer);
    const read = Object.hasOwn(READERS, resource["type"]) ? READERS[resource["type"]] : undefined;
    isExport ||= read !== undefined || resource["type"] === "account";
    if (read === undefined) return [];
    const { id, attributes } = resource;
    if (!isObject(attributes)) throw notAnExport(pointer);
    return read({ id, attributes, pointer });
  });
  if (!isExport) throw notAnExport("/data");
  return items;
}

function notAnExport(pointer: string) {
  const reason = "This is not the export of an account. Send a document that `GET /v1/me/export` has returned";
  return failure("malformed-document", { reason, source: { pointer } });
}

function readSubscription({ id, attributes, pointer }: Resource): ExportedItem {
  if (typeof id !== "string" || !isUuidLike(id)) throw failure("invalid-id", { source: { pointer: `${pointer}/id` } });
  const { former_feed_urls: former = [], ...others } = attributes;
  if (!isTexts(former)) throw invalid(pointer, "former_feed_urls", "must be an array of strings");
  const details = readDetails(others);
  if (details === "title" || details === "folders")
    throw failure(`invalid-${details}`, { source: { pointer: `${pointer}/attributes/${details}` } });
  if (typeof details === "string") throw new Error(`${details} was read before`);
  const feed = {
    ...details,
    ...(former.length === 0 ? {} : { former_feed_urls: former }),
    feedUrl: readText(attributes, "feed_url", pointer),
    id: id.toLowerCase(),
    subscribedAt: readTime(attributes, "user_subscribed_at", pointer),
  };
  return { kind: "subscription", feed };
}

function readAction({ attributes, pointer }: Resource): ExportedItem {
  const name = readText(attributes, "action", pointer);
  const kind = ACTION_KINDS.find((each) => each === name);
  if (kind === undefined) return { kind: "unknown-action" };
  const action = {
    podcast: readText(attributes, "feed_url", pointer),
    episode: readText(attributes, "media_url", pointer),
    guid: readOptionalText(attributes, "guid", pointer),
    device: readOptionalText(attributes, "device", pointer),
    kind,
    actedAt: readTime(attributes, "acted_at", pointer),
    position: readNumber(attributes, "position", pointer),
    started: readNumber(attributes, "started", pointer),
    total: readNumber(attributes, "total", pointer),
  };
  return { kind: "action", action };
}

function readDevice({ id, attributes, pointer }: Resource): ExportedItem {
  if (typeof id !== "string" || !isDeviceId(id)) throw failure("invalid-id", { source: { pointer: `${pointer}/id` } });
  const caption = readText(attributes, "caption", pointer);
  const problem = validateLabel(caption, MAX_CAPTION);
  if (problem !== undefined) throw invalid(pointer, "caption", problem);
  const type = DEVICE_TYPES.find((each) => each === attributes["device_type"]) ?? "other";
  const app = readOptionalText(attributes, "app", pointer) ?? "";
  return {
    kind: "device",
    device: { id, caption, type, app, syncedAt: readTime(attributes, "last_sync_at", pointer) },
  };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function readText(attributes: Attributes, name: string, pointer: string): string {
  const value = attributes[name];
  return typeof value === "string" ? value : throwInvalid(attributes, pointer, name, "must be a string");
}

function readOptionalText(attributes: Attributes, name: string, pointer: string): string | undefined {
  return attributes[name] === undefined || attributes[name] === null ? undefined : readText(attributes, name, pointer);
}

function readNumber(attributes: Attributes, name: string, pointer: string): number | undefined {
  const value = attributes[name];
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? value : throwInvalid(attributes, pointer, name, "must be a number");
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

function readTime(attributes: Attributes, name: string, pointer: string): Date {
  const text = readText(attributes, name, pointer);
  const time = new Date(TIMESTAMP.test(text) ? text : Number.NaN);
  if (Number.isNaN(time.getTime()))
    throw invalid(pointer, name, "must be a timestamp such as 2026-01-02T03:04:05.678Z");
  return time;
}

/** A pointer must lead to a value that exists, so the parent of a missing member is reported. */
function throwInvalid(attributes: Attributes, pointer: string, name: string, problem: string): never {
  if (name in attributes) throw invalid(pointer, name, problem);
  const reason = `\`${name}\` ${problem}`;
  throw failure("invalid-attribute", { reason, source: { pointer: `${pointer}/attributes` } });
}

function invalid(pointer: string, name: string, problem: string) {
  const source = { pointer: `${pointer}/attributes/${name}` };
  return failure("invalid-attribute", { reason: `\`${name}\` ${problem}`, source });
}

/** What an export contains. The time of an action from the future is not known. */
export async function belongingsOf(items: readonly ExportedItem[], now: Date): Promise<Belongings> {
  const [subscriptions, actions, devices]: [FeedToImport[], UploadedAction[], Device[]] = [[], [], []];
  let unreadableActions = 0;
  await forEachInTurns(items, (item) => {
    switch (item.kind) {
      case "subscription":
        return subscriptions.push(item.feed);
      case "action": {
        const { action } = item;
        const isFuture = action.actedAt !== undefined && action.actedAt > now;
        return actions.push(isFuture ? { ...action, actedAt: undefined } : action);
      }
      case "device":
        return devices.push(item.device);
      case "unknown-action":
        unreadableActions += 1;
        return;
    }
  });
  return { subscriptions, actions, unreadableActions, devices };
}

/** In the shape of an import from another server. */
export function writeMeImport(id: string, result: BroughtIn, dryRun: boolean): string {
  const attributes = { url: null, kind: "earmark", dry_run: dryRun, ...result };
  return writeOne({ type: "account-import", id, attributes });
}
