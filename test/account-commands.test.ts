import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Accounts, isRefused } from "../src/accounts.ts";
import { openStore } from "../src/store/engines.ts";
import { asUser } from "../src/subscriptions.ts";
import { type Answer, ATOMIC, add, callServer, newId, PLAIN, temporaryFolder } from "./harness.ts";
import { startPostgres } from "./postgres.ts";
import { cleanEnvironment, EARMARK, type Ended, type RunningServer, SERVE, start } from "./process.ts";

type Settings = Readonly<Record<string, string>>;

const PASSWORD = "correct horse battery";
const OTHER_PASSWORD = "staple, not a battery";
const TOKEN = /^emk_[\w-]{43}\n$/;
const ON = { EARMARK_ACCOUNTS: "on" };
/** A test waits for one process at a time, mostly. */
const AT_ONCE = { concurrency: 2 };

const postgres = await startPostgres();
const newFile = async () => `file:${temporaryFolder()}/earmark.db`;
const ENGINES: readonly (readonly [name: string, newDatabase: () => Promise<string>])[] = [
  ["SQLite", newFile],
  ["PostgreSQL", () => postgres.database()],
];

/** Runs a command on a database, to its end, with this and nothing more on its standard input. */
async function earmark(
  database: string,
  args: readonly string[],
  { input = "", settings = {} }: { readonly input?: string | Buffer; readonly settings?: Settings } = {},
): Promise<Ended> {
  const env = cleanEnvironment({ DATABASE_URL: database, ...settings });
  const child = spawn(process.execPath, [EARMARK, ...args], { env });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  // One that reads nothing may be gone before it has been given anything.
  child.stdin.on("error", () => undefined).end(input);
  const [code, signal] = await once(child, "close");
  return { code: signal ?? code, stdout, stderr };
}

/** A command that has to succeed; returns its data. */
async function done(database: string, args: readonly string[], input = ""): Promise<string> {
  const { code, stdout, stderr } = await earmark(database, args, { input });
  assert.equal(code, 0, stderr);
  assert.notEqual(stderr + stdout, "");
  return stdout;
}

const addUser = (database: string, name: string, password = PASSWORD) =>
  done(database, ["user", "add", name, "--password-stdin"], `${password}\n`);

async function createToken(database: string, name: string, ...options: readonly string[]): Promise<string> {
  const stdout = await done(database, ["token", "create", name, "--label", "an app", ...options]);
  assert.match(stdout, TOKEN);
  return stdout.trim();
}

/** The users, or the tokens of one, as programs read them. */
async function list(database: string, ...command: readonly string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout, stderr } = await earmark(database, [...command, "--json"]);
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** Works on a database without the program, where that is not what a test is about: it is much quicker. */
async function within<T>(database: string, work: (accounts: Accounts) => Promise<T>): Promise<T> {
  const store = await openStore(database, { connections: 1, beside: true });
  try {
    return await work(new Accounts(store.accounts, { signUp: false }));
  } finally {
    await store.close();
  }
}

const namesOf = (database: string) =>
  within(database, async (accounts) => (await accounts.list(0, 100)).map(({ name }) => name).sort());

/** Makes an account with a token. */
const prepare = (database: string, name: string, password = PASSWORD) =>
  within(database, async (accounts) => {
    const made = await accounts.create(name, password, new Date());
    assert.ok(!isRefused(made));
    const wish = { label: "an app", scope: "write", expiresAt: undefined } as const;
    const opened = await accounts.createToken(asUser(made.user), wish, new Date());
    assert.ok(!isRefused(opened));
    return opened.secret;
  });

/** Some at a time, since most of a command's time is that of one processor. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}

/** Those among them that open the account. */
const passwordsOf = (database: string, name: string, candidates: readonly string[]) =>
  within(database, async (accounts) => {
    const right: string[] = [];
    for (const password of candidates) {
      const opened = await accounts.signIn({ name, password, networks: ["test"], label: "test" }, new Date());
      if (!isRefused(opened)) right.push(password);
    }
    return right;
  });

const serve = (database: string, settings: Settings = {}) => start({ DATABASE_URL: database, ...ON, ...settings });

