import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";

/**
 * Loaded before a test file, this records each statement that the process sends to PostgreSQL, once, with the values it had,
 * and writes them to the folder TEST_STATEMENTS when the process ends.
 */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

const statements = new Map<string, Statement>();
const { query } = pg.Client.prototype;
const isConfig = (value: unknown): value is { text: string; values?: unknown[] } =>
  typeof value === "object" && value !== null && "text" in value;

pg.Client.prototype.query = function record(this: pg.Client, ...args: unknown[]) {
  const [first, second] = args;
  const text = isConfig(first) ? first.text : String(first);
  const values = (isConfig(first) ? first.values : Array.isArray(second) ? second : undefined) ?? [];
  if (/^\W*(select|insert|update|delete|with)\b/i.test(text) && text.includes("earmark."))
    statements.set(text, { text, values });
  return Reflect.apply(query, this, args);
} as typeof query;

process.on("exit", () => {
  const folder = process.env["TEST_STATEMENTS"];
  if (folder !== undefined && statements.size > 0)
    writeFileSync(join(folder, `${randomUUID()}.json`), JSON.stringify([...statements.values()]));
});
