import { DETAIL_NAMES } from "../../lists/details.ts";

/** A stored value, independent of the engine: number, text, 16-byte key as hexadecimal digits, bytes, or null. */
export type Value = number | string | Uint8Array | null;
export type Row = readonly Value[];

export interface Table {
  readonly name: string;
  readonly columns: readonly (readonly [name: string, kind: "number" | "text" | "key" | "bytes"])[];
  /** Number of leading columns that form the primary key. */
  readonly keyColumns: number;
  /** How an account's rows are deleted: all at once, in steps, or by a special rule. */
  readonly deletion: "at-once" | "in-steps" | "special";
  /** The column by which a cluster distributes the rows. Tables with `user_id` have all rows of one user on one node. */
  readonly distributedBy: string;
}

/** The names of the tables whose rows are deleted in this way. */
export function tablesByDeletion(deletion: Table["deletion"]): readonly string[] {
  return TABLES.filter((table) => table.deletion === deletion).map(({ name }) => name);
}

const DETAIL_COLUMNS = DETAIL_NAMES.map((name) => [name, "text"] as const);

/** All tables that backups have, in an order in which they can be filled. */
export const TABLES: readonly Table[] = [
  {
    name: "lists",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["total", "number"],
      ["forgotten_sequence", "number"],
      ["has_moves", "number"],
      ["follows_moves", "number"],
      ["last_resend", "number"],
      ["history", "text"],
      ["titles_sequence", "number"],
    ],
    keyColumns: 1,
    deletion: "special",
    distributedBy: "user_id",
  },
  {
    name: "subscriptions",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["id", "key"],
      ["feed", "key"],
      ["feed_url", "text"],
      ["subscribed_at", "number"],
      ["update_sequence", "number"],
      ...DETAIL_COLUMNS,
    ],
    keyColumns: 2,
    deletion: "in-steps",
    distributedBy: "user_id",
  },
  {
    name: "removals",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["id", "key"],
      ["removed_at", "number"],
      ["added_sequence", "number"],
      ["feed_url", "text"],
      ...DETAIL_COLUMNS,
      ["subscribed_at", "number"],
      ["client", "text"],
    ],
    keyColumns: 2,
    deletion: "in-steps",
    distributedBy: "user_id",
  },
  {
    name: "change_sets",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["last_sequence", "number"],
      ["started_at", "number"],
      ["ended_at", "number"],
      ["kind", "text"],
      ["name", "text"],
      ["author", "text"],
      ["act", "text"],
      ["total", "number"],
      ["added", "number"],
      ["updated", "number"],
      ["removed", "number"],
      ["undoes", "number"],
      ["scope", "text"],
    ],
    keyColumns: 2,
    deletion: "in-steps",
    distributedBy: "user_id",
  },
  {
    name: "edits",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["id", "key"],
      ["edited_at", "number"],
      ["size", "number"],
      ["feed_url", "text"],
      ["subscribed_at", "number"],
      ...DETAIL_COLUMNS,
    ],
    keyColumns: 2,
    deletion: "in-steps",
    distributedBy: "user_id",
  },
  {
    name: "erasures",
    columns: [
      ["user_id", "number"],
      ["remaining", "number"],
    ],
    keyColumns: 1,
    deletion: "special",
    distributedBy: "user_id",
  },
  {
    name: "accounts",
    columns: [
      ["user_id", "number"],
      ["name", "text"],
      ["issuer", "text"],
      ["password", "text"],
      ["created_at", "number"],
      ["is_admin", "number"],
      ["disabled_at", "number"],
      ["seen_at", "number"],
      ["totp_secret", "text"],
      ["totp_step", "number"],
    ],
    keyColumns: 1,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "names",
    columns: [
      ["key", "key"],
      ["user_id", "number"],
    ],
    keyColumns: 1,
    deletion: "special",
    distributedBy: "key",
  },
  {
    name: "credentials",
    columns: [
      ["hash", "bytes"],
      ["user_id", "number"],
      ["id", "key"],
      ["kind", "text"],
      ["scope", "text"],
      ["label", "text"],
      ["created_at", "number"],
      ["used_at", "number"],
      ["expires_at", "number"],
      ["passkey_id", "text"],
      ["public_key", "text"],
      ["counter", "number"],
    ],
    keyColumns: 1,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "devices",
    columns: [
      ["user_id", "number"],
      ["id", "text"],
      ["caption", "text"],
      ["type", "text"],
      ["app", "text"],
      ["synced_at", "number"],
      ["sync_week", "number"],
      ["sync_weeks", "number"],
    ],
    keyColumns: 2,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "sync_marks",
    columns: [
      ["user_id", "number"],
      ["kind", "text"],
      ["stamp", "number"],
      ["sequence", "number"],
    ],
    keyColumns: 3,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "sync_clients",
    columns: [
      ["user_id", "number"],
      ["kind", "text"],
      ["client", "text"],
      ["sequence", "number"],
      ["since", "number"],
      ["start_sequence", "number"],
      ["seen_at", "number"],
    ],
    keyColumns: 3,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "feed_spellings",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["feed", "key"],
      ["client", "text"],
      ["url", "text"],
      ["recorded_at", "number"],
      ["list_sequence", "number"],
    ],
    keyColumns: 2,
    deletion: "in-steps",
    distributedBy: "user_id",
  },
  {
    name: "episode_actions",
    columns: [
      ["user_id", "number"],
      ["sequence", "number"],
      ["feed", "key"],
      ["episode", "key"],
      ["kind", "text"],
      ["podcast", "text"],
      ["media_url", "text"],
      ["guid", "text"],
      ["device", "text"],
      ["position", "number"],
      ["started", "number"],
      ["total", "number"],
      ["acted_at", "number"],
      ["beaten_at", "number"],
      ["beaten_position", "number"],
      ["title", "text"],
      ["published_at", "number"],
    ],
    keyColumns: 2,
    deletion: "in-steps",
    distributedBy: "user_id",
  },
  {
    name: "feed_urls",
    columns: [
      ["user_id", "number"],
      ["feed", "key"],
      ["url", "text"],
      ["target", "key"],
      ["leads", "text"],
      ["is_shown", "number"],
      ["is_sighted", "number"],
      ["current_at", "number"],
      ["former_at", "number"],
      ["look_at", "number"],
      ["looks", "number"],
      ["looks_since", "number"],
      ["removed", "text"],
    ],
    keyColumns: 2,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "holdings",
    columns: [
      ["user_id", "number"],
      ["feed", "key"],
      ["client", "text"],
      ["url", "text"],
      ["got", "number"],
      ["ended", "number"],
      ["is_told", "number"],
      ["is_sure", "number"],
      ["is_again", "number"],
    ],
    keyColumns: 3,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "resends",
    columns: [
      ["user_id", "number"],
      ["client", "text"],
      ["feed", "key"],
      ["sequence", "number"],
    ],
    keyColumns: 3,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "refused_moves",
    columns: [
      ["user_id", "number"],
      ["feed", "key"],
      ["target", "key"],
    ],
    keyColumns: 3,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "dismissed_duplicates",
    columns: [
      ["user_id", "number"],
      ["id", "key"],
      ["dismissed_at", "number"],
    ],
    keyColumns: 2,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  {
    name: "links",
    columns: [
      ["user_id", "number"],
      ["id", "key"],
      ["secret", "text"],
      ["kind", "text"],
      ["title", "text"],
      ["folder", "text"],
      ["language", "text"],
      ["excluded", "text"],
      ["own_titles", "number"],
      ["created_at", "number"],
    ],
    keyColumns: 2,
    deletion: "special",
    distributedBy: "user_id",
  },
  {
    name: "link_users",
    columns: [
      ["key", "key"],
      ["user_id", "number"],
    ],
    keyColumns: 1,
    deletion: "special",
    distributedBy: "key",
  },
  {
    name: "sign_ins",
    columns: [
      ["user_id", "number"],
      ["id", "key"],
      ["kind", "text"],
      ["label", "text"],
      ["first_at", "number"],
      ["last_at", "number"],
    ],
    keyColumns: 2,
    deletion: "at-once",
    distributedBy: "user_id",
  },
  // Without artwork, and without what refers to it or to the last response: after a restore, all feeds are due.
  {
    name: "podcasts",
    columns: [
      ["feed", "key"],
      ["title", "text"],
      ["author", "text"],
      ["description", "text"],
      ["homepage_url", "text"],
      ["language", "text"],
      ["podcast_guid", "text"],
      ["status", "text"],
      ["status_since", "number"],
      ["moved_to", "text"],
      ["checked_at", "number"],
      ["failures", "number"],
      ["failure", "text"],
      ["failure_since", "number"],
      ["new_feed_url", "text"],
      ["move_target", "text"],
      ["move_since", "number"],
      ["move_count", "number"],
      ["is_blocked", "number"],
      ["latest_episode_at", "number"],
    ],
    keyColumns: 1,
    deletion: "special",
    distributedBy: "feed",
  },
  {
    name: "audit_log",
    columns: [
      ["acted_at", "number"],
      ["id", "key"],
      ["action", "text"],
      ["actor", "text"],
      ["address", "text"],
      ["target", "text"],
    ],
    keyColumns: 2,
    deletion: "special",
    distributedBy: "id",
  },
];

