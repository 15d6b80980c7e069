import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { document, exchange, fromElsewhere, newToken, signIn, writeRequest } from "../test/support/accounts.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { run, start } from "../test/support/process.ts";
import { callServer, PLAIN, temporaryFolder } from "../test/support/server.ts";
import {
  abandon,
  askInOrder,
  askInTrouble,
  asksOf,
  asksWithJwts,
  baseHeaders,
  carryOut,
  malformedAsks,
} from "./support/secret-asks.ts";
import { type Row, TABLES } from "./support/secret-requests.ts";
import { assertWithout, canaries, canary, type Headers, keep } from "./support/secret-search.ts";
import { assertMetricsWithout, makePerson, readLog, startProvider, startVerbose } from "./support/secret-servers.ts";

const plain = { "Content-Type": PLAIN };
const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });

test("secret search: any encoding → found", () => {
  const mine = new Map([["0123456789abcdefghij", "a secret"]]);
  for (const secret of [canary("a test"), ...mine.keys()]) {
    for (const text of [
      `{"err":"no ${secret}"}`,
      secret.slice(6),
      secret.slice(0, 12),
      `x-${secret.toUpperCase()}`,
      JSON.stringify({ packet: Buffer.from(`GET /${secret}`) }),
      Buffer.from(`GET /${secret}`).toString("hex"),
      ...["", "a", "ab"].map((before) => btoa(`${before}${secret}:x`)),
      Buffer.from(secret, "utf16le"),
    ])
      assert.throws(() => assertWithout(text, "it", mine));
  }
  const token = randomBytes(32);
  for (const secret of [`emk_${token.toString("base64url")}`, token.toString("base64url"), token.toString("hex")])
    assert.throws(() => assertWithout(Buffer.concat([Buffer.alloc(9), token]), "it", new Map([[secret, "a token"]])));
  assertWithout("nothing of the kind", "it", mine);
});

// --- What is asked.
test("secrets: all requests → not in the log, metrics or responses to others", async () => {
  const folder = temporaryFolder();
  const provider = await startProvider();
  const server = await startVerbose({
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_OIDC_ISSUER: provider.issuer,
    EARMARK_OIDC_AUDIENCE: "earmark",
    EARMARK_OIDC_SIGN_UP: "true",
  });
  const { port } = server;
  const person = await makePerson(port);

  const statuses = new Map<number, number>();
  await Promise.all([
    ...Object.values(TABLES).map((rows) => askInOrder(port, asksOf(person, rows), statuses, true)),
    askInOrder(port, asksWithJwts(person, await provider.wrong()), statuses, true),
    // Some of these take a second, since nobody knows whether more is to come.
    ...malformedAsks(person).map((one) => askInOrder(port, [one], statuses, true)),
  ]);
  await abandon(port, person.cookie);
  for (const status of [200, 201, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 417, 422, 431])
    assert.ok(statuses.has(status), `no response was ${status}`);

  // What the owner is told, and when.
  const { name, agent, label, cookie } = person;
  const sendRow = async (...row: Row) => {
    const [ask] = asksOf(person, [row]);
    if (ask !== undefined) await carryOut(port, ask, true);
  };
  const own = { Cookie: cookie };
  const other = [...canaries].findLast(([, what]) => what === "label")?.[0] ?? "";
  await sendRow(200, "GET /v1/me", own, undefined, [name]);
  await sendRow(200, "GET /v1/sessions", own, undefined, [agent]);
  await sendRow(200, "GET /v1/tokens", own, undefined, [label, other]);
  const sub = canary("sub of one who is let in");
  await sendRow(200, "GET /v1/me", bearer(await provider.sign({ sub })), undefined, [sub]);

  // A secret is told once, to the one who asked for it; and nothing that came with it.
  const agentOfSession = canary("User-Agent");
  const session = await exchange(
    port,
    writeRequest("POST", "/v1/sessions", { ...baseHeaders(agentOfSession), ...plain }, document("session", person)),
  );
  assert.match(session, /^HTTP\/1\.1 201 /);
  const secret = /\r\nset-cookie: earmark=([\w-]{43}); Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax\r\n/i.exec(
    session,
  )?.[1];
  assert.ok(secret !== undefined && session.indexOf(secret) === session.lastIndexOf(secret), session);
  assert.ok(session.includes(agentOfSession));
  keep(secret, "the secret of a session");
  await sendRow(200, "GET /v1/sessions", own, undefined, [agent, agentOfSession]);

  // A new password, which then works.
  const changed = canary("new password");
  const change = document("account", { current_password: person.password, password: changed });
  await sendRow(204, "PATCH /v1/me", { ...plain, ...own }, change);
  await sendRow(401, "POST /v1/sessions", plain, document("session", person));
  await signIn(port, { name, password: changed }, fromElsewhere());
  await sendRow(204, "DELETE /v1/me", own);

  await assertMetricsWithout(port);
  const lines = await readLog(server);
  const count = (msg: string) => lines.filter((line) => line.msg === msg).length;
  const requests = count("request") + count("slow request");
  assert.ok(requests > 150, String(requests));
  assert.deepEqual(
    lines.filter(({ level }) => level >= 50),
    [],
  );
});

