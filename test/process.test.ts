import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { runInProcess, serveInProcess, startInProcess } from "./support/commands.ts";
import { run, SERVE, start } from "./support/process.ts";
import { ATOMIC, add, callServer, newId, temporaryFolder } from "./support/server.ts";

const post = (port: number, operations: readonly object[]) =>
  callServer(port, "POST", "/v1/operations", {
    headers: { "Content-Type": ATOMIC, Accept: ATOMIC },
    body: JSON.stringify({ "atomic:operations": operations }),
  });
const total = async (port: number): Promise<number> =>
  (await callServer(port, "GET", "/v1/subscriptions")).json.meta.total;
const batch = (count: number) =>
  Array.from({ length: count }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}`);
  });

/** For the tests that need a server in a process of its own and leave it as it is. */
const data = `${temporaryFolder()}/a/b`;
const running = await start({ DATABASE_URL: `file:${data}/earmark.db` });

async function stopDuringRequest(): Promise<number | string> {
  const server = await serveInProcess({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db` });
  const slow = connect(server.port, "127.0.0.1").on("error", () => undefined);
  slow.write(
    `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nContent-Length: 100\r\n\r\n{`,
  );
  await sleep(200);
  return server.stop().finally(() => slow.destroy());
}

/** Takes ten seconds, while other tests run. */
const stopped = stopDuringRequest();

test("program: --version, --help or an unknown command → version, help or exit code 64", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  assert.deepEqual(await run(["--version"]), { code: 0, stdout: `${version}\n`, stderr: "" });
  const help = await runInProcess(["--help"]);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /earmark serve[\s\S]*DATABASE_URL[\s\S]*EARMARK_MAX_OPERATIONS/);
  assert.equal((await runInProcess([])).stdout, help.stdout);
  for (const ended of [run(["sreve"]), runInProcess(["serve", "x"]), runInProcess(["--nonsense"])]) {
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stdout], [64, ""]);
    assert.match(stderr, /^earmark: .*\nSee: .*--help\n$/);
  }
});

test("serve: several invalid settings → all named in one message", async () => {
  const { code, stdout, stderr } = await runInProcess(["serve"], {
    PORT: "99999",
    EARMARK_MAX_OPERATION: "5",
    EARMARK_METRICS: "yes",
    DATABASE_URL: "mysql://x",
    HOST: "0.0.0.0",
  });
  assert.deepEqual([code, stdout], [78, ""]);
  for (const word of [
    "PORT=99999",
    "EARMARK_MAX_OPERATION: unknown setting; did you mean EARMARK_MAX_OPERATIONS?",
    "EARMARK_METRICS=yes",
    "DATABASE_URL",
    "EARMARK_ALLOW_ANONYMOUS=true",
  ]) {
    assert.ok(stderr.includes(word), `${word} in ${stderr}`);
  }
});

test("program: an older Node → runs on the bundled one", async () => {
  const folder = temporaryFolder();
  const old = join(folder, "old.cjs");
  writeFileSync(
    old,
    'if (!process.env.SEEN) { Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } }); process.env.SEEN = "1"; }',
  );
  const { code, stdout } = await run(["--version"], { NODE_OPTIONS: `--require=${old}` });
  assert.equal(code, 0);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});

test("serve: no terminal → JSON lines; the data folder is created", () => {
  const lines = running.output().trim().split("\n");
  assert.equal(lines.length, 1, running.output());
  const line = JSON.parse(lines[0] ?? "");
  assert.equal(line.msg, "listening");
  assert.equal(line.database, `${data}/earmark.db`);
});

test("serve: new files → readable by their owner only", () => {
  assert.equal(statSync(data).mode & 0o777, 0o700);
  assert.equal(statSync(`${data}/earmark.db`).mode & 0o777, 0o600);
});

/** Runs the server until it has written `text`, by default with an output that looks like a terminal. */
async function outputOf(settings: Readonly<Record<string, string>>, text: RegExp, isTTY = true): Promise<string> {
  const all = { PORT: "0", DATABASE_URL: `file:${temporaryFolder()}/earmark.db`, ...settings };
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const { stop, ended } = startInProcess(["serve"], all, { stdout });
  let output = "";
  stdout.on("data", (chunk) => (output += chunk));
  while (!text.test(output)) await once(stdout, "data");
  stop("SIGTERM");
  assert.equal(await ended, 0);
  return output;
}

test("serve: on a terminal → the URL to open, and readable log lines", async () => {
  const output = await outputOf({}, /Ctrl-C/);
  assert.match(
    output,
    /^\n {2}Earmark \d.* is running\.\n\n {4}Open {6}http:\/\/127\.0\.0\.1:\d+\/\n {4}Database {2}\S+earmark\.db\n/,
  );
  assert.match(output, /\n\d\d:\d\d:\d\d INFO {2}stopping signal=SIGTERM\n\d\d:\d\d:\d\d INFO {2}stopped\n$/);
});