export function kindOf(table: string, column: string): Table["columns"][number][1] {
  const found = TABLES.find(({ name }) => name === table)?.columns.find(([name]) => name === column);
  if (found === undefined) throw new Error(`${table} has no column ${column}`);
  return found[1];
}

/** A key that sorts before all others. No hash is all zeros. */
export function keyBeforeAll(table: Table): readonly Value[] {
  return table.columns.slice(0, table.keyColumns).map(([, kind]) => FIRST[kind]);
}

const FIRST = { number: -1, text: "", key: "0".repeat(32), bytes: Buffer.alloc(0) } as const;

/** All rows of a database, in one snapshot. */
export interface Source {
  count(table: Table): Promise<number>;
  /** In the order of the primary key, several thousand at a time. */
  rows(table: Table): AsyncIterable<readonly Row[]>;
  close(): Promise<void>;
}

/** An empty database; the rows become visible all at once in `finish`. */
export interface Target extends Source {
  write(table: Table, rows: readonly Row[]): Promise<void>;
  finish(): Promise<void>;
}

/** Access to all rows of a database, for backup, restore and copy. */
export interface Archive {
  read(): Promise<Source>;
  /** Opens the database to fill it. Throws `UserError` if it is not empty. */
  openEmpty(): Promise<Target>;
}