test("secrets: SQLite fails → not in the log or responses", async () => {
  const folder = temporaryFolder();
  const provider = await startProvider();
  const server = await startVerbose({
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_OIDC_ISSUER: provider.issuer,
    EARMARK_OIDC_AUDIENCE: "earmark",
  });
  const { port } = server;
  const person = await makePerson(port);
  const file = new DatabaseSync(`${folder}/earmark.db`, { timeout: 5_000 });
  after(() => file.isOpen && file.close());

  const inTrouble = async (wanted: number, what: string) => {
    const statuses = await askInTrouble(port, person, await provider.wrong());
    assert.ok((statuses.get(wanted) ?? 0) > 0, `${what}: ${JSON.stringify([...statuses])}`);
  };
  for (const table of ["credentials", "accounts", "subscriptions"]) {
    file.exec(`alter table ${table} rename to away`);
    await inTrouble(503, `without ${table}`);
    file.exec(`alter table away rename to ${table}`);
  }
  const tables = ["credentials", "accounts", "subscriptions"];
  for (const table of tables)
    file.exec(`create trigger no_${table} before insert on ${table} begin select raise(abort, 'refused'); end`);
  await inTrouble(503, "nothing can be added");
  for (const table of tables) file.exec(`drop trigger no_${table}`);
  file.prepare("update accounts set password = ?").run(canary("a damaged hash"));
  await inTrouble(500, "no password can be checked");
  file.close();

  await assertMetricsWithout(port);
  const lines = await readLog(server);
  const failures = lines.filter(({ level }) => level >= 50);
  assert.ok(
    failures.some(({ msg, err }) => msg === "database unavailable" && /no such table/.test(err?.message ?? "")),
  );
  assert.ok(failures.some(({ msg, err }) => msg === "database unavailable" && /refused/.test(err?.message ?? "")));
  assert.ok(failures.some(({ msg }) => msg === "unexpected error"));
});

