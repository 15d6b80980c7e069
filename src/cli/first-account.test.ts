import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  addUser,
  bearer,
  CONCURRENT,
  cookieOf,
  createToken,
  ENGINES,
  earmark,
  feedsOf,
  list,
  me,
  namesOf,
  newFile,
  OTHER_PASSWORD,
  PASSWORD,
  postgres,
  prepare,
  serve,
  serveProcess,
  signIn,
  signUp,
  statusOfToken,
  stop,
  subscribe,
  succeed,
  WITH_ACCOUNTS,
} from "../../test/support/account-commands.ts";
import type { Server } from "../../test/support/process.ts";
import { callServer, type HttpResponse, PLAIN, temporaryFolder } from "../../test/support/server.ts";

/** Starts a server and reads its standard error after it has answered a request, when it has printed all start messages. */
async function serveWithStderr(
  database: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ server: Server; log: string; stderr: string; secret: string | undefined }> {
  const server = await serve(database, settings);
  await callServer(server.port, "GET", "/readyz");
  const stderr = server.stderr();
  return { server, log: server.output(), stderr, secret: /http:\S+\/join\?first#(\S+)/.exec(stderr)?.[1] };
}

/** Sends all requests at once and returns how many were accepted; the others must have Retry-After. */
async function countAccepted(requests: readonly (() => Promise<HttpResponse>)[], passing: number): Promise<number> {
  const responses = await Promise.all(requests.map((request) => request()));
  const refused = responses.filter(({ status }) => status !== passing);
  for (const { status, headers } of refused) {
    assert.equal(status, 429);
    const seconds = Number(headers["retry-after"]);
    // Up to a minute, or longer if this request has an earlier time than those that used up the limit.
    assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 120, String(headers["retry-after"]));
  }
  return responses.length - refused.length;
}

for (const [engine, newDatabase] of ENGINES) {
  describe(`first account on ${engine}`, CONCURRENT, () => {
    test("first account: accounts are switched on → it has the existing list, and nobody else does", async () => {
      const database = await newDatabase();
      const withoutAccounts = await serve(database, { EARMARK_ACCOUNTS: "false" });
      assert.equal((await subscribe(withoutAccounts, 5)).status, 200);
      const feeds = await feedsOf(withoutAccounts);
      assert.equal(feeds.length, 5);
      await addUser(database, "ann");
      assert.deepEqual(await feedsOf(withoutAccounts), feeds);
      await stop(withoutAccounts);

      const server = await serve(database);
      assert.equal((await callServer(server.port, "GET", "/v1/subscriptions")).status, 401);
      const ann = bearer(await createToken(database, "ann"));
      assert.deepEqual(await feedsOf(server, ann), feeds);
      assert.deepEqual(await feedsOf(server, bearer(await prepare(database, "bob"))), []);
      for (const name of ["bob", "ann"]) await succeed(database, ["user", "delete", name, "--yes"]);
      const cyd = bearer(await prepare(database, "cyd"));
      assert.deepEqual(await feedsOf(server, cyd), [], "the next account does not get a deleted list");
      assert.equal((await subscribe(server, 2, cyd)).status, 200);
      assert.equal((await feedsOf(server, cyd)).length, 2);
      await stop(server);
    });

    test("setup link: used → creates the first account, once", async () => {
      const database = await newDatabase();
      const before = await serveWithStderr(database);
      await stop(before.server);
      const { server, log, stderr, secret } = await serveWithStderr(database);
      assert.ok(before.secret !== undefined && secret !== undefined, stderr);
      assert.match(
        stderr,
        /^There is no account yet\.[\s\S]*it works once:[\s\S]*or run: bin\/earmark user add NAME\n/,
      );
      assert.ok(stderr.includes(`${server.url}/join?first#emi_`));
      for (const line of log.trim().split("\n")) assert.equal(typeof JSON.parse(line).msg, "string");
      assert.doesNotMatch(log, /emi_|join/);
      assert.match((await callServer(server.port, "GET", "/join")).text, /^<!doctype html>/i);

      const signedUp = await signUp(server, secret, "ann");
      assert.equal(signedUp.status, 201);
      assert.equal((await me(server, cookieOf(signedUp))).json.data.attributes.name, "ann");
      for (const used of [secret, before.secret]) assert.equal((await signUp(server, used, "bob")).status, 403);
      assert.deepEqual(await namesOf(database), ["ann"]);
      assert.doesNotMatch(server.output(), /emi_/);
      await stop(server);

      const again = await serveWithStderr(database);
      assert.equal(again.stderr, "");
      await stop(again.server);
    });

    test("setup link: a command created the first account → rejected", async () => {
      const database = await newDatabase();
      const { server, secret = "" } = await serveWithStderr(database, { EARMARK_BASE_PATH: "/pods" });
      assert.match(secret, /^emi_/);
      await addUser(database, "ann");
      assert.equal((await signUp(server, secret, "eve")).status, 403);
      await prepare(database, "bob");
      await succeed(database, ["user", "admin", "bob"]);
      await succeed(database, ["user", "delete", "ann", "--yes"]);
      assert.equal((await signUp(server, secret, "eve")).status, 403, "not even after that account was deleted");
      assert.deepEqual(await namesOf(database), ["bob"]);
      await stop(server);
    });

    test("first account: EARMARK_ADMIN_USER → created if there is no account", async () => {
      const database = await newDatabase();
      const file = join(temporaryFolder(), "password");
      const settings = { EARMARK_ADMIN_USER: "Ann", EARMARK_ADMIN_PASSWORD_FILE: file };
      writeFileSync(file, `${PASSWORD}\n`);
      const first = await serveWithStderr(database, settings);
      assert.equal(first.stderr, "", "there is nothing to set up");
      assert.ok(!first.log.includes(PASSWORD));
      assert.equal((await signIn(first.server, "ann", PASSWORD)).status, 201);
      await stop(first.server);

      writeFileSync(file, OTHER_PASSWORD);
      const second = await serve(database, { ...settings, EARMARK_ADMIN_USER: "bob" });
      assert.equal((await signIn(second, "ann", PASSWORD)).status, 201);
      assert.equal((await signIn(second, "bob", OTHER_PASSWORD)).status, 401);
      assert.deepEqual(await namesOf(database), ["ann"]);
      await stop(second);
    });
  });
}

