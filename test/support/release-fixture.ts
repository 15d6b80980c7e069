import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { startPostgres } from "./postgres.ts";
import { launch } from "./process.ts";

/**
 * Writes databases with the code of a release, for test/upgrade.test.ts:
 *
 *   TEST_POSTGRES_BIN=/usr/lib/postgresql/15/bin node test/support/release-fixture.ts INSTALLATION
 *
 * INSTALLATION is a checkout of the release with its packages installed. PostgreSQL must come with pg_dump.
 */
const FIXTURES = new URL("../fixtures/releases/", import.meta.url);

/** What the clients of a release have seen, and how they sign in. */
export interface ReleaseFixture {
  readonly password: string;
  readonly users: readonly FixtureUser[];
}

interface FixtureUser {
  readonly name: string;
  readonly token: string;
  /** In list order. */
  readonly subscriptions: readonly FixtureItem[];
}

interface FixtureItem {
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

const PASSWORD = "correct horse battery staple";
const ODD_FEEDS = ["https://ann:pässword@private.example/rss", "https://bücher.example/Feed?q=a%2Fb&t=ü"];

type Ask = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  data?: object,
) => Promise<Response>;

function createAsk(server: string): Ask {
  return async (method, path, headers, data) => {
    const body = data === undefined ? null : JSON.stringify({ data });
    const all = { "Content-Type": "application/vnd.api+json", ...headers };
    const response = await fetch(`${server}/v1/${path}`, { method, headers: all, body });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  };
}

/** Somebody signs up, creates a token, subscribes to feeds and removes every seventh. */
async function createUser(ask: Ask, name: string, count: number): Promise<FixtureUser & { readonly cookie: string }> {
  const account = { type: "account", attributes: { name, password: PASSWORD } };
  const cookie = (await ask("POST", "accounts", {}, account)).headers.get("set-cookie")?.replace(/;.*/s, "") ?? "";
  const label = { type: "token", attributes: { label: "phone", scope: "write" } };
  const created = (await (await ask("POST", "tokens", { Cookie: cookie }, label)).json()) as {
    data: { attributes: { token: string } };
  };
  const { token } = created.data.attributes;
  const app = { Authorization: `Bearer ${token}` };
  for (let index = 0; index < count; index += 1) {
    const id = crypto.randomUUID();
    const feed_url = ODD_FEEDS[index] ?? `https://feeds.example/${name}/${index}`;
    await ask("POST", "subscriptions", app, { type: "subscription", id, attributes: { feed_url } });
    if (index % 7 === 6) await ask("DELETE", `subscriptions/${id}`, app);
  }
  const list = (await (await ask("GET", "subscriptions?page[size]=100", app)).json()) as { data: FixtureItem[] };
  const subscriptions = list.data.map(({ id, attributes }) => ({ id, attributes }));
  return { name, token, subscriptions, cookie };
}

async function fillDatabase(installation: string, url: string): Promise<ReleaseFixture> {
  const settings = { DATABASE_URL: url, EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" };
  const server = await launch(settings, [process.execPath, join(installation, "bin", "earmark"), "serve"]).listening;
  const ask = createAsk(server.url);
  const users: FixtureUser[] = [];
  for (const [name, count] of [["ann", 60] as const, ["bob", 3] as const]) {
    const { cookie: _, ...user } = await createUser(ask, name, count);
    users.push(user);
  }
  const { cookie } = await createUser(ask, "carol", 2);
  await ask("DELETE", "me", { Cookie: cookie });
  server.child.kill();
  await server.ended;
  return { password: PASSWORD, users };
}

/** The file as SQL. Integers of 48 bits fit into a number. */
function dumpSqlite(path: string): string {
  const database = new DatabaseSync(path, { readOnly: true });
  const number = (pragma: string) => Object.values(database.prepare(`pragma ${pragma}`).get() ?? {})[0];
  const lines = ["application_id", "user_version"].map((pragma) => `pragma ${pragma} = ${number(pragma)};`);
  for (const { type, name, sql } of database.prepare("select type, name, sql from sqlite_schema").all()) {
    if (sql !== null) lines.push(`${sql};`);
    if (type !== "table") continue;
    for (const row of database.prepare(`select * from ${name}`).all())
      lines.push(`insert into ${name} values (${Object.values(row).map(writeValue).join(", ")});`);
  }
  database.close();
  return `${lines.join("\n")}\n`;
}

function writeValue(value: unknown): string {
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString("hex")}'`;
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

function dumpPostgres(url: string): string {
  const program = join(process.env["TEST_POSTGRES_BIN"] ?? "", "pg_dump");
  const dump = execFileSync(program, ["--inserts", "--no-owner", "--no-privileges", url], { encoding: "utf8" });
  // Commands of psql, comments, and settings that later versions of PostgreSQL may not know.
  return `${dump.replaceAll(/^(\\.*|--.*|SET .*|SELECT pg_catalog.set_config.*|)\n/gm, "")}`;
}

if (import.meta.main) {
  const installation = resolve(process.argv[2] ?? "");
  const { version } = JSON.parse(readFileSync(join(installation, "package.json"), "utf8")) as { version: string };
  const write = (engine: string, fixture: ReleaseFixture, sql: string) => {
    writeFileSync(new URL(`${version}-${engine}.json`, FIXTURES), `${JSON.stringify(fixture, null, 2)}\n`);
    writeFileSync(new URL(`${version}-${engine}.sql`, FIXTURES), sql);
  };
  const cleanups: (() => unknown)[] = [];
  const folder = mkdtempSync(join(tmpdir(), "earmark-release-"));
  try {
    const file = join(folder, "earmark.db");
    write("sqlite", await fillDatabase(installation, `file:${file}`), dumpSqlite(file));
    const postgres = await startPostgres([], (cleanup) => cleanups.push(cleanup));
    const url = await postgres.database();
    write("postgres", await fillDatabase(installation, url), dumpPostgres(url));
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
    rmSync(folder, { recursive: true });
  }
}
