import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { isRefused } from "../../src/account-refusals.ts";
import type { Store } from "../../src/account-store.ts";
import { Accounts } from "../../src/accounts.ts";
import { openStore } from "../../src/store/engines.ts";
import { asUser } from "../../src/subscriptions.ts";
import { runInProcess } from "./commands.ts";
import { sharedPostgres } from "./postgres.ts";
import { type Ended, type RunningServer, run, SERVE, start } from "./process.ts";
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
  const { code, stdout, stderr } = await earmark(database, [...command, "--json", "--quiet"]);
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** Works on a database without starting the program, which is much faster. */
export async function within<T>(database: string, work: (accounts: Accounts, store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(database, { connections: 1, allowRunningServer: true });
  try {
    return await work(new Accounts(store.accounts, { signUp: false }), store);
  } finally {
    await store.close();
  }
}

export const namesOf = (database: string) =>
  within(database, async (_accounts, store) => {
    const { people } = await store.people.page({ offset: 0, size: 100 });
    return people.map(({ name }) => name).sort();
  });

/** Creates an account with a token. */
export const prepare = (database: string, name: string, password = PASSWORD) =>
  within(database, async (accounts) => {
    const made = await accounts.create(name, password, new Date());
    assert.ok(!isRefused(made));
    const wish = { label: "an app", scope: "write", expiresAt: undefined } as const;
    const opened = await accounts.createToken(asUser(made.user), wish, new Date());
    assert.ok(!isRefused(opened));
    return opened.secret;
  });

/** A few at a time, because a command spends most of its time on one core. */
export async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

/** The passwords among them that sign in. */
export const passwordsOf = (database: string, name: string, candidates: readonly string[]) =>
  within(database, async (accounts) => {
    const right: string[] = [];
    for (const password of candidates) {
      const opened = await accounts.signIn({ name, password, networks: ["test"], label: "test" }, new Date());
      if (!isRefused(opened)) right.push(password);
    }
    return right;
  });

export const serve = (database: string, settings: Settings = {}) =>
  start({ DATABASE_URL: database, ...WITH_ACCOUNTS, ...settings });

export async function stop(...servers: readonly RunningServer[]): Promise<void> {
  for (const { child } of servers) child.kill("SIGTERM");
  for (const { ended } of servers) assert.equal(await ended, 0);
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
export const me = ({ port }: RunningServer, headers: Settings) => callServer(port, "GET", "/v1/me", { headers });
export const statusOfToken = async ({ port }: RunningServer, token: string) =>
  (await callServer(port, "GET", "/v1/subscriptions", { headers: bearer(token) })).status;

export const post = ({ port }: RunningServer, path: string, type: string, attributes: object) =>
  callServer(port, "POST", path, {
    headers: { "Content-Type": PLAIN },
    body: JSON.stringify({ data: { type, attributes } }),
  });
export const signIn = (server: RunningServer, name: string, password: string) =>
  post(server, "/v1/sessions", "session", { name, password });
export const signUp = (server: RunningServer, invitation: string, name: string) =>
  post(server, "/v1/accounts", "account", { name, password: PASSWORD, invitation });

export function cookieOf(response: HttpResponse): Settings {
  const [cookie = ""] = response.headers["set-cookie"] ?? [];
  return { Cookie: cookie.split(";")[0] ?? "" };
}

export function subscribe({ port }: RunningServer, count: number, headers: Settings = {}): Promise<HttpResponse> {
  const operations = Array.from({ length: count }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}`);
  });
  return callServer(port, "POST", "/v1/operations", {
    headers: { "Content-Type": ATOMIC, ...headers },
    body: JSON.stringify({ "atomic:operations": operations }),
  });
}

export async function feedsOf({ port }: RunningServer, headers: Settings = {}): Promise<string[]> {
  const { status, json } = await callServer(port, "GET", "/v1/subscriptions", { headers });
  assert.equal(status, 200);
  return json.data.map((item: { attributes: { feed_url: string } }) => item.attributes.feed_url);
}

/** Starts a server and reads its standard error, which is complete: the server has answered a request since. */
export async function serveWithStderr(
  database: string,
  settings: Settings = {},
): Promise<{ server: RunningServer; log: string; stderr: string; secret: string | undefined }> {
  const file = join(temporaryFolder(), "stderr");
  const command = ["/bin/sh", "-c", `exec "$@" 2>"${file}"`, "sh", ...SERVE];
  const server = await start({ DATABASE_URL: database, ...WITH_ACCOUNTS, ...settings }, command);
  await callServer(server.port, "GET", "/readyz");
  const stderr = readFileSync(file, "utf8");
  return { server, log: server.output(), stderr, secret: /http:\S+\/join#(\S+)/.exec(stderr)?.[1] };
}

export type Case = readonly [args: readonly string[], code: number, words: RegExp];

/** Expects no data, this exit code, and a message that gives the reason. */
export const assertAllRefused = (database: string, cases: readonly Case[]) =>
  forEach(cases, async ([args, code, words]) => {
    const ended = await earmark(database, args, { input: PASSWORD });
    assert.deepEqual([ended.code, ended.stdout], [code, ""], `${args.join(" ")}: ${ended.stderr}`);
    assert.match(ended.stderr, words);
  });

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

/** Sends all requests at once and returns how many were accepted; the others must have Retry-After. */
export async function countAccepted(
  requests: readonly (() => Promise<HttpResponse>)[],
  passing: number,
): Promise<number> {
  const responses = await Promise.all(requests.map((request) => request()));
  const refused = responses.filter(({ status }) => status !== passing);
  for (const { status, headers } of refused) {
    assert.equal(status, 429);
    const seconds = Number(headers["retry-after"]);
    // A minute, and more if this request was received before the ones that used up the limit.
    assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 120, String(headers["retry-after"]));
  }
  return responses.length - refused.length;
}
