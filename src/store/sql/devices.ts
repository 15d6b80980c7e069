import type { UserId } from "../../accounts/caller.ts";
import { MAX_SYNC_WEEKS } from "../../alerts/alert-store.ts";
import {
  type Device,
  type DeviceChanges,
  type DeviceType,
  type Installation,
  MAX_DEVICES,
} from "../../apps/app-store.ts";
import { all, insertNew, run, together, type Work, write } from "../shared/database.ts";

const DAY_MS = 24 * 60 * 60_000;

/** The number of a calendar week in UTC, which begins on Monday. The first day of 1970 was a Thursday. */
function weekOf(at: number): number {
  return Math.floor((at / DAY_MS + 3) / 7);
}

/** In the order of their ids. */
export function* readDevices(user: UserId): Work<Device[]> {
  const rows = yield* all<{ id: string; caption: string; type: DeviceType; app: string; synced_at: number }>(
    "select id, caption, type, app, synced_at from earmark.devices where user_id = $1",
    user,
  );
  return rows
    .map(({ synced_at, ...device }) => ({ ...device, syncedAt: new Date(synced_at) }))
    .sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Creates a device that an action refers to, unless there are too many. */
export function* addDevice(user: UserId, id: string, at: number): Work<void> {
  yield* run(
    `insert into earmark.devices (user_id, id, caption, type, app, synced_at)
     select user_id, $2, $2, 'other', '', $3 from earmark.lists where user_id = $1
       and (select count(*) from earmark.devices where user_id = $1) < ${MAX_DEVICES}
     on conflict do nothing`,
    user,
    id,
    at,
  );
}

/** Records a sync of the installation's device, which is created if it is new. */
export function* touchDevice(
  user: UserId,
  { device: id, caption = id, app = "" }: Installation,
  at: number,
): Work<void> {
  if (id === undefined || caption === undefined) return;
  yield* together(
    run(
      `insert into earmark.devices as d (user_id, id, caption, type, app, synced_at, sync_week, sync_weeks)
       values ($1, $2, $3, 'other', $4, $5, $6, 1)
       on conflict (user_id, id) do update set synced_at = greatest(d.synced_at, excluded.synced_at),
         app = coalesce(nullif(excluded.app, ''), d.app),
         sync_weeks = case when d.sync_week < excluded.sync_week and d.sync_weeks < ${MAX_SYNC_WEEKS}
           then d.sync_weeks + 1 else d.sync_weeks end,
         sync_week = greatest(d.sync_week, excluded.sync_week)`,
      user,
      id,
      caption,
      app,
      at,
      weekOf(at),
    ),
    run(
      `delete from earmark.devices where user_id = $1 and id in (
         select id from earmark.devices where user_id = $1 and id <> $2
         order by synced_at desc limit 1000000 offset ${MAX_DEVICES - 1})`,
      user,
      id,
    ),
  );
}

function* changeDevice(user: UserId, id: string, { caption, type }: DeviceChanges): Work<boolean> {
  const changed = yield* run(
    `update earmark.devices set caption = coalesce($3, caption), type = coalesce($4, type)
     where user_id = $1 and id = $2`,
    user,
    id,
    caption ?? null,
    type ?? null,
  );
  return changed === 1;
}

/** Those that exist stay as they are. The number of devices is limited. */
function* importDevices(user: UserId, devices: readonly Device[], at: number): Work<void> {
  const known = new Set((yield* readDevices(user)).map(({ id }) => id));
  const added = devices.filter(({ id }) => !known.has(id)).slice(0, Math.max(0, MAX_DEVICES - known.size));
  yield* insertNew(
    "devices",
    ...added.map(({ id, caption, type, app, syncedAt }) => ({
      user_id: user,
      id,
      caption,
      type,
      app,
      synced_at: Math.min(syncedAt.getTime(), at),
    })),
  );
}

export const DEVICE_WRITES = {
  importDevices: write({ locks: "list", isRepeatable: true }, ({ caller, at }, devices: readonly Device[]) =>
    importDevices(caller.user, devices, at),
  ),
  saveDevice: write(
    { locks: "list", isRepeatable: true },
    function* ({ caller: { user }, at }, installation: Installation, changes: DeviceChanges) {
      yield* touchDevice(user, installation, at);
      yield* changeDevice(user, installation.device ?? "", changes);
    },
  ),
  changeDevice: write({ locks: "list", isRepeatable: true }, ({ caller }, id: string, changes: DeviceChanges) =>
    changeDevice(caller.user, id, changes),
  ),
  forgetDevice: write({ locks: "list" }, function* ({ caller }, id: string) {
    return (yield* run("delete from earmark.devices where user_id = $1 and id = $2", caller.user, id)) === 1;
  }),
} as const;
