import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { Accounts } from "../../src/accounts/accounts.ts";
import { asUser } from "../../src/accounts/caller.ts";
import { isAccountRefusal } from "../../src/accounts/refusals.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import { createAccount } from "./accounts.ts";
import { lines, runInProcess, serveInProcess, withStore } from "./commands.ts";
import { sharedPostgres } from "./postgres.ts";
import { type Ended, run, type Server, start } from "./process.ts";
import { ATOMIC, add, callServer, type HttpResponse, newId, PLAIN, temporaryFolder } from "./server.ts";

export type Settings = Readonly<Record<string, string>>;

export const PASSWORD = "correct horse battery";
export const OTHER_PASSWORD = "staple, not a battery";
export const TOKEN = /^emk_[\w-]{43}\n$/;
export const WITH_ACCOUNTS = { EARMARK_ACCOUNTS: "true" };
/** Most tests wait for one process at a time. */
export const CONCURRENT = { concurrency: 2 };

export const postgres = await sharedPostgres();
export const newFile = async () => `file:${temporaryFolder()}/earmark.db`;
export const ENGINES: readonly (readonly [name: string, newDatabase: () => Promise<string>])[] = [
  ["SQLite", newFile],
  ["PostgreSQL", () => postgres.database()],
];

interface Given {
  readonly input?: string;
  readonly settings?: Settings;
}

/** Runs a command on a database, in this process. */
export const earmark = (database: string, args: readonly string[], { input, settings }: Given = {}) =>
  runInProcess(args, { DATABASE_URL: database, ...settings }, undefined, input);

/** Runs the program on a database, for tests that need a separate process. */
export const earmarkProcess = (database: string, args: readonly string[], { input, settings }: Given = {}) =>
  run(args, { DATABASE_URL: database, ...settings }, undefined, input);

/** A command that has to succeed; returns its data. */
export async function succeed(database: string, args: readonly string[], input = ""): Promise<string> {
  const { code, stdout, stderr } = await earmark(database, args, { input });
  assert.equal(code, 0, stderr);
  assert.notEqual(stderr + stdout, "");
  return stdout;
}

export const addUser = (database: string, name: string, password = PASSWORD) =>
  succeed(database, ["user", "add", name, "--password-stdin"], `${password}\n`);

export async function createToken(database: string, name: string, ...options: readonly string[]): Promise<string> {
  const stdout = await succeed(database, ["token", "create", name, "--label", "an app", ...options]);
  assert.match(stdout, TOKEN);
  return stdout.trim();
}

/** All users, or the tokens of one user, from `--json`. */
export async function list(database: string, ...command: readonly string[]): Promise<Record<string, unknown>[]> {
  const ended = await earmark(database, [...command, "--json", "--quiet"]);
  assert.deepEqual([ended.code, ended.stderr], [0, ""]);
  return lines(ended).map((line) => JSON.parse(line));
}

/** Works on a database without starting the program, which is much faster. */
export const within = <T>(database: string, work: (accounts: Accounts, store: Store) => Promise<T>) =>
  withStore(database, (store) => work(new Accounts(store.accounts, { signUp: false }), store));

export const namesOf = (database: string) =>
  withStore(database, async (store) => {
    const { accounts } = await store.administration.page({ offset: 0, size: 100 });
    return accounts.map(({ name }) => name).sort();
  });

/** Creates an account with a token. */
export const prepare = (database: string, name: string, password = PASSWORD) =>
  within(database, async (accounts, store) => {
    const { user } = await createAccount(store, { name, password }, new Date());
    const wish = { label: "an app", scope: "write", expiresAt: undefined } as const;
    const opened = await accounts.createToken(asUser(user), wish, new Date());
    assert.ok(!isAccountRefusal(opened));
    return opened.secret;
  });

export const serve = (database: string, settings: Settings = {}) =>
  serveInProcess({ DATABASE_URL: database, ...WITH_ACCOUNTS, ...settings });

/** A server in a process of its own, for tests of several processes on one database. */
export const serveProcess = (database: string, settings: Settings = {}) =>
  start({ DATABASE_URL: database, ...WITH_ACCOUNTS, ...settings });

export async function stop(...servers: readonly Server[]): Promise<void> {
  assert.deepEqual(
    await Promise.all(servers.map((server) => server.stop())),
    servers.map(() => 0),
  );
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
export const me = ({ port }: Server, headers: Settings) => callServer(port, "GET", "/v1/me", { headers });
export const statusOfToken = async ({ port }: Server, token: string) =>
  (await callServer(port, "GET", "/v1/subscriptions", { headers: bearer(token) })).status;

export const post = ({ port }: Server, path: string, type: string, attributes: object) =>
  callServer(port, "POST", path, {
    headers: { "Content-Type": PLAIN },
    body: JSON.stringify({ data: { type, attributes } }),
  });
export const signIn = (server: Server, name: string, password: string) =>
  post(server, "/v1/sessions", "session", { name, password });
export const signUp = (server: Server, invitation: string, name: string) =>
  post(server, "/v1/accounts", "account", { name, password: PASSWORD, invitation });

export function cookieOf(response: HttpResponse): Settings {
  const [cookie = ""] = response.headers["set-cookie"] ?? [];
  return { Cookie: cookie.split(";")[0] ?? "" };
}

export function subscribe({ port }: Server, count: number, headers: Settings = {}): Promise<HttpResponse> {
  const operations = Array.from({ length: count }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}`);
  });
  return callServer(port, "POST", "/v1/operations", {
    headers: { "Content-Type": ATOMIC, ...headers },
    body: JSON.stringify({ "atomic:operations": operations }),
  });
}

export async function feedsOf({ port }: Server, headers: Settings = {}): Promise<string[]> {
  const { status, json } = await callServer(port, "GET", "/v1/subscriptions", { headers });
  assert.equal(status, 200);
  return json.data.map((item: { attributes: { feed_url: string } }) => item.attributes.feed_url);
}

/**
 * Runs a command at a simulated terminal: Node has no pseudo terminals. `<silent>` and `<echo>` mark where echo was
 * switched off and on. Types each text as soon as the prompt before it appears; undefined ends the input.
 */
export async function atTerminal(
  database: string,
  args: readonly string[],
  typing: readonly (readonly [prompt: string, text: string | undefined])[],
): Promise<Ended> {
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  const setRawMode = (isRaw: boolean) => stderr.write(isRaw ? "<silent>" : "<echo>");
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode });
  const rest = [...typing];
  let unseen = "";
  stderr.on("data", (chunk) => {
    unseen += chunk;
    const [prompt, text] = rest[0] ?? [];
    if (prompt === undefined || !unseen.includes(prompt)) return;
    unseen = "";
    rest.shift();
    if (text === undefined) stdin.end();
    else stdin.write(text);
  });
  const ended = await runInProcess(args, { DATABASE_URL: database }, undefined, stdin, stderr);
  assert.deepEqual(rest, [], `everything was asked for: ${ended.stderr}`);
  return ended;
}

export const CTRL_C = "\u0003";
export const CTRL_D = "\u0004";
