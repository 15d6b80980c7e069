import { DEVICE_TYPES, type Device, type DeviceChanges, MAX_CAPTION } from "../../../apps/app-store.ts";
import type { NumberedAction } from "../../../apps/episode-actions.ts";
import { failure } from "../../../errors/catalog.ts";
import { type Resource, readAttributes } from "../../../jsonapi/document.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import { writeLinks } from "../../../jsonapi/pages.ts";
import { isObject } from "../../../util/is-object.ts";
import type { ActionListQuery } from "../queries.ts";
import { validateLabel } from "./accounts.ts";

const TYPE = "device";

/** Reads the changes to the device with this id. */
export function readDeviceChanges(document: unknown, id: string): DeviceChanges {
  const { caption, device_type } = readAttributes(document, TYPE);
  const data = isObject(document) ? document["data"] : undefined;
  if (isObject(data) && "id" in data && data["id"] !== id)
    throw failure("malformed-document", {
      reason: "`id` must match the id in the path",
      source: { pointer: "/data/id" },
    });
  return {
    ...(caption === undefined ? {} : { caption: readCaption(caption) }),
    ...(device_type === undefined ? {} : { type: readType(device_type) }),
  };
}

function readCaption(value: unknown): string {
  const problem = typeof value === "string" ? validateLabel(value, MAX_CAPTION) : "must be a string";
  if (problem !== undefined) throwInvalid("caption", problem);
  return value as string;
}

function readType(value: unknown): Device["type"] {
  const type = DEVICE_TYPES.find((each) => each === value);
  return type ?? throwInvalid("device_type", `must be one of ${DEVICE_TYPES.join(", ")}`);
}

function throwInvalid(name: string, problem: string): never {
  throw failure("invalid-attribute", {
    reason: `\`${name}\` ${problem}`,
    source: { pointer: `/data/attributes/${name}` },
  });
}

/** `subscriptions` is the length of the list, which all devices of the account share. */
export function deviceResource({ id, ...device }: Device, subscriptions: number, basePath: string): Resource {
  return {
    type: TYPE,
    id,
    attributes: {
      caption: device.caption,
      device_type: device.type,
      app: device.app === "" ? null : device.app,
      last_sync_at: device.syncedAt.toISOString(),
      subscriptions,
    },
    links: { self: `${basePath}/v1/devices/${id}` },
  };
}

export function writeAction(action: NumberedAction): string {
  const { sequence, podcast, episode, guid = null, device = null, kind, actedAt } = action;
  const { position = null, started = null, total = null, title, publishedAt: published_at } = action;
  return JSON.stringify({
    type: "episode-action",
    id: String(sequence),
    attributes: {
      feed_url: podcast,
      media_url: episode,
      guid,
      device,
      action: kind,
      acted_at: actedAt.toISOString(),
      position,
      started,
      total,
      title,
      published_at,
    },
  });
}

export function writeActionPage(
  { items, total }: { readonly items: readonly NumberedAction[]; readonly total: number },
  query: ActionListQuery,
  basePath: string,
): string {
  const filter = query.feedUrl === undefined ? "" : `&filter[feed_url]=${encodeURIComponent(query.feedUrl)}`;
  const links = writeLinks(`${basePath}/v1/episode-actions`, query, total, filter);
  const data = items.map(writeAction).join(",");
  return `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"links":${links},"data":[${data}],"meta":{"total":${total}}}`;
}
