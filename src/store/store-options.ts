/** What it takes to open a store. */
export interface StoreOptions {
  /** How many connections may be open to a database server. */
  readonly connections: number;
  /** For a moment's work, also while a server runs on the same file. */
  readonly beside?: boolean;
  /** Told after each transaction: how many operations it held, and how long it took. */
  readonly onCommit?: (operations: number, seconds: number) => void;
  /** Told once when the database does not answer yet and is waited for. */
  readonly onWaiting?: () => void;
  /** Told what the operator should know at start. */
  readonly onWarning?: (warning: string) => void;
}

/** A database in words for people: its URL without user, password and parameters. */
export function nameOf(url: string): string {
  return url
    .replace(/^file:/, "")
    .replace(/^(\w+:\/\/)[^@/?#]*@/, "$1")
    .replace(/^(\w+:\/\/[^?]*)\?.*/s, "$1");
}

/** One thing that was looked at, and what to do if it is not well. */
export interface Finding {
  readonly state: "ok" | "warning" | "error";
  readonly what: string;
  readonly advice?: string | undefined;
}
