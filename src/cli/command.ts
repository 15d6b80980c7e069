import type { Terminal } from "./terminal.ts";

/** Every option: the name of its value, if it has one, and its description. */
export const OPTIONS = {
  help: ["", "Show help"],
  version: ["", "Show the version"],
  quiet: ["", "Print only results and errors"],
  "env-file": ["FILE", "Read settings from a file with NAME=VALUE lines; the environment takes precedence"],
  removed: ["", "List recently removed subscriptions instead of current ones"],
  since: ["", "Also undo everything that came later"],
  find: [
    "",
    "Treat each URL as a web page and subscribe to its first feed; needs --server, because the server fetches the page",
  ],
  attention: ["", "List only subscriptions whose feeds have a problem: since when, and why"],
  failing: ["", "Refresh the feeds that cannot be read"],
  ids: ["", "Also print the id of each subscription"],
  json: ["", "Print one JSON object per line"],
  yes: ["", "Do not ask for confirmation"],
  keep: ["N", "Write a dated file to the folder and keep the N newest; older backups made with --keep are deleted"],
  "keep-access": [
    "",
    "Keep the backup's tokens, sessions, invitations, passkeys, linked identities and secret links valid",
  ],
  "end-access": [
    "",
    "Revoke the backup's tokens, sessions, invitations, passkeys, linked identities and secret links; users must sign in with their passwords and connect their apps again",
  ],
  server: [
    "URL",
    "Connect to the server at this URL; if it has accounts, set EARMARK_TOKEN to a token, or EARMARK_TOKEN_FILE to the path of a file with a token",
  ],
  user: ["NAME", "Account to use, if the database has accounts"],
  account: ["NAME", "With --from: account of the local database to import into, if it has accounts"],
  "dry-run": ["", "Print what would happen and change nothing"],
  "password-stdin": ["", "Read the password from standard input"],
  "revoke-tokens": ["", "Also revoke all tokens, so that apps lose access"],
  revoke: ["", "Remove the role instead"],
  note: ["TEXT", "Note for administrators, such as who the invitation is for"],
  label: ["TEXT", "Label to recognize the token by, such as AntennaPod (required)"],
  "read-only": ["", "Create a token that cannot change anything"],
  days: ["N", "Days until the token expires (default: never)"],
  title: ["TEXT", "Heading of the page or the feed"],
  language: ["CODE", "Language of the texts: en (default), de, es, fr or zh"],
  "own-titles": ["", "Show the titles that you gave instead of the publishers'"],
  folder: ["PATH", "Folder to move to, such as News/Tech"],
  from: ["URL", "Database to copy (required)"],
  to: ["URL", "Empty database to copy to (required)"],
  distribute: ["", "Distribute the tables over a Citus cluster"],
  "new-epoch": [
    "",
    "Invalidate all sync states, so that clients download their lists again; needed after a failover that lost changes, or after restoring the database by means other than 'earmark restore'",
  ],
} as const satisfies Readonly<Record<string, readonly [value: string, meaning: string]>>;

/** Options that every command has. */
export const COMMON_OPTIONS = ["env-file", "quiet", "help"] as const;

export type OptionName = keyof typeof OPTIONS;
export type Options = Readonly<Partial<Record<OptionName, string | boolean>>>;

export interface Command {
  /** Names of the arguments. The last may be `NAME...` for one or more, or `[NAME...]` for any number. */
  readonly operands: readonly string[];
  readonly options: readonly OptionName[];
  /** Descriptions of options that mean something else in this command. */
  readonly meanings?: Readonly<Partial<Record<OptionName, string>>>;
  readonly summary: string;
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** Resolves to an exit code, or to nothing, which means success. */
  readonly run: (terminal: Terminal, options: Options, operands: readonly string[]) => Promise<number> | Promise<void>;
}

/** The value of an option that has one. */
export const stringOption = (option: string | boolean | undefined) => (typeof option === "string" ? option : undefined);
