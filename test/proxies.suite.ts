import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { type IncomingHttpHeaders, request as requestPlain } from "node:http";
import { Agent } from "node:https";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { cookieOf, json, PASSWORD, setCookie, subscription } from "./support/browser-requests.ts";
import { readCompose } from "./support/compose.ts";
import { start } from "./support/process.ts";
import { syncAsApp } from "./support/proxy-apps.ts";
import {
  CADDY,
  call,
  freePort,
  HOST,
  NGINX,
  type Options,
  PATH,
  PATH_ON_HOST,
  setUpLink,
  startBoth,
  startProxy,
  startRecorder,
} from "./support/proxy-examples.ts";
import { useHttp2, watchEvents } from "./support/proxy-streams.ts";
import { ATOMIC, add, callServer, type HttpResponse, newId, PLAIN, temporaryFolder } from "./support/server.ts";

/**
 * The real server behind real proxies, configured by the examples in deploy/ and the settings they list. Not part of
 * `npm test`, because nginx and Caddy must be installed. Linux only, because it uses several addresses in 127.0.0.0/8.
 */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
// Everything starts before the first test is registered: the runner exits when it has no more tests.
const recorders = [await startRecorder(NGINX), await startRecorder(CADDY)];
const redirecting = await startProxy(NGINX, await freePort());
const stages = [
  await startBoth(NGINX, HOST),
  await startBoth(NGINX, PATH_ON_HOST),
  await startBoth(CADDY, HOST),
  await startBoth(CADDY, PATH_ON_HOST),
];

for (const { example, record, proxy } of recorders) {
  suite(`${example.name}: forwarded requests`, () => {
    for (const [variant, port] of [
      [HOST, proxy.host],
      [PATH_ON_HOST, proxy.path],
    ] as const) {
      test(`${example.name}: any target, ${variant.name} → forwarded unchanged, with the real client address`, async () => {
        const target = `${variant.base}/v1/%73ubscriptions//a%2Fb?page[size]=1&a=%2F%20b//c`;
        await call(port, "GET", target, {
          from: "127.0.0.7",
          headers: {
            "X-Forwarded-For": "203.0.113.9",
            "X-Forwarded-Proto": "http",
            "X-Forwarded-Host": "evil.example",
            Cookie: "a=1",
            Authorization: "Bearer x",
            Origin: `https://localhost:${port}`,
            "Sec-Fetch-Site": "same-origin",
          },
        });
        const [{ url, headers } = { url: "", headers: {} as IncomingHttpHeaders }] = record.seen.slice(-1);
        assert.equal(url, target);
        const { host, cookie, authorization, origin } = headers;
        assert.equal(host, `localhost:${port}`);
        assert.deepEqual(
          ["for", "proto", "host"].map((name) => headers[`x-forwarded-${name}`]),
          ["127.0.0.7", "https", `localhost:${port}`],
        );
        assert.deepEqual([cookie, authorization, origin], ["a=1", "Bearer x", `https://localhost:${port}`]);
        assert.equal(headers["sec-fetch-site"], "same-origin");
      });
    }

    test(`${example.name}: many requests with bodies → connections to Earmark are reused`, async () => {
      const before = record.connections;
      for (let count = 0; count < 30; count += 1)
        await call(proxy.host, "POST", "/", { body: "x".repeat(10_000), isChunked: count % 2 === 1 });
      const opened = record.connections - before;
      assert.ok(opened <= 2, `${opened} connections for 30 requests`);
    });

    test(`${example.name}: other paths on a shared host → not forwarded`, async () => {
      const before = record.seen.length;
      for (const path of ["/", "/v1/subscriptions", "/earmarks/v1/subscriptions"])
        assert.equal((await call(proxy.path, "GET", path)).status, 404);
      assert.equal(record.seen.length, before);
    });
  });
}

test("nginx: http → redirected to https with the whole target", async () => {
  const response = await callServer(redirecting.http, "GET", "/earmark/v1/subscriptions?page[size]=1", {
    headers: { Host: "localhost" },
  });
  assert.equal(response.status, 308);
  assert.equal(response.headers["location"], "https://localhost/earmark/v1/subscriptions?page[size]=1");
});