test("secrets: PostgreSQL fails → not in the log or responses", async () => {
  // An operator may have it tell the values of a statement that failed: it tells them to the client too.
  const postgres = await startPostgres(["log_parameter_max_length_on_error=-1"]);
  const url = await postgres.database();
  const database = new URL(url).pathname.slice(1);
  const server = await startVerbose({
    DATABASE_URL: `${url}&options=-c%20earmark.${canary("parameter of the URL")}%3D1`,
    // Nobody is there.
    EARMARK_OIDC_ISSUER: "http://127.0.0.1:9",
    EARMARK_OIDC_AUDIENCE: "earmark",
  });
  const { port } = server;
  const person = await makePerson(port);
  const { wrong } = await startProvider();

  const inTrouble = async (what: string, jwts: readonly string[] = []) => {
    const statuses = await askInTrouble(port, person, jwts);
    assert.ok((statuses.get(503) ?? 0) > 0, `${what}: ${JSON.stringify([...statuses])}`);
  };
  const tables = ["credentials", "accounts", "subscriptions"];
  // The row that breaks such a rule is told with the error.
  for (const table of tables)
    await postgres.query(`alter table earmark.${table} add constraint no check (false) not valid`, database);
  await inTrouble("nothing can be added", await wrong());
  for (const table of tables) await postgres.query(`alter table earmark.${table} drop constraint no`, database);
  await postgres.query("alter table earmark.credentials rename to away", database);
  await inTrouble("without credentials");
  await postgres.query("alter table earmark.away rename to credentials", database);
  await postgres.stop("immediate");
  await inTrouble("without PostgreSQL");

  await assertMetricsWithout(port);
  const lines = await readLog(server);
  const failures = lines.filter(({ msg }) => msg === "database unavailable");
  for (const cause of [/violates check constraint/, /does not exist/, /ECONNREFUSED|terminat|timeout/i])
    assert.ok(
      failures.some(({ err }) => cause.test(err?.message ?? "")),
      String(cause),
    );
  assert.ok(lines.some(({ msg }) => msg === "identity provider unavailable"));
});

// --- What is kept.

/** All that there is on the disk. */
function readFolder(folder: string): Map<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Every text and every bytes of these tables, each as someone who has stolen the file might write it. */
function valuesOf(path: string, tables: readonly string[]): string[][] {
  const file = new DatabaseSync(path, { readOnly: true });
  const values = new Map<string, string[]>();
  for (const table of tables) {
    for (const value of file
      .prepare(`select * from ${table}`)
      .all()
      .flatMap((row) => Object.values(row))) {
      if (typeof value === "string") {
        for (const part of [value, ...value.split("$")]) values.set(part, [part]);
      } else if (value instanceof Uint8Array) {
        const bytes = Buffer.from(value);
        const hex = bytes.toString("hex");
        const asId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
        values.set(hex, [hex, asId, bytes.toString("base64url"), bytes.toString("latin1")]);
      }
    }
  }
  file.close();
  values.delete("");
  return [...values.values()];
}

/** Each value as a credential, an invitation and a password: none grants access. Returns the number of attempts. */
async function tryValues(port: number, name: string, values: readonly (readonly string[])[]): Promise<number> {
  const inHeader = values.flat().filter((value) => /^[!-~]+( [!-~]+)*$/.test(value));
  let tried = 0;
  const refuse = async (wanted: number, method: string, path: string, more: Headers, body?: string) => {
    const response = await callServer(port, method, path, {
      headers: { ...(body === undefined ? {} : plain), ...fromElsewhere(), ...more },
      ...(body === undefined ? {} : { body }),
    });
    assert.equal(response.status, wanted, `${method} ${path} ${JSON.stringify(more)} ${body}: ${response.text}`);
    tried += 1;
  };
  for (const value of inHeader) {
    for (const prefix of ["", "emk_", "emi_"]) await refuse(401, "GET", "/v1/me", bearer(prefix + value));
    await refuse(401, "GET", "/v1/me", { Authorization: `Basic ${btoa(`${name}:${value}`)}` });
    for (const path of ["/v1/me", "/v1/sessions"]) await refuse(401, "GET", path, { Cookie: `earmark=${value}` });
    const feeds = `/subscriptions/${name}.json`;
    await refuse(401, "GET", feeds, { Authorization: `Basic ${btoa(`${name}:emk_${value}`)}` });
    await refuse(401, "GET", feeds, { Cookie: `sessionid=${value}` });
  }
  for (const value of values.flat()) {
    for (const invitation of [value, `emi_${value}`, `emk_${value}`]) {
      const body = document("account", { name: "mallory", password: "the password of mallory", invitation });
      await refuse(403, "POST", "/v1/accounts", {}, body);
    }
  }
  const guesses = values.map(([password]) => document("session", { name, password }));
  // A hash takes its time, and few may wait for one.
  for (let at = 0; at < guesses.length; at += 8)
    await Promise.all(guesses.slice(at, at + 8).map((body) => refuse(401, "POST", "/v1/sessions", {}, body)));
  return tried;
}

