import type { Alert } from "../../../client/src/index.ts";
import { client } from "../server/server.ts";
import { createState } from "../state/state.ts";
import { storage } from "../state/storage.ts";
import { getLanguage } from "../words/index.ts";

const SEEN = "seen-alerts";
const REFRESH_MS = 10 * 60_000;

/** Undefined until they are loaded. */
export const alerts = createState<readonly Alert[] | undefined>(undefined);
/** Ids of the alerts that were shown in this browser. */
export const seen = createState<ReadonlySet<string>>(readSeen());
storage.watch(SEEN, () => seen.set(readSeen()));

function readSeen(): ReadonlySet<string> {
  return new Set((storage.get(SEEN) ?? "").split(" ").filter((id) => id !== ""));
}

export async function loadAlerts(): Promise<void> {
  alerts.set(await client.alerts({ language: getLanguage() }));
}

/** The alerts that are shown now; those that no longer exist are forgotten. */
export function markSeen(shown: readonly Alert[]): void {
  const ids = shown.map(({ id }) => id);
  if (ids.length === seen.value.size && ids.every((id) => seen.value.has(id))) return;
  storage.set(SEEN, ids.join(" "));
  seen.set(new Set(ids));
}

let timer: ReturnType<typeof setInterval> | undefined;

/** Loads alerts now and then. While the server is unavailable, what is known stays. */
export function watchAlerts(): void {
  if (timer !== undefined) return;
  const load = () => {
    if (document.visibilityState === "visible") void loadAlerts().catch(() => {});
  };
  timer = setInterval(load, REFRESH_MS);
  load();
}