test("serve: on a terminal, EARMARK_LOG_FORMAT=json → JSON lines only", async () => {
  const output = await outputOf({ EARMARK_LOG_FORMAT: "json" }, /listening/);
  for (const line of output.trim().split("\n")) assert.equal(typeof JSON.parse(line).msg, "string");
});

test("serve: no terminal, EARMARK_LOG_FORMAT=text → readable lines", async () => {
  const output = await outputOf({ EARMARK_LOG_FORMAT: "text" }, /listening/, false);
  assert.match(output, /^\d\d:\d\d:\d\d INFO {2}listening url=http:\S+ database=\S+ version=\S+\n/);
});

test("serve: a base path that is a route of the server → exit code 78", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/earmark.db`, EARMARK_BASE_PATH: "/v1/x" };
  const { code, stderr } = await runInProcess(["serve"], settings);
  assert.equal(code, 78);
  assert.match(stderr, /EARMARK_BASE_PATH=\/v1\/x: must not start with one of Earmark's own paths/);
});

test("serve: the port or the file is in use → an error with advice", async () => {
  const DATABASE_URL = `file:${temporaryFolder()}/other.db`;
  const samePort = await runInProcess(["serve"], { PORT: String(running.port), DATABASE_URL });
  assert.equal(samePort.code, 1);
  assert.match(samePort.stderr, /^earmark: Port \d+ is in use\..* set PORT .*\n$/);
  const sameFile = await runInProcess(["serve"], { PORT: "0", DATABASE_URL: `file:${data}/earmark.db` });
  assert.equal(sameFile.code, 1);
  assert.match(sameFile.stderr, /^earmark: Another Earmark process is using .*\n$/);
});

test("stop: an open connection → not ready, and closed after the response", async () => {
  assert.equal((await callServer(running.port, "GET", "/readyz")).status, 200);
  assert.equal((await callServer(running.port, "GET", "/healthz")).json.meta.status, "ok");
  assert.equal((await post(running.port, batch(3))).status, 200);
  const open = connect(running.port, "127.0.0.1");
  await once(open, "connect");
  running.child.kill("SIGTERM");
  while (!running.output().includes('"msg":"stopping"')) await once(running.child.stdout ?? running.child, "data");
  open.write("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [response] = await once(open, "data");
  assert.match(String(response), /^HTTP\/1\.1 503 /);
  assert.match(String(response), /\r\nretry-after: \d+\r\n/i);
  assert.match(String(response), /\r\nconnection: close\r\n/i);
  assert.equal(await running.ended, 0);
  assert.match(running.output(), /"msg":"stopped"/);
});

test("SQLite backup API: while the server writes → a complete copy", async () => {
  const folder = temporaryFolder();
  const server = await start({ DATABASE_URL: `file:${folder}/earmark.db` });
  const writing = Promise.all(Array.from({ length: 20 }, () => post(server.port, batch(100))));
  const live = new DatabaseSync(`${folder}/earmark.db`, { readOnly: true });
  await backup(live, `${folder}/copy.db`);
  live.close();
  await writing;
  const copy = await serveInProcess({ DATABASE_URL: `file:${folder}/copy.db` });
  const { json } = await callServer(copy.port, "GET", "/v1/subscriptions?page[size]=100");
  assert.equal(json.data.length, Math.min(100, json.meta.total));
  assert.equal(json.meta.total % 100, 0, "requests are in it whole or not at all");
});

test("stop: a second signal → ends at once", async () => {
  const folder = temporaryFolder();
  const server = await start({ DATABASE_URL: `file:${folder}/earmark.db` });
  const open = connect(server.port, "127.0.0.1");
  const type = `Content-Type: ${ATOMIC}`;
  open.write(
    `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\n${type}\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n`,
  );
  // The server waits for the body, also when it is asked to end.
  await once(open, "data");
  server.child.kill("SIGTERM");
  server.child.kill("SIGTERM");
  await sleep(500);
  assert.equal(server.child.exitCode, null, "the same signal, passed on, is not a second one");
  server.child.kill("SIGINT");
  assert.equal(await server.ended, "SIGINT");
  open.destroy();
});

test("full disk: writes → 503, reads continue; once there is space again → nothing is missing", async () => {
  const folder = temporaryFolder();
  const settings = { DATABASE_URL: `file:${folder}/earmark.db` };
  // A bound on the size of files stands for the full disk: what is written beyond it fails as it would there.
  const limited = await start(settings, ["/bin/sh", "-c", "trap '' XFSZ; ulimit -f 2000; exec \"$@\"", "sh", ...SERVE]);
  let acknowledged = 0;
  let refused: Awaited<ReturnType<typeof post>> | undefined;
  for (let attempt = 0; attempt < 100 && refused === undefined; attempt += 1) {
    const response = await post(limited.port, batch(500));
    if (response.status === 200) acknowledged += response.json["atomic:results"].length;
    else refused = response;
  }
  assert.ok(refused !== undefined, "the disk never became full");
  assert.equal(refused.status, 503);
  assert.equal(refused.headers["retry-after"], "1");
  assert.deepEqual(Object.keys(refused.json), ["jsonapi", "errors"]);
  assert.doesNotMatch(refused.text, /sqlite|disk|errno/i);
  assert.equal(await total(limited.port), acknowledged);
  limited.child.kill("SIGKILL");
  await limited.ended;
  const free = await serveInProcess(settings);
  assert.equal(await total(free.port), acknowledged);
  assert.equal((await post(free.port, batch(500))).status, 200);
});

test("serve: the output is closed → continues, and stops normally", async () => {
  const server = await start({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db`, EARMARK_LOG_LEVEL: "debug" });
  server.child.stdout?.destroy();
  for (let request = 0; request < 3; request += 1) assert.equal(await total(server.port), 0);
  assert.equal(await server.stop(), 0);
});

