import { UserError } from "../../util/user-error.ts";

/** The schema version of 0.2.0, the first one that can be migrated. */
export const BASE_VERSION = 10;

export function isTooOld(version: number): boolean {
  return version > 0 && version < BASE_VERSION;
}

export function refuseOldSchema(version: number, database: string): void {
  if (!isTooOld(version)) return;
  throw new UserError(
    `${database} was written by an Earmark before 0.2.0 (schema version ${version}). It was not changed; start Earmark 0.2.0 with it once, which migrates it, or restore it with 0.2.0 if it is a backup.`,
  );
}
