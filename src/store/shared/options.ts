export interface StoreOptions {
  /** Maximum connections to a database server. */
  readonly connections: number;
  /** Open the file even if a server is running on it. */
  readonly allowRunningServer?: boolean;
  /** Called after each transaction. */
  readonly onCommit?: (operations: number, seconds: number) => void;
  /** Called once if the database is not available yet and the server waits for it. */
  readonly onWaiting?: () => void;
  /** Called with warnings for the administrator at start. */
  readonly onWarning?: (warning: string) => void;
}

export interface MigrateOptions {
  /** Distribute the tables over a cluster. */
  readonly distribute: boolean;
  /** Give the database a new epoch, because its history may have been replaced. */
  readonly newEpoch?: boolean;
}

/** The display name of a database: its URL without user, password and parameters. */
export function displayNameOf(url: string): string {
  return url
    .replace(/^file:/, "")
    .replace(/^(\w+:\/\/)[^@/?#]*@/, "$1")
    .replace(/^(\w+:\/\/[^?]*)\?.*/s, "$1");
}

/** The result of one check, and what to do about it. */
export interface Finding {
  readonly state: "ok" | "warning" | "error";
  readonly what: string;
  readonly advice?: string | undefined;
}
