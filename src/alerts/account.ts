import { type Alert, days, EVENT_MS } from "./alert.ts";
import { type DeviceActivity, MAX_SYNC_WEEKS, type SignIn } from "./alert-store.ts";

const SILENT_MS = days(14);
const OLD_BACKUP_MS = days(8);

/** Devices that used to sync and have stopped. */
export function deviceAlerts(devices: readonly DeviceActivity[], now: Date): Alert[] {
  return devices
    .filter(({ weeks, syncedAt }) => weeks >= MAX_SYNC_WEEKS && now.getTime() - syncedAt.getTime() >= SILENT_MS)
    .map(({ id, caption, syncedAt }) => ({
      key: `${id} ${syncedAt.toISOString()}`,
      at: new Date(syncedAt.getTime() + SILENT_MS),
      facts: { code: "device-silent", device: caption, since: syncedAt },
      subscriptions: [],
    }));
}

/** New tokens and browsers of the last weeks, whether they have ended or not. */
export function signInAlerts(signIns: readonly SignIn[], now: Date): Alert[] {
  return signIns
    .filter(({ at }) => now.getTime() - at.getTime() < EVENT_MS)
    .map(({ id, kind, label, at }) => ({
      key: id,
      at,
      facts: { code: "new-sign-in", kind, label, on: at },
      subscriptions: [],
    }));
}

/** Backups were made, and are no longer. */
export function backupAlerts(last: Date | undefined, now: Date): Alert[] {
  if (last === undefined || now.getTime() - last.getTime() <= OLD_BACKUP_MS) return [];
  return [
    {
      key: last.toISOString(),
      at: new Date(last.getTime() + OLD_BACKUP_MS),
      facts: { code: "backup-old", last },
      subscriptions: [],
    },
  ];
}