async function stop(...servers: readonly RunningServer[]): Promise<void> {
  for (const { child } of servers) child.kill("SIGTERM");
  for (const { ended } of servers) assert.equal(await ended, 0);
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const me = ({ port }: RunningServer, headers: Settings) => callServer(port, "GET", "/v1/me", { headers });
const statusOfToken = async ({ port }: RunningServer, token: string) =>
  (await callServer(port, "GET", "/v1/subscriptions", { headers: bearer(token) })).status;

const post = ({ port }: RunningServer, path: string, type: string, attributes: object) =>
  callServer(port, "POST", path, {
    headers: { "Content-Type": PLAIN },
    body: JSON.stringify({ data: { type, attributes } }),
  });
const signIn = (server: RunningServer, name: string, password: string) =>
  post(server, "/v1/sessions", "session", { name, password });
const signUp = (server: RunningServer, invitation: string, name: string) =>
  post(server, "/v1/accounts", "account", { name, password: PASSWORD, invitation });

function cookieOf(answer: Answer): Settings {
  const [cookie = ""] = answer.headers["set-cookie"] ?? [];
  return { Cookie: cookie.split(";")[0] ?? "" };
}

function subscribe({ port }: RunningServer, count: number, headers: Settings = {}): Promise<Answer> {
  const operations = Array.from({ length: count }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}`);
  });
  return callServer(port, "POST", "/v1/operations", {
    headers: { "Content-Type": ATOMIC, ...headers },
    body: JSON.stringify({ "atomic:operations": operations }),
  });
}

async function feedsOf({ port }: RunningServer, headers: Settings = {}): Promise<string[]> {
  const { status, json } = await callServer(port, "GET", "/v1/subscriptions", { headers });
  assert.equal(status, 200);
  return json.data.map((item: { attributes: { feed_url: string } }) => item.attributes.feed_url);
}

/** What a server says at its start, apart from its log; all of it, since a request has been answered meanwhile. */
async function serveApart(
  database: string,
  settings: Settings = {},
): Promise<{ server: RunningServer; log: string; words: string; link: string | undefined }> {
  const file = join(temporaryFolder(), "stderr");
  const command = ["/bin/sh", "-c", `exec "$@" 2>"${file}"`, "sh", ...SERVE];
  const server = await start({ DATABASE_URL: database, ...ON, ...settings }, command);
  await callServer(server.port, "GET", "/readyz");
  const words = readFileSync(file, "utf8");
  return { server, log: server.output(), words, link: /http:\S+\/join#(\S+)/.exec(words)?.[1] };
}

type Case = readonly [args: readonly string[], code: number, words: RegExp];

/** No data, an exit code, and words that say why. */
const refusesAll = (database: string, cases: readonly Case[]) =>
  forEach(cases, async ([args, code, words]) => {
    const ended = await earmark(database, args, { input: PASSWORD });
    assert.deepEqual([ended.code, ended.stdout], [code, ""], `${args.join(" ")}: ${ended.stderr}`);
    assert.match(ended.stderr, words);
  });

/**
 * The program at a terminal, or what it takes for one: no terminal can be had with Node alone. Marks show where the
 * terminal was told to echo no more, and to echo again. Types each text when the words before it have been said.
 */
async function atTerminal(
  database: string,
  args: readonly string[],
  typing: readonly (readonly [words: string, text: string | undefined])[],
): Promise<Ended> {
  const preload = join(temporaryFolder(), "terminal.cjs");
  writeFileSync(
    preload,
    `if (require("node:worker_threads").isMainThread) {
       process.stdin.isTTY = true;
       process.stderr.isTTY = true;
       process.stdin.setRawMode = (on) => (process.stderr.write(on ? "<silent>" : "<echo>"), process.stdin);
     }`,
  );
  const env = cleanEnvironment({ DATABASE_URL: database, NODE_OPTIONS: `--require=${preload}` });
  const child = spawn(process.execPath, [EARMARK, ...args], { env });
  let [stdout, stderr, seen] = ["", "", 0];
  const rest = [...typing];
  child.stdin.on("error", () => undefined);
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
    // A pipe that has been read from keeps the process until it ends, which a terminal does not.
    if (stderr.includes("earmark: ")) child.stdin.end();
    const [words, text] = rest[0] ?? [];
    if (words === undefined || !stderr.slice(seen).includes(words)) return;
    seen = stderr.length;
    rest.shift();
    if (text === undefined) child.stdin.end();
    else child.stdin.write(text);
  });
  const [code, signal] = await once(child, "close");
  assert.deepEqual(rest, [], `everything was asked for: ${stderr}`);
  return { code: signal ?? code, stdout, stderr };
}

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";

/** Makes all requests at once and tells how many were let in; the others must say when to come again. */
async function countPassed(requests: readonly (() => Promise<Answer>)[], passing: number): Promise<number> {
  const answers = await Promise.all(requests.map((request) => request()));
  const refused = answers.filter(({ status }) => status !== passing);
  for (const { status, headers } of refused) {
    assert.equal(status, 429);
    const seconds = Number(headers["retry-after"]);
    assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, String(headers["retry-after"]));
  }
  return answers.length - refused.length;
}

for (const [engine, newDatabase] of ENGINES) {
  describe(`accounts on ${engine}`, AT_ONCE, () => {
    test("accounts and tokens are kept from the command line", async () => {
      const database = await newDatabase();
      const added = await earmark(database, ["user", "add", "Ann", "--password-stdin"], { input: PASSWORD });
      assert.deepEqual([added.code, added.stdout], [0, ""]);
      assert.match(added.stderr, /^"ann" can sign in, wherever the server runs with EARMARK_ACCOUNTS=on\.\n$/);
      const bob = await earmark(database, ["user", "add", "bob", "--password-stdin"], {
        input: PASSWORD,
        settings: ON,
      });
      assert.deepEqual(bob, {
        code: 0,
        stdout: "",
        stderr: '"bob" can sign in, wherever the server runs with EARMARK_ACCOUNTS=on.\n',
      });
      const [ann, ...others] = await list(database, "user", "list");
      assert.deepEqual({ ...ann, created_at: "" }, { name: "ann", issuer: null, created_at: "", subscriptions: 0 });
      assert.equal(others.length, 1);
      const { stdout: table } = await earmark(database, ["user", "list"]);
      assert.match(table, /^(?:(?:ann|bob)\t\d{4}-\d\d-\d\dT[\d:.]+Z\t0\b.*\n){2}$/);

      const created = await earmark(database, ["token", "create", "ANN", "--label", "phone – ☎"]);
      assert.equal(created.code, 0);
      assert.match(created.stdout, TOKEN);
      assert.equal(created.stderr, "This is the only time that the token is shown:\n");
      await createToken(database, "ann", "--read-only", "--days", "30");
      const [phone, reader] = await list(database, "token", "list", "ann");
      assert.deepEqual(
        { ...phone, id: "" },
        { id: "", label: "phone – ☎", scope: "write", state: "valid", last_used_at: null, expires_at: null },
      );
      assert.equal(reader?.["scope"], "read");
      const days = (Date.parse(String(reader?.["expires_at"])) - Date.now()) / 86_400_000;
      assert.ok(days > 29.9 && days <= 30, `${days}`);
      const { stdout: tokens } = await earmark(database, ["token", "list", "ann"]);
      const cells = tokens.split("\n")[0]?.split("\t") ?? [];
      assert.deepEqual([...cells.slice(0, 3), cells.at(-1)], [phone?.["id"], "write", "valid", "phone – ☎"]);
      assert.deepEqual(await list(database, "token", "list", "bob"), []);

      const exported = await earmark(database, ["user", "export", "ann"]);
      assert.deepEqual([exported.code, exported.stderr], [0, ""]);
      const types = JSON.parse(exported.stdout).data.map(({ type }: { type: string }) => type);
      assert.deepEqual(types, ["account", "token", "token"]);
      assert.doesNotMatch(exported.stdout, /argon2|emk_|password/);

      const revoked = await earmark(database, ["token", "revoke", "ann", String(phone?.["id"]).toUpperCase()]);
      assert.deepEqual(revoked, { code: 0, stdout: "", stderr: "Revoked: no server accepts it any more.\n" });
      assert.deepEqual(await list(database, "token", "list", "ann"), [reader]);

      const input = `${OTHER_PASSWORD}\n`;
      const changed = await earmark(database, ["user", "passwd", "ann", "--password-stdin"], { input });
      assert.deepEqual([changed.code, changed.stdout], [0, ""]);
      assert.match(changed.stderr, /^The password of "ann" is changed/);

      const settings = { EARMARK_BASE_PATH: "/pods/" };
      const invited = await earmark(database, ["user", "invite", "--days", "2"], { settings });
      assert.equal(invited.code, 0);
      assert.match(invited.stdout, /^\/pods\/join#emi_[\w-]{43}\n$/);
      assert.match(invited.stderr, /within 2 days/);

      for (const [name, ...yes] of [
        ["bob", "--yes"],
        ["ann", "-y"],
      ] as const) {
        const deleted = await earmark(database, ["user", "delete", name, ...yes]);
        assert.deepEqual(deleted, { code: 0, stdout: "", stderr: `"${name}" is deleted, with everything.\n` });
      }
      assert.deepEqual(await namesOf(database), []);
    });

    test("what is not there cannot be changed, and what is there cannot be made again", async () => {
      const database = await newDatabase();
      await prepare(database, "ann");
      const [token] = await list(database, "token", "list", "ann");
      await prepare(database, "bob");
      const id = newId();
      await refusesAll(database, [
        [["user", "add", "ANN", "--password-stdin"], 1, /^earmark: There is an account of this name already\.\n$/],
        [["user", "passwd", "eve", "--password-stdin"], 1, /^earmark: There is no account "eve" at .*user list\n$/],
        [["user", "delete", "eve", "--yes"], 1, /There is no account "eve"/],
        [["token", "revoke", "ann", id], 1, /"ann" has no token with the id/],
        [["token", "revoke", "ann", "x' or 1=1"], 1, /"ann" has no token with the id/],
        [["token", "revoke", "bob", String(token?.["id"])], 1, /"bob" has no token with the id/],
      ]);
      assert.deepEqual(await namesOf(database), ["ann", "bob"]);
      assert.deepEqual(await list(database, "token", "list", "ann"), [token]);
    });

    test("a running server knows with the next request what a command has done", async () => {
      const database = await newDatabase();
      const server = await serve(database);
      await addUser(database, "ann");
      await prepare(database, "bob");
      const session = await signIn(server, "ann", PASSWORD);
      assert.equal(session.status, 201);

      const [phone, tablet] = [await createToken(database, "ann"), await createToken(database, "ann", "--read-only")];
      assert.deepEqual([await statusOfToken(server, phone), await statusOfToken(server, tablet)], [200, 200]);
      assert.equal((await subscribe(server, 3, bearer(phone))).status, 200);
      assert.equal((await subscribe(server, 1, bearer(tablet))).status, 403);
      assert.deepEqual(
        (await list(database, "user", "list")).map(({ name, subscriptions }) => [name, subscriptions]).sort(),
        [
          ["ann", 3],
          ["bob", 0],
        ],
      );
      const { data } = JSON.parse(await done(database, ["user", "export", "ann"]));
      assert.deepEqual(
        data.map(({ type }: { type: string }) => type),
        ["account", "token", "token", "session", ...Array(3).fill("subscription")],
      );

      const [first] = await list(database, "token", "list", "ann");
      assert.notEqual(first?.["last_used_at"], null);
      await done(database, ["token", "revoke", "ann", String(first?.["id"])]);
      assert.deepEqual([await statusOfToken(server, phone), await statusOfToken(server, tablet)], [401, 200]);

      assert.equal((await me(server, cookieOf(session))).status, 200);
      await done(database, ["user", "passwd", "ann", "--password-stdin"], OTHER_PASSWORD);
      assert.equal((await me(server, cookieOf(session))).status, 401, "every session has ended");
      assert.equal(await statusOfToken(server, tablet), 200, "a token goes on working");
      assert.equal((await signIn(server, "ann", PASSWORD)).status, 401);
      assert.equal((await signIn(server, "ann", OTHER_PASSWORD)).status, 201);

      const [, invitation = ""] = (await done(database, ["user", "invite"])).trim().split("#");
      assert.equal((await signUp(server, invitation, "cyd")).status, 201);
      assert.equal((await signUp(server, invitation, "dan")).status, 403, "an invitation is for one");

      await done(database, ["user", "delete", "ann", "--yes"]);
      assert.equal(await statusOfToken(server, tablet), 401);
      assert.equal((await signIn(server, "ann", OTHER_PASSWORD)).status, 401);
      assert.deepEqual(await namesOf(database), ["bob", "cyd"]);
      assert.deepEqual(await feedsOf(server, bearer(await prepare(database, "ann"))), [], "another ann begins anew");
      await stop(server);
    });

    test("many commands at once all succeed, while a server is writing as fast as it can", async () => {
      const database = await newDatabase();
      const token = await prepare(database, "ann");
      const server = await serve(database, { EARMARK_OPERATIONS_PER_MINUTE: "100000000" });
      let isOver = false;
      let written = 0;
      const load = Array.from({ length: 4 }, async () => {
        while (!isOver) {
          assert.equal((await subscribe(server, 5_000, bearer(token))).status, 200);
          written += 5_000;
        }
      });
      const commands = Promise.all(Array.from({ length: 7 }, () => createToken(database, "ann")));
      const made = await commands.finally(async () => {
        isOver = true;
        await Promise.all(load);
      });
      for (const each of made) assert.equal(await statusOfToken(server, each), 200);
      assert.equal((await list(database, "token", "list", "ann")).length, 8);
      assert.equal((await me(server, bearer(token))).json.meta.counts.subscriptions, written);
      await stop(server);
    });

    test("who switches accounts on keeps the list, which belongs to the first account alone", async () => {
      const database = await newDatabase();
      const alone = await start({ DATABASE_URL: database });
      assert.equal((await subscribe(alone, 5)).status, 200);
      const feeds = await feedsOf(alone);
      assert.equal(feeds.length, 5);
      await addUser(database, "ann");
      assert.deepEqual(await feedsOf(alone), feeds);
      await stop(alone);

      const server = await serve(database);
      assert.equal((await callServer(server.port, "GET", "/v1/subscriptions")).status, 401);
      const ann = bearer(await createToken(database, "ann"));
      assert.deepEqual(await feedsOf(server, ann), feeds);
      assert.deepEqual(await feedsOf(server, bearer(await prepare(database, "bob"))), []);
      for (const name of ["ann", "bob"]) await done(database, ["user", "delete", name, "--yes"]);
      const cyd = bearer(await prepare(database, "cyd"));
      assert.deepEqual(await feedsOf(server, cyd), [], "what was deleted is not handed on");
      assert.equal((await subscribe(server, 2, cyd)).status, 200);
      assert.equal((await feedsOf(server, cyd)).length, 2);
      await stop(server);
    });

    test("the link that a new server shows makes the first account, once", async () => {
      const database = await newDatabase();
      const before = await serveApart(database);
      await stop(before.server);
      const { server, log, words, link } = await serveApart(database);
      assert.ok(before.link !== undefined && link !== undefined, words);
      assert.match(words, /^There is no account yet\.[\s\S]*it works once:[\s\S]*or run: bin\/earmark user add NAME\n/);
      assert.ok(words.includes(`${server.url}/join#emi_`));
      for (const line of log.trim().split("\n")) assert.equal(typeof JSON.parse(line).msg, "string");
      assert.doesNotMatch(log, /emi_|join/);
      assert.match((await callServer(server.port, "GET", "/join")).text, /^<!doctype html>/i);

      const made = await signUp(server, link, "ann");
      assert.equal(made.status, 201);
      assert.equal((await me(server, cookieOf(made))).json.data.attributes.name, "ann");
      for (const used of [link, before.link]) assert.equal((await signUp(server, used, "bob")).status, 403);
      assert.deepEqual(await namesOf(database), ["ann"]);
      assert.doesNotMatch(server.output(), /emi_/);
      await stop(server);

      const again = await serveApart(database);
      assert.equal(again.words, "");
      await stop(again.server);
    });

    test("the link makes nothing any more when a command has made the first account", async () => {
      const database = await newDatabase();
      const { server, link = "" } = await serveApart(database, { EARMARK_BASE_PATH: "/pods" });
      assert.match(link, /^emi_/);
      await addUser(database, "ann");
      assert.equal((await signUp(server, link, "eve")).status, 403);
      await prepare(database, "bob");
      await done(database, ["user", "delete", "ann", "--yes"]);
      assert.equal((await signUp(server, link, "eve")).status, 403, "not even when that has gone");
      assert.deepEqual(await namesOf(database), ["bob"]);
      await stop(server);
    });

    test("the settings may make the first account, and only the first", async () => {
      const database = await newDatabase();
      const file = join(temporaryFolder(), "password");
      const settings = { EARMARK_FIRST_USER: "Ann", EARMARK_FIRST_PASSWORD_FILE: file };
      writeFileSync(file, `${PASSWORD}\n`);
      const first = await serveApart(database, settings);
      assert.equal(first.words, "", "there is nothing to set up");
      assert.ok(!first.log.includes(PASSWORD));
      assert.equal((await signIn(first.server, "ann", PASSWORD)).status, 201);
      await stop(first.server);

      writeFileSync(file, OTHER_PASSWORD);
      const second = await serve(database, { ...settings, EARMARK_FIRST_USER: "bob" });
      assert.equal((await signIn(second, "ann", PASSWORD)).status, 201);
      assert.equal((await signIn(second, "bob", OTHER_PASSWORD)).status, 401);
      assert.deepEqual(await namesOf(database), ["ann"]);
      await stop(second);
    });
  });
}

