import { existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Finding } from "../shared/options.ts";

const MIN_FREE_BYTES = 512 * 1024 * 1024;
/** Network file systems by their Linux magic numbers: their locks and syncs are unreliable. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "CIFS",
  4266872130: "SMB2",
  1702057286: "FUSE",
  16914839: "9P",
};

/** Checks the file system of a database file, which need not exist yet. */
export function inspectDisk(path: string): readonly Finding[] {
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  const { type, bavail, bsize } = statfsSync(folder);
  const network = NETWORK_FILE_SYSTEMS[type];
  const free = bavail * bsize;
  const gib = `${(free / 2 ** 30).toFixed(1)} GiB`;
  const findings: Finding[] = [
    network === undefined
      ? { state: "ok", what: "The database is on a local file system" }
      : {
          state: "warning",
          what: `The database is on ${network}`,
          advice: "Locks and syncs are unreliable over a network. Use a local disk or PostgreSQL.",
        },
    free >= MIN_FREE_BYTES
      ? { state: "ok", what: `${gib} of disk space free` }
      : {
          state: "warning",
          what: `Only ${gib} of disk space free`,
          advice: "Free some space: when the disk is full, the server returns 503 for every change.",
        },
  ];
  if (existsSync(path) && (statSync(path).mode & 0o077) !== 0) {
    findings.push({
      state: "warning",
      what: "Other users of this machine can read the database",
      advice: `Private feed URLs contain passwords. Run: chmod 600 ${path}`,
    });
  }
  return findings;
}