test("secrets: the database file → contains nothing that grants access", async (t) => {
  const folder = temporaryFolder();
  const settings = {
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_ACCOUNTS: "true",
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
  };
  const server = await start(settings);
  const { port } = server;
  const secrets = new Map<string, string>();
  const secret = (text: string, what: string) => {
    assert.ok(text.length >= 16, what);
    secrets.set(text, what);
    return text;
  };
  const invite = async () => /#(emi_[\w-]{43})\n/.exec((await run(["user", "invite"], settings)).stdout)?.[1] ?? "";
  const join = async (invitation: string) => {
    const [name, password] = [`user-${randomBytes(4).toString("hex")}`, randomBytes(12).toString("hex")];
    secret(password, "a password");
    const headers = { ...plain, ...fromElsewhere() };
    const body = document("account", { name, password, invitation });
    const response = await callServer(port, "POST", "/v1/accounts", { headers, body });
    assert.equal(response.status, 201, response.text);
    const session = /earmark=([\w-]{43})/.exec(String(response.headers["set-cookie"]))?.[1] ?? "";
    return { name, password, cookie: `earmark=${secret(session, "a session")}` };
  };

  // The link for the first account comes a moment after the server listens.
  while (!/#emi_/.test(server.output())) await once(server.child.stderr ?? server.child, "data");
  const setUp = secret(/#(emi_[\w-]{43})\s/.exec(server.output())?.[1] ?? "", "the first invitation");
  const first = await join(setUp);
  const second = await join(secret(await invite(), "an invitation that was used"));
  secret(await invite(), "an invitation");
  for (const who of [first, second]) {
    for (const scope of ["read", "write"] as const) {
      const { token } = await newToken(port, who, { label: `for ${who.name}`, scope });
      assert.equal((await callServer(port, "GET", "/v1/me", { headers: bearer(token) })).status, 200);
      secret(token, "a token");
    }
    const revoked = await newToken(port, who, { label: "revoked", scope: "write" });
    secret(revoked.token, "a token that was revoked");
    const ended = await signIn(port, who, fromElsewhere());
    secret(ended.session, "a session that has ended");
    for (const path of [`/v1/tokens/${revoked.id}`, `/v1/sessions/${ended.id}`])
      assert.equal((await callServer(port, "DELETE", path, { headers: { Cookie: who.cookie } })).status, 204);
  }
  const changed = secret(randomBytes(12).toString("hex"), "a new password");
  const change = document("account", { current_password: second.password, password: changed });
  const headers = { ...plain, Cookie: second.cookie };
  assert.equal((await callServer(port, "PATCH", "/v1/me", { headers, body: change })).status, 204);
  // What is rightly there is found, so that it would be.
  const marked = await newToken(port, second, { label: "a label that can be read", scope: "read" });
  secret(marked.token, "a token");

  const assertKept = (when: string) => {
    const files = readFolder(folder);
    assert.ok(files.has("earmark.db"));
    for (const [name, bytes] of files) assertWithout(bytes, `${name} ${when}`, secrets);
    const all = Buffer.concat([...files.values()]);
    for (const text of ["a label that can be read", first.name, "$argon2id$"]) assert.ok(all.includes(text), text);
    for (const name of files.keys()) assert.equal(statSync(`${folder}/${name}`).mode & 0o777, 0o600, `${name} ${when}`);
    return [...files.keys()];
  };
  assert.ok(assertKept("while the server runs").includes("earmark.db-wal"));

  const values = valuesOf(`${folder}/earmark.db`, ["credentials", "accounts", "names"]);
  assert.ok(values.length > 30, `${values.length} values`);
  const tried = await tryValues(port, first.name, values);
  t.diagnostic(`${values.length} values, ${tried} attempts`);

  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 0);
  assertKept("after the server");
});
