import type { UserId } from "../../accounts/caller.ts";
import { type DeviceChanges, type Installation, MAX_DEVICES } from "../../apps/app-store.ts";
import type { Connection } from "./connection.ts";

/** Creates a device that an action refers to, unless there are too many. */
export async function addDevice(connection: Connection, user: UserId, id: string, at: Date): Promise<void> {
  await connection.query(
    `insert into earmark.devices (user_id, id, caption, type, app, synced_at)
     select user_id, $2, $2, 'other', '', $3 from earmark.lists where user_id = $1
       and (select count(*) from earmark.devices where user_id = $1) < ${MAX_DEVICES}
     on conflict do nothing`,
    [user, id, at.getTime()],
  );
}

/** False if there is no such device. */
export async function changeDevice(
  connection: Connection,
  user: UserId,
  id: string,
  { caption, type }: DeviceChanges,
): Promise<boolean> {
  const { rowCount } = await connection.query(
    `update earmark.devices set caption = coalesce($3, caption), type = coalesce($4, type)
     where user_id = $1 and id = $2`,
    [user, id, caption ?? null, type ?? null],
  );
  return rowCount === 1;
}

/** Records a sync of the client's device, which is created if it is new. */
export async function touchDevice(
  connection: Connection,
  user: UserId,
  { device: id, caption = id, app = "" }: Installation,
  at: Date,
): Promise<void> {
  if (id === undefined) return;
  await connection.query(
    `insert into earmark.devices as d (user_id, id, caption, type, app, synced_at) values ($1, $2, $3, 'other', $4, $5)
     on conflict (user_id, id) do update set synced_at = greatest(d.synced_at, excluded.synced_at),
       app = case when excluded.app = '' then d.app else excluded.app end`,
    [user, id, caption, app, at.getTime()],
  );
  await connection.query(
    `delete from earmark.devices where user_id = $1 and id in (
       select id from earmark.devices where user_id = $1 and id <> $2 order by synced_at desc offset ${MAX_DEVICES - 1})`,
    [user, id],
  );
}
