import { DatabaseSync } from "node:sqlite";
import { KEPT_CHANGES } from "../../src/lists/list.ts";
import type { PostgresServer } from "../../test/support/postgres.ts";

/** A database of either engine, with direct access past the server. */
export interface TargetDb {
  readonly engine: "SQLite" | "PostgreSQL";
  readonly url: string;
  inspect(): Promise<Rows>;
}

/** What the tables contain about the first list. */
export interface Rows {
  /** In list order. */
  readonly ids: readonly string[];
  readonly total: number;
  readonly sequence: number;
  readonly removals: number;
  /** The engine's own integrity check; "ok" when intact. */
  readonly integrity: string;
}

interface Counts {
  readonly total: number;
  readonly sequence: number;
  readonly removals: number;
}

/** Most databases here have one list; for others, only the first is looked at. */
const ofFirst = (schema = "") => `where user_id = (select min(user_id) from ${schema}lists)`;
const NOTHING: Counts = { total: 0, sequence: 0, removals: 0 };

export function sqliteTarget(path: string): TargetDb {
  return {
    engine: "SQLite",
    url: `file:${path}`,
    async inspect() {
      const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
      try {
        database.exec("begin");
        const ids = database
          .prepare(`select lower(hex(id)) as id from subscriptions ${ofFirst()} order by sequence`)
          .all()
          .map(({ id }) => withDashes(String(id)));
        const counts = database
          .prepare(
            `select total, sequence, (select count(*) from removals ${ofFirst()}) as removals from lists ${ofFirst()}`,
          )
          .get() as unknown as Counts | undefined;
        const [integrity] = Object.values(database.prepare("pragma integrity_check").get() ?? {});
        return { ids, ...(counts ?? NOTHING), integrity: String(integrity) };
      } finally {
        database.close();
      }
    },
  };
}

export async function postgresTarget(server: PostgresServer): Promise<TargetDb> {
  const url = await server.database();
  const name = new URL(url).pathname.slice(1);
  const first = ofFirst("earmark.");
  return {
    engine: "PostgreSQL",
    url,
    async inspect() {
      const [row] = await server.query(
        `select (select coalesce(json_agg(id order by sequence), '[]') from earmark.subscriptions ${first}) as ids,
           (select json_build_object('total', total, 'sequence', sequence,
              'removals', (select count(*) from earmark.removals ${first})) from earmark.lists ${first}) as counts`,
        name,
      );
      const { ids, counts } = row as { ids: string[]; counts: Counts | null };
      return { ids, ...(counts ?? NOTHING), integrity: "ok" };
    },
  };
}

function withDashes(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Violations of the list's invariants. Every change takes a sequence number, and a removal keeps that of its addition. */
export function findInconsistencies({ ids, total, sequence, removals, integrity }: Rows): string[] {
  const torn: string[] = [];
  if (integrity !== "ok") torn.push(`the database is damaged: ${integrity}`);
  if (total !== ids.length) torn.push(`the list says ${total} items and has ${ids.length}`);
  const removed = (sequence - ids.length) / 2;
  // Removals before the last 10,000 changes are forgotten.
  const areRecorded =
    sequence <= KEPT_CHANGES ? removed === removals : Number.isInteger(removed) && removed >= removals;
  if (!areRecorded) torn.push(`${ids.length} items and ${removals} removals, but ${sequence} changes`);
  return torn;
}