test("compose.accounts.yml: the configuration of its proxy → Caddy accepts it", () => {
  const { proxy } = readCompose("compose.accounts.yml", { EARMARK_NAME: "localhost" }).services;
  const folder = temporaryFolder();
  writeFileSync(join(folder, "Caddyfile"), proxy?.environment?.["CADDYFILE"] ?? assert.fail());
  const env = { PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const { status, stderr } = spawnSync("caddy", ["validate", "--config", join(folder, "Caddyfile")], {
    env,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
});

for (const { example, variant, environment, upstream, earmark: first, port } of stages) {
  const title = `${example.name}, ${variant.name}`;
  suite(title, () => {
    const { base } = variant;
    const origin = `https://localhost:${port}`;
    let earmark = first;
    const ask = (method: string, path: string, options?: Options) => call(port, method, path, options);
    /**
     * Caddy closes a connection as soon as it has forwarded an early response. A client that is still sending may then
     * get a connection reset before it reads the response, and must retry.
     */
    const askWithRetries = async (method: string, path: string, options: Options) => {
      for (let tries = 1; ; tries += 1) {
        try {
          return await ask(method, path, options);
        } catch (error) {
          if (example !== CADDY || tries === 10) throw error;
        }
      }
    };
    const signIn = (password: string, options: Options = {}) =>
      ask("POST", `${base}/v1/sessions`, {
        ...options,
        headers: { "Content-Type": PLAIN, ...options.headers },
        body: json("session", { name: "ann", password }),
      });
    const isSecure = (cookie: string) =>
      assert.match(
        cookie,
        new RegExp(`^${variant.cookie}=[\\w-]{43}; Path=${base}/; Max-Age=\\d+; HttpOnly; SameSite=Lax; Secure$`),
      );
    let Cookie = "";

    test(`${title}: setup link → creates an account under the public name`, async () => {
      const link = await setUpLink(earmark);
      assert.equal(link.pathname, `${base}/join`);
      const page = await ask("GET", link.pathname);
      assert.equal(page.status, 200);
      assert.match(String(page.headers["content-security-policy"]), /script-src 'self'/);
      for (const [, file = ""] of page.text.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]+)"/g))
        assert.equal((await ask("GET", new URL(file, `${origin}${link.pathname}`).pathname)).status, 200);
      const there = new URL("v1/accounts", `${origin}${link.pathname}`).pathname;
      const response = await ask("POST", there, {
        headers: { "Content-Type": PLAIN, Origin: origin, "Sec-Fetch-Site": "same-origin" },
        body: json("account", { name: "ann", password: PASSWORD, invitation: link.hash.slice(1) }),
      });
      assert.equal(response.status, 201, response.text);
      assert.equal(response.headers["location"], `${base}/v1/me`);
      isSecure(setCookie(response));
      assert.equal((await ask("GET", `${base}/v1/me`, { headers: { Cookie: cookieOf(response) } })).status, 200);
    });

    test(`${title}: sign-in with a spoofed X-Forwarded-Proto → Secure cookie`, async () => {
      const response = await signIn(PASSWORD, { headers: { Origin: origin, "X-Forwarded-Proto": "http" } });
      assert.equal(response.status, 201);
      isSecure(setCookie(response));
      Cookie = cookieOf(response);
      const self = String(response.headers["location"]);
      assert.ok(self.startsWith(`${base}/v1/sessions/`), self);
      assert.equal((await ask("GET", self, { headers: { Cookie } })).json.data.attributes.current, true);
      // The same secret in the http cookie is rejected.
      const plain = Cookie.replace(variant.cookie, "earmark");
      assert.equal((await ask("GET", `${base}/v1/me`, { headers: { Cookie: plain } })).status, 401);
    });

    test(`${title}: write from our own page → accepted; from another site → 403`, async () => {
      const post = (headers: Readonly<Record<string, string>>) => {
        const options = { headers: { Cookie, "Content-Type": PLAIN, ...headers }, body: subscription(newId()) };
        return ask("POST", `${base}/v1/subscriptions`, options);
      };
      const added = await post({ Origin: origin });
      assert.equal(added.status, 201, added.text);
      const self = String(added.headers["location"]);
      assert.equal((await ask("GET", self, { headers: { Cookie } })).status, 200);
      assert.equal((await ask("DELETE", self, { headers: { Cookie, Origin: origin } })).status, 204);
      const evil = { Origin: "https://evil.example" };
      const hosted = { ...evil, "X-Forwarded-Host": "evil.example" };
      for (const headers of [evil, hosted, { Origin: "null" }, { "Sec-Fetch-Site": "cross-site" }]) {
        const refused = await post(headers);
        assert.deepEqual([refused.status, refused.json.errors[0].title], [403, "Cross-Site Request Refused"]);
      }
    });

    test(`${title}: a podcast app → signs in, syncs, and gets links to the public name`, () =>
      syncAsApp(ask, base, origin));

    test(`${title}: 10,000 operations in one request → all listed by following the links`, async () => {
      const operations = Array.from({ length: 10_000 }, () => {
        const id = newId();
        return add(id, `https://feeds.example/${id}`);
      });
      const body = JSON.stringify({ "atomic:operations": operations });
      const headers = { Cookie, "Content-Type": ATOMIC };
      const response = await ask("POST", `${base}/v1/operations`, { headers, body });
      assert.equal(response.status, 200, response.text.slice(0, 500));
      const ids = response.json["atomic:results"].map(({ data }: { data: { id: string } }) => data.id);
      assert.equal(new Set(ids).size, 10_000);

      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const found: string[] = [];
      let next: string | null = `${base}/v1/subscriptions?page[size]=100`;
      while (next !== null) {
        assert.ok(next.startsWith(`${base}/v1/`), next);
        const page: HttpResponse = await ask("GET", next, { headers: { Cookie }, agent });
        assert.equal(page.status, 200, next);
        found.push(...page.json.data.map(({ id }: { id: string }) => id));
        next = page.json.links.next;
      }
      agent.destroy();
      assert.deepEqual(found, ids);

      const everything = await ask("GET", `${base}/v1/me/export`, { headers: { Cookie } });
      const exported = everything.json.data.filter(({ type }: { type: string }) => type === "subscription");
      assert.equal(exported.length, 10_000);
    });

    test(`${title}: HTTP/2 → works`, () => useHttp2(origin, base, Cookie));

    test(`${title}: event stream → changes are reported at once, also after more than a minute of silence`, () =>
      watchEvents(port, base, Cookie));

    test(`${title}: several requests → one client connection, security headers on every response`, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      let sockets = 0;
      const create = agent.createConnection.bind(agent);
      agent.createConnection = (...args: Parameters<typeof create>) => {
        sockets += 1;
        return create(...args);
      };
      for (const [path, status] of [
        ["/v1/me", 200],
        ["/v1/subscriptions/x", 400],
        ["/nowhere", 404],
        ["/v1/me", 200],
      ] as const) {
        const { status: found, headers } = await ask("GET", `${base}${path}`, { headers: { Cookie }, agent });
        assert.equal(found, status);
        assert.equal(headers["strict-transport-security"], "max-age=31536000");
        assert.equal(headers["x-content-type-options"], "nosniff");
        assert.equal(headers["cache-control"], "no-store");
        assert.equal(headers["content-type"], PLAIN);
      }
      agent.destroy();
      assert.equal(sockets, 1);
    });

    test(`${title}: body too large → 413 with Earmark's error document`, async () => {
      const headers = { Cookie, "Content-Type": ATOMIC };
      for (const [length, isChunked] of [
        [MAX_BODY_BYTES + 1, false],
        [MAX_BODY_BYTES + 1, true],
        [3 * MAX_BODY_BYTES, false],
        [3 * MAX_BODY_BYTES, true],
      ] as const) {
        const body = Buffer.alloc(length, " ");
        const response = await askWithRetries("POST", `${base}/v1/operations`, { headers, body, isChunked });
        assert.equal(response.status, 413, `${length} ${isChunked}`);
        assert.equal(response.headers["content-type"], ATOMIC);
        assert.deepEqual(response.json.errors[0].meta, { max: MAX_BODY_BYTES });
      }
      // A body of exactly the maximum length is accepted.
      const body = '{"atomic:operations":[]}'.padEnd(MAX_BODY_BYTES);
      assert.equal((await ask("POST", `${base}/v1/operations`, { headers, body })).status, 200);
      // Without a sign-in, the response is 401 before the body is read.
      const anonymous = { headers: { "Content-Type": ATOMIC }, body };
      assert.equal((await askWithRetries("POST", `${base}/v1/operations`, anonymous)).status, 401);
    });

    test(`${title}: failed sign-ins with spoofed addresses → count for the real address`, async () => {
      const claim = (number: number) => ({ "X-Forwarded-For": `203.0.113.${number}` });
      const [guesser, neighbour] = ["127.0.0.2", "127.0.0.3"];
      const guesses = Array.from({ length: 10 }, (_, number) =>
        signIn("wrong", { from: guesser, headers: claim(number) }),
      );
      for (const { status } of await Promise.all(guesses)) assert.equal(status, 401);
      for (const headers of [
        {},
        claim(99),
        { "X-Forwarded-For": `127.0.0.1, ${neighbour}` },
        { Forwarded: "for=9.9.9.9" },
      ]) {
        const refused = await signIn(PASSWORD, { from: guesser, headers: headers as Record<string, string> });
        assert.equal(refused.status, 429);
        assert.match(String(refused.headers["retry-after"]), /^\d+$/);
      }
      assert.equal((await signIn("wrong", { from: neighbour })).status, 401);
      assert.equal((await signIn(PASSWORD, { from: neighbour })).status, 201);
    });

    test(`${title}: a client that bypasses the proxy → forwarded headers are ignored`, async () => {
      const direct = (password: string, number: number) =>
        new Promise<{ status: number | undefined; cookie: string }>((resolve, reject) => {
          const headers = {
            "Content-Type": PLAIN,
            "X-Forwarded-For": `203.0.113.${number}`,
            "X-Forwarded-Proto": "https",
          };
          const options = { host: "127.0.0.1", localAddress: "127.0.0.4", port: upstream, method: "POST", headers };
          const outgoing = requestPlain({ ...options, path: "/v1/sessions", agent: false }, (incoming) => {
            incoming.resume();
            resolve({ status: incoming.statusCode, cookie: String(incoming.headers["set-cookie"]) });
          });
          outgoing.on("error", reject).end(json("session", { name: "ann", password }));
        });
      assert.match((await direct(PASSWORD, 0)).cookie, /^earmark=[\w-]{43};.*SameSite=Lax$/);
      const guesses = await Promise.all(Array.from({ length: 9 }, (_, number) => direct("wrong", number)));
      for (const { status } of guesses) assert.equal(status, 401);
      assert.equal((await direct(PASSWORD, 99)).status, 429);
    });

    test(`${title}: Earmark restarts under load → no confirmed write is lost`, async () => {
      const [confirmed, failed]: [string[], string[]] = [[], []];
      const statuses = { POST: new Set<number>(), GET: new Set<number>() };
      let isStopped = false;
      const agent = new Agent({ keepAlive: true });
      const headers = { Cookie, "Content-Type": PLAIN };
      const post = (id: string) => ask("POST", `${base}/v1/subscriptions`, { headers, body: subscription(id), agent });
      const worker = async () => {
        while (!isStopped) {
          const id = newId();
          const added = await post(id);
          if (added.status === 201) confirmed.push(id);
          else failed.push(id);
          statuses.POST.add(added.status);
          statuses.GET.add((await ask("GET", `${base}/v1/me`, { headers: { Cookie }, agent })).status);
        }
      };
      const workers = Promise.all([worker(), worker(), worker(), worker()]);
      await sleep(500);
      earmark.child.kill("SIGTERM");
      assert.equal(await earmark.ended, 0);
      const before = confirmed.length;
      earmark = await start(environment);
      for (let tries = 0; confirmed.length < before + 50 && tries < 200; tries += 1) await sleep(50);
      isStopped = true;
      await workers;

      assert.ok(confirmed.length >= before + 50, "no writes succeeded after the restart");
      // Caddy waits until Earmark is back, and retries safe requests. nginx returns 502.
      const [writes, reads] = [[201, 502], example === CADDY ? [200] : [200, 502]];
      for (const status of statuses.POST) assert.ok(writes.includes(status), `POST ${status}`);
      for (const status of statuses.GET) assert.ok(reads.includes(status), `GET ${status}`);
      const everything = await ask("GET", `${base}/v1/me/export`, { headers: { Cookie } });
      const kept = new Set(everything.json.data.map(({ id }: { id: string }) => id));
      assert.equal(
        confirmed.find((id) => !kept.has(id)),
        undefined,
      );
      // Failed writes can be retried without creating duplicates.
      for (const id of failed.slice(0, 20)) assert.equal((await post(id)).status, kept.has(id) ? 409 : 201);
      agent.destroy();
    });
  });
}