test("first account: an invalid EARMARK_ADMIN_PASSWORD → the server does not start", async () => {
  for (const password of ["7 chars", "iloveyou"]) {
    const [database, file] = [await newFile(), join(temporaryFolder(), "password")];
    writeFileSync(file, password);
    const settings = { ...WITH_ACCOUNTS, PORT: "0", EARMARK_ADMIN_USER: "ann", EARMARK_ADMIN_PASSWORD_FILE: file };
    const { code, stdout, stderr } = await earmark(database, ["serve"], { settings });
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /The password .*Check EARMARK_ADMIN_USER and EARMARK_ADMIN_PASSWORD\.\n$/);
    assert.ok(!stderr.includes(password));
    assert.deepEqual(await namesOf(database), []);
  }
});

test("serve: a public HOST → needs accounts or EARMARK_ALLOW_ANONYMOUS", async () => {
  const database = await newFile();
  const refused = await earmark(database, ["serve"], { settings: { HOST: "0.0.0.0", PORT: "0" } });
  assert.deepEqual([refused.code, refused.stdout], [78, ""]);
  assert.match(refused.stderr, /HOST=0\.0\.0\.0.*EARMARK_ACCOUNTS=true.*EARMARK_ALLOW_ANONYMOUS=true/);
  for (const [settings, status] of [
    [{ EARMARK_ACCOUNTS: "true" }, 401],
    [{ EARMARK_ALLOW_ANONYMOUS: "true" }, 200],
  ] as const) {
    const server = await serve(database, { HOST: "0.0.0.0", EARMARK_ACCOUNTS: "false", ...settings });
    assert.equal((await callServer(server.port, "GET", "/v1/subscriptions")).status, status);
    await stop(server);
  }
});

test("two servers on one database: revocations and sign-in limits → shared", async () => {
  const database = await postgres.database();
  const servers = [await serve(database), await serveProcess(database)] as const;
  const [one, two] = servers;
  const alternating = (count: number, request: (server: Server) => Promise<HttpResponse>) =>
    Array.from({ length: count }, (_, index) => () => request(index % 2 === 0 ? one : two));
  await prepare(database, "ann");
  await prepare(database, "cyd");
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
  assert.equal((await me(two, session)).status, 200, "a session works on both servers too");

  const guesses = alternating(14, (server) => signIn(server, "dan", OTHER_PASSWORD));
  assert.equal(await countAccepted(guesses, 401), 10);
  assert.equal((await signIn(two, "dan", PASSWORD)).status, 429, "even the correct password is rejected");
  assert.equal((await signIn(two, "cyd", PASSWORD)).status, 201);
  await stop(...servers);
});

test("two servers on one database: started at once → one first account", async () => {
  const database = await postgres.database();
  const settings = { EARMARK_ADMIN_USER: "ann", EARMARK_ADMIN_PASSWORD: PASSWORD };
  const servers = await Promise.all([serve(database, settings), serveProcess(database, settings)]);
  for (const server of servers) assert.equal((await signIn(server, "ann", PASSWORD)).status, 201);
  assert.deepEqual(await namesOf(database), ["ann"]);
  await stop(...servers);
});

test("copy: accounts → with passwords, tokens, sessions and invitations", async () => {
  const [from, there, back] = [await newFile(), await postgres.database(), await newFile()];
  const [ann] = [await prepare(from, "ann"), await prepare(from, "bob", OTHER_PASSWORD)];
  const [revoked, bob] = [await createToken(from, "ann"), await createToken(from, "bob", "--read-only", "--days", "9")];
  const [, second] = await list(from, "token", "list", "ann");
  await succeed(from, ["token", "revoke", "ann", String(second?.["id"])]);
  const [, before] = await list(from, "token", "list", "bob");
  const server = await serve(from);
  const session = cookieOf(await signIn(server, "ann", PASSWORD));
  assert.equal((await subscribe(server, 7, bearer(ann))).status, 200);
  const feeds = await feedsOf(server, session);
  const invitations = [await succeed(from, ["user", "invite"]), await succeed(from, ["user", "invite"])];
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
    assert.equal((await subscribe(copy, 1, bearer(bob))).status, 403, "a token keeps its scope");
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
  assert.equal(refused.code, 1, "a database with only an account is not empty");
  assert.deepEqual(await namesOf(full), ["eve"]);
});