describe("the commands of accounts", AT_ONCE, () => {
  test("a first password that may not be one stops the start, and is not repeated", async () => {
    await forEach(["7 chars", "iloveyou"], async (password) => {
      const [database, file] = [await newFile(), join(temporaryFolder(), "password")];
      writeFileSync(file, password);
      const settings = { ...ON, PORT: "0", EARMARK_FIRST_USER: "ann", EARMARK_FIRST_PASSWORD_FILE: file };
      const { code, stdout, stderr } = await earmark(database, ["serve"], { settings });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /The password .*Check EARMARK_FIRST_USER and EARMARK_FIRST_PASSWORD\.\n$/);
      assert.ok(!stderr.includes(password));
      assert.deepEqual(await namesOf(database), []);
    });
  });

  test("what a command cannot make sense of is named", async () => {
    const database = await newFile();
    await prepare(database, "ann");
    await refusesAll(database, [
      [["user", "export", "eve"], 1, /There is no account "eve"/],
      [["token", "create", "eve", "--label", "x"], 1, /There is no account "eve"/],
      [["token", "list", "eve"], 1, /There is no account "eve"/],
      [["token", "revoke", "eve", newId()], 1, /There is no account "eve"/],
      [["user", "add", "ann smith", "--password-stdin"], 1, /^earmark: A name has 1 to 64 characters/],
      [["token", "create", "ann"], 1, /--label must/],
      [["token", "create", "ann", "--label", ""], 1, /--label must have 1 to 100 characters/],
      [["token", "create", "ann", "--label", "a\tb"], 1, /--label must not contain control characters/],
      [["token", "create", "ann", "--label", "x", "--days", "0"], 1, /--days must be a whole number from 1 to 3650/],
      [["user", "invite", "--days", "3651"], 1, /--days must be a whole number from 1 to 3650/],
      [["user"], 64, /"user"/],
      [["user", "add"], 64, /it is: earmark user add NAME/],
      [["user", "list", "ann"], 64, /it is: earmark user list/],
      [["token", "revoke", "ann"], 64, /it is: earmark token revoke NAME ID/],
      [["token", "list", "ann", "--password-stdin"], 64, /"token list" has no option --password-stdin/],
      [["user", "add", "ann"], 64, /there is no terminal to ask for the password: pipe it in, with --password-stdin/],
    ]);
  });

  test("a password on standard input is taken exactly as it is, but for one line break at its end", async () => {
    const database = await newFile();
    const passwords: readonly (readonly [input: string, password: string])[] = [
      ["no line break", "no line break"],
      ["  spaces around \n", "  spaces around "],
      ["from Windows\r\n", "from Windows"],
      ["two of them\n\n", "two of them\n"],
      ["several\nlines", "several\nlines"],
      ["e\u0301 🎧 \u0000 \u0007\n", "e\u0301 🎧 \u0000 \u0007"],
      [`${"🎧x".repeat(128)}\n`, "🎧x".repeat(128)],
    ];
    await prepare(database, "ann");
    await forEach([...passwords.entries()], async ([index, [input]]) => {
      await done(database, ["user", "add", `u${index}`, "--password-stdin"], input);
    });
    for (const [index, [, password]] of passwords.entries()) {
      const candidates = new Set([password, password.trim(), `${password}\n`, password.normalize("NFC")]);
      assert.deepEqual(await passwordsOf(database, `u${index}`, [...candidates]), [password]);
    }
  });

  test("a password that is too short, too long, common or the name itself is refused, and not repeated", async () => {
    const database = await newFile();
    await prepare(database, "ann");
    const refused: readonly (readonly [password: string, words: RegExp])[] = [
      ["", /must have 8 to 256 characters/],
      ["7 chars\n", /must have 8 to 256 characters/],
      ["z9".repeat(129), /must have 8 to 256 characters/],
      ["z9".repeat(50_000), /on standard input is too long/],
      ["iloveyou\n", /is one of the most common/],
      ["TRUSTNO1", /is one of the most common/],
      ["Zed@example.org", /must not be the name/],
    ];
    await forEach(refused, async ([input, words]) => {
      const ended = await earmark(database, ["user", "add", "zed@example.org", "--password-stdin"], { input });
      assert.deepEqual([ended.code, ended.stdout], [1, ""]);
      assert.match(ended.stderr, words);
      if (input !== "") assert.ok(!ended.stderr.includes(input.trim()));
    });
    assert.deepEqual(await namesOf(database), ["ann"]);
    const changed = await earmark(database, ["user", "passwd", "ann", "--password-stdin"], { input: "iloveyou" });
    assert.equal(changed.code, 1);
    assert.deepEqual(await passwordsOf(database, "ann", ["iloveyou", PASSWORD]), [PASSWORD]);
  });

  test("a password is never taken from the command line, and no message repeats it", async () => {
    const database = await newFile();
    const attempts = [
      ["user", "add", "ann", "--password", PASSWORD],
      ["user", "add", "ann", `--password=${PASSWORD}`],
      ["user", "add", "ann", `--password-stdin=${PASSWORD}`],
      ["user", "add", "ann", "-p", PASSWORD],
      ["user", "add", "ann", `-p${PASSWORD}`],
      ["user", "add", "ann", PASSWORD],
      ["user", "add", "ann", "--password-stdin", PASSWORD],
      ["user", "passwd", "ann", PASSWORD],
      ["user", "pass", "ann", PASSWORD],
      ["passwd", PASSWORD],
    ];
    await forEach(attempts, async (args) => {
      const { code, stdout, stderr } = await earmark(database, args, { input: PASSWORD });
      assert.deepEqual([code, stdout], [64, ""], `${args.join(" ")}: ${stderr}`);
      assert.match(stderr, /^earmark: .*--help\n$/);
      assert.ok(!stderr.includes(PASSWORD), stderr);
    });
    assert.deepEqual(await namesOf(database), []);
  });

  test("at a terminal a password is asked for twice, and what is typed is not shown", async () => {
    const database = await newFile();
    const made = await atTerminal(
      database,
      ["user", "add", "ann"],
      [
        ["Password: <silent>", `${PASSWORD}x\u007f\r`],
        ["again: <silent>", `${PASSWORD}\r`],
      ],
    );
    assert.deepEqual([made.code, made.stdout], [0, ""]);
    assert.match(made.stderr, /^Password: <silent><echo>\nThe same again: <silent><echo>\n"ann" can sign in, wherever/);
    const changed = await atTerminal(
      database,
      ["user", "passwd", "ann"],
      [
        ["Password: <silent>", `${OTHER_PASSWORD}\r`],
        ["again: <silent>", `${OTHER_PASSWORD}\r`],
      ],
    );
    assert.equal(changed.code, 0);
    assert.match(changed.stderr, /^Password: <silent><echo>\nThe same again: <silent><echo>\nThe password of "ann"/);
    const unknown = await atTerminal(database, ["user", "passwd", "bob"], []);
    assert.equal(unknown.code, 1);
    assert.doesNotMatch(unknown.stderr, /Password: /, "whom nobody knows is not asked for");
    assert.deepEqual(await passwordsOf(database, "ann", [PASSWORD, OTHER_PASSWORD]), [OTHER_PASSWORD]);
  });

  test("two different passwords, Ctrl-C or the end of the input: then nothing is done", async () => {
    const database = await newFile();
    const typed: readonly (readonly (string | undefined)[])[] = [
      [`${PASSWORD}\r`, `${PASSWORD} \r`],
      [`corr${CTRL_C}`],
      [`${PASSWORD}\r`, `corr${CTRL_C}`],
      [CTRL_D],
      [`${PASSWORD}\r`, CTRL_D],
      [undefined],
      [`${PASSWORD}\r`, undefined],
    ];
    await forEach(typed, async ([first, ...second]) => {
      const { code, stdout, stderr } = await atTerminal(
        database,
        ["user", "add", "ann"],
        [["Password: <silent>", first], ...second.map((text) => ["again: <silent>", text] as const)],
      );
      assert.deepEqual([code, stdout], [1, ""], JSON.stringify([first, ...second]));
      assert.match(stderr, /<echo>\nearmark: .*Nothing was done\.\n$/);
      assert.doesNotMatch(stderr, /corr/);
    });
    assert.deepEqual(await namesOf(database), []);
  });

  test("an account is deleted when that was said clearly, and not otherwise", async () => {
    const database = await newFile();
    await prepare(database, "ann");
    const withoutTerminal = await earmark(database, ["user", "delete", "ann"], { input: "y\n" });
    assert.deepEqual([withoutTerminal.code, withoutTerminal.stdout], [64, ""]);
    assert.match(withoutTerminal.stderr, /^earmark: Delete "ann" with 0 subscriptions.* Say so with --yes\./);
    await forEach(["n\r", "yesterday\r", CTRL_C, CTRL_D, undefined], async (text) => {
      const { code, stdout, stderr } = await atTerminal(database, ["user", "delete", "ann"], [["[y/N] ", text]]);
      assert.deepEqual([code, stdout], [1, ""], JSON.stringify(text));
      assert.match(stderr, /earmark: Nothing was (deleted|done)\.\n$/);
    });
    assert.deepEqual(await namesOf(database), ["ann"]);
    const { code, stderr } = await atTerminal(database, ["user", "delete", "ann"], [["[y/N] ", "Yes\r"]]);
    assert.equal(code, 0);
    assert.match(stderr, /"ann" is deleted, with everything\.\n$/);
    assert.deepEqual(await namesOf(database), []);
  });

  test("several commands at once may be the first to use a database", async () => {
    for (const [, newDatabase] of ENGINES) {
      const database = await newDatabase();
      const commands = Array.from({ length: 5 }, () => list(database, "user", "list"));
      for (const found of await Promise.all(commands)) assert.deepEqual(found, []);
    }
  });

  test("others can reach a server with accounts, and one without only if that is meant", async () => {
    const database = await newFile();
    const refused = await earmark(database, ["serve"], { settings: { HOST: "0.0.0.0", PORT: "0" } });
    assert.deepEqual([refused.code, refused.stdout], [78, ""]);
    assert.match(refused.stderr, /HOST=0\.0\.0\.0.*EARMARK_ACCOUNTS=on.*EARMARK_OPEN=1/);
    for (const [settings, status] of [
      [{ EARMARK_ACCOUNTS: "on" }, 401],
      [{ EARMARK_OPEN: "1" }, 200],
    ] as const) {
      const server = await start({ DATABASE_URL: database, HOST: "0.0.0.0", ...settings });
      assert.equal((await callServer(server.port, "GET", "/v1/subscriptions")).status, status);
      await stop(server);
    }
  });

  test("a command refuses wrong settings as the server does", async () => {
    const settings = { EARMARK_ACCOUNTS: "yes", EARMARK_FIRST_PASSWORD: PASSWORD, EARMARK_METRICS_TOKEN: "canary" };
    const { code, stdout, stderr } = await earmark(await newFile(), ["user", "list"], { settings });
    assert.deepEqual([code, stdout], [78, ""]);
    assert.match(stderr, /EARMARK_ACCOUNTS=yes: must be on or off/);
    assert.match(stderr, /EARMARK_FIRST_USER, EARMARK_FIRST_PASSWORD: must be set together/);
    assert.doesNotMatch(stderr, /correct horse|canary/);
  });

  test("two servers on one database are as one: what is revoked, and how much is allowed", async () => {
    const database = await postgres.database();
    const limits = { EARMARK_REQUESTS_PER_MINUTE: "20", EARMARK_OPERATIONS_PER_MINUTE: "20" };
    const servers = [await serve(database, limits), await serve(database, limits)] as const;
    const [one, two] = servers;
    const alternating = (count: number, request: (server: RunningServer) => Promise<Answer>) =>
      Array.from({ length: count }, (_, index) => () => request(index % 2 === 0 ? one : two));
    await prepare(database, "ann");
    const [bob, cyd] = [bearer(await prepare(database, "bob")), bearer(await prepare(database, "cyd"))];
    await prepare(database, "dan");

    const session = cookieOf(await signIn(one, "ann", PASSWORD));
    const created = await callServer(one.port, "POST", "/v1/tokens", {
      headers: { "Content-Type": PLAIN, ...session },
      body: JSON.stringify({ data: { type: "token", attributes: { label: "x", scope: "write" } } }),
    });
    const { token } = created.json.data.attributes;
    assert.deepEqual([await statusOfToken(one, token), await statusOfToken(two, token)], [200, 200]);
    const path = created.json.data.links.self;
    assert.equal((await callServer(one.port, "DELETE", path, { headers: session })).status, 204);
    assert.deepEqual([await statusOfToken(two, token), await statusOfToken(one, token)], [401, 401]);
    assert.equal((await me(two, session)).status, 200, "a session is known to both as well");

    const start = performance.now();
    const passed = await countPassed(
      alternating(40, (server) => me(server, bob)),
      200,
    );
    // One more is allowed every three seconds, which is long; but a machine may be busy.
    const later = Math.floor((performance.now() - start) / 3_000);
    assert.ok(passed >= 20 && passed <= 20 + later, `${passed} of 40 in ${performance.now() - start} ms`);

    const batches = alternating(8, (server) => subscribe(server, 5, cyd));
    assert.equal(await countPassed(batches, 200), 4, "20 operations of 40, and nobody else's requests count");
    assert.equal((await feedsOf(one, cyd)).length, 20);

    const guesses = alternating(14, (server) => signIn(server, "dan", OTHER_PASSWORD));
    assert.equal(await countPassed(guesses, 401), 10);
    assert.equal((await signIn(two, "dan", PASSWORD)).status, 429, "not even the right one is looked at");
    assert.equal((await signIn(two, "cyd", PASSWORD)).status, 201);
    await stop(...servers);
  });

  test("two servers that start at once make one first account", async () => {
    const database = await postgres.database();
    const settings = { EARMARK_FIRST_USER: "ann", EARMARK_FIRST_PASSWORD: PASSWORD };
    const servers = await Promise.all([serve(database, settings), serve(database, settings)]);
    for (const server of servers) assert.equal((await signIn(server, "ann", PASSWORD)).status, 201);
    assert.deepEqual(await namesOf(database), ["ann"]);
    await stop(...servers);
  });

  test("a copy has the accounts with their passwords, tokens, sessions and invitations", async () => {
    const [from, there, back] = [await newFile(), await postgres.database(), await newFile()];
    const [ann] = [await prepare(from, "ann"), await prepare(from, "bob", OTHER_PASSWORD)];
    const [revoked, bob] = [
      await createToken(from, "ann"),
      await createToken(from, "bob", "--read-only", "--days", "9"),
    ];
    const [, second] = await list(from, "token", "list", "ann");
    await done(from, ["token", "revoke", "ann", String(second?.["id"])]);
    const [, before] = await list(from, "token", "list", "bob");
    const server = await serve(from);
    const session = cookieOf(await signIn(server, "ann", PASSWORD));
    assert.equal((await subscribe(server, 7, bearer(ann))).status, 200);
    const feeds = await feedsOf(server, session);
    const invitations = [await done(from, ["user", "invite"]), await done(from, ["user", "invite"])];
    await stop(server);
    for (const [index, [source, target]] of [[from, there] as const, [there, back] as const].entries()) {
      const copied = await earmark(source, ["copy", "--from", source, "--to", target]);
      assert.equal(copied.code, 0, copied.stderr);
      const [, token] = await list(target, "token", "list", "bob");
      assert.deepEqual({ ...token, last_used_at: null }, before);
      const copy = await serve(target);
      assert.deepEqual(await feedsOf(copy, bearer(ann)), feeds);
      assert.deepEqual(await feedsOf(copy, session), feeds);
      assert.equal(await statusOfToken(copy, revoked), 401);
      assert.equal((await subscribe(copy, 1, bearer(bob))).status, 403, "a token may do what it might before");
      assert.deepEqual(await feedsOf(copy, bearer(bob)), []);
      assert.equal((await signIn(copy, "ann", PASSWORD)).status, 201);
      assert.equal((await signIn(copy, "bob", OTHER_PASSWORD)).status, 201);
      assert.equal((await signIn(copy, "bob", PASSWORD)).status, 401);
      const [, invitation = ""] = String(invitations[index]).trim().split("#");
      assert.equal((await signUp(copy, invitation, `new-${index}`)).status, 201);
      await stop(copy);
    }
    const full = await newFile();
    await prepare(full, "eve");
    const refused = await earmark(from, ["copy", "--from", from, "--to", full]);
    assert.equal(refused.code, 1, "an account alone makes a database not empty");
    assert.deepEqual(await namesOf(full), ["eve"]);
  });
});