test("npm start: npm ends → the server stops", async () => {
  const database = `file:${temporaryFolder()}/earmark.db`;
  const npm = await start({ DATABASE_URL: database, npm_lifecycle_event: "start" }, [
    "/bin/sh",
    "-c",
    '"$@"; true',
    "sh",
    ...SERVE,
  ]);
  // Comes when the server has ended too, which has the same output.
  const closed = once(npm.child, "close");
  await npm.stop();
  await closed;
  const again = await serveInProcess({ DATABASE_URL: database });
  assert.equal(await total(again.port), 0);
});

test("serve: a folder that cannot be created → an error, at once", async () => {
  const { code, stderr } = await runInProcess(["serve"], { DATABASE_URL: "file:/proc/nowhere/earmark.db" });
  assert.equal(code, 1);
  assert.match(stderr, /Cannot open the database/);
});

test("log: requests → no feed URL, body or query", async () => {
  const folder = temporaryFolder();
  const server = await serveInProcess({ DATABASE_URL: `file:${folder}/earmark.db`, EARMARK_LOG_LEVEL: "debug" });
  await post(server.port, [add(newId(), "https://ann:canary@feeds.example/canary")]);
  await callServer(server.port, "GET", "/v1/subscriptions?canary=canary");
  await callServer(server.port, "GET", "/canary", { headers: { Authorization: "Bearer canary", Cookie: "canary=1" } });
  await server.stop();
  assert.match(server.output(), /"route":"\/v1\/operations"/);
  assert.doesNotMatch(server.output(), /canary/);
});

test("metrics: EARMARK_METRICS=true → served", async () => {
  const folder = temporaryFolder();
  const server = await serveInProcess({ DATABASE_URL: `file:${folder}/earmark.db`, EARMARK_METRICS: "true" });
  await post(server.port, [...batch(2), add("x", "y")]);
  await callServer(server.port, "GET", "/v1/subscriptions");
  await callServer(server.port, "GET", `/v1/subscriptions/${newId()}`);
  const { status, headers, text } = await callServer(server.port, "GET", "/metrics");
  assert.equal(status, 200);
  assert.match(String(headers["content-type"]), /^text\/plain; version=0\.0\.4/);
  for (const line of [
    'earmark_http_request_duration_seconds_count{method="POST",route="/v1/operations",status="200"} 1',
    'earmark_http_request_duration_seconds_count{method="GET",route="/v1/subscriptions/:id",status="404"} 1',
    'earmark_operations_total{outcome="added"} 2',
    'earmark_operations_total{outcome="invalid-id"} 1',
    "earmark_store_committed_operations_total 2",
    "earmark_http_requests_waiting 0",
  ]) {
    assert.ok(text.includes(line), line);
  }
  // The sweep at start is a commit too.
  assert.match(text, /^earmark_store_commit_duration_seconds_count [1-9]/m);
  assert.match(text, /nodejs_eventloop_lag_seconds/);
});

test("start: a deletion was interrupted → the server finishes it", async (t) => {
  const file = `${temporaryFolder()}/earmark.db`;
  const database = new DatabaseSync(file);
  t.after(() => database.close());
  // It has the list of a deleted account, half erased.
  database.exec(readFileSync(new URL("fixtures/schemas/sqlite-10.sql", import.meta.url), "utf8"));
  const left = () =>
    ["subscriptions", "removals", "erasures"].map((table) =>
      Number(
        database
          .prepare(
            `select count(*) as rows from ${table} where user_id in (select user_id from lists where sequence = -1)`,
          )
          .get()?.["rows"],
      ),
    );
  assert.deepEqual(left(), [1, 1, 1]);
  await serveInProcess({ DATABASE_URL: `file:${file}`, EARMARK_ACCOUNTS: "true" });
  while (left().some((rows) => rows > 0)) await sleep(10);
});

test("stop: an unfinished request → the server stops anyway", async () => {
  assert.equal(await stopped, 0);
});
