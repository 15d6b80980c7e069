import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  ACCOUNTS,
  cookieOf,
  createToken,
  type Headers,
  json,
  PASSWORD,
  signIn,
  signUp,
  subscription,
  TRUSTING,
  unsafeRequests,
} from "./support/browser-requests.ts";
import { ATOMIC, newId, PLAIN, startServer } from "./support/server.ts";

suite("cross-site requests", () => {
  const server = startServer(ACCOUNTS);
  const forged = (port: number): readonly Headers[] => [
    { "Sec-Fetch-Site": "cross-site" },
    { "Sec-Fetch-Site": "same-site" },
    { "Sec-Fetch-Site": "something-new" },
    { "Sec-Fetch-Site": "cross-site", Origin: `http://127.0.0.1:${port}` },
    { Origin: "https://evil.example" },
    { Origin: "null" },
    { Origin: "null", "Sec-Fetch-Site": "same-origin" },
    { Origin: "" },
    { Origin: "file://" },
    { Origin: `http://127.0.0.1:${port + 1}` },
    { Origin: "http://127.0.0.1" },
    { Origin: `http://localhost:${port}` },
    { Origin: `http://127.0.0.1:${port}.evil.example` },
    { Origin: `http://127.0.0.1:${port}`, Host: "pods.example" },
    { Origin: "https://evil.example", "X-Forwarded-Host": "evil.example" },
    { Origin: "https://evil.example", Host: "pods.example", "X-Forwarded-Host": "evil.example" },
  ];

  test("cross-site: any write with the session cookie → 403, nothing changes", async () => {
    const started = await server;
    const { call, port } = started;
    const Cookie = await signUp(started, "ann");
    await createToken(started, Cookie);
    const id = newId();
    const headers = { Cookie, "Content-Type": PLAIN };
    assert.equal((await call("POST", "/v1/subscriptions", { headers, body: subscription(id) })).status, 201);
    const token: string = (await call("GET", "/v1/tokens", { headers })).json.data[0].id;
    const everything = async () =>
      (await call("GET", "/v1/me/export", { headers: { Cookie } })).text.replaceAll(/"last_used_at":[^,]+/g, "");
    const before = await everything();
    for (const from of forged(port)) {
      for (const [method, path, body] of unsafeRequests(id, token)) {
        const type = path === "/v1/operations" ? ATOMIC : PLAIN;
        const options = { headers: { Cookie, "Content-Type": type, ...from }, ...(body === undefined ? {} : { body }) };
        const response = await call(method, path, options);
        assert.equal(response.status, 403, `${method} ${path} with ${JSON.stringify(from)}`);
        assert.equal(response.json.errors[0].title, "Cross-Site Request Refused");
        assert.equal(response.headers["set-cookie"], undefined);
      }
    }
    assert.equal(await everything(), before);
    assert.equal((await signIn(started, "ann", PASSWORD)).status, 201, "the password is still the same");
  });

  test("cross-site: a request from our own page, or not from a browser → accepted", async () => {
    const started = await server;
    const { call, port } = started;
    const Cookie = await signUp(started, "own");
    for (const from of [
      {},
      { "Sec-Fetch-Site": "same-origin" },
      { "Sec-Fetch-Site": "none" },
      { Origin: `http://127.0.0.1:${port}` },
      { Origin: `https://127.0.0.1:${port}` },
      { Origin: `http://127.0.0.1:${port}`, "Sec-Fetch-Site": "same-origin" },
      { Origin: "https://pods.example", Host: "pods.example" },
      { Origin: "https://pods.example", Host: "PODS.example" },
      { Origin: "https://pods.example:8443", Host: "pods.example:8443" },
    ] as const) {
      const headers = { Cookie, "Content-Type": PLAIN, ...from };
      const id = newId();
      const added = await call("POST", "/v1/subscriptions", { headers, body: subscription(id) });
      assert.equal(added.status, 201, JSON.stringify(from));
      const removed = await call("DELETE", `/v1/subscriptions/${id}`, { headers: { Cookie, ...from } });
      assert.equal(removed.status, 204, JSON.stringify(from));
    }
  });

  test("cross-site: a proxy that rewrites Host → our page is recognized by X-Forwarded-Host or EARMARK_ALLOWED_HOSTS", async () => {
    const origin = { Origin: "https://pods.example" };
    const inside = { Host: "127.0.0.1:8080" };
    const [trusting, strict, naming] = [
      await startServer(TRUSTING),
      await server,
      await startServer({ ...ACCOUNTS, EARMARK_ALLOWED_HOSTS: "pods.example" }),
    ];
    for (const [which, headers, status] of [
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "pods.example" }, 201],
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "Pods.Example" }, 201],
      [trusting, { Host: "earmark:8080", ...origin, "X-Forwarded-Host": "pods.example" }, 201],
      [trusting, { ...inside, Origin: "https://pods.example:8443", "X-Forwarded-Host": "pods.example:8443" }, 201],
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "evil.example, pods.example" }, 201],
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "pods.example, other.example" }, 403],
      [trusting, { ...inside, ...origin }, 403],
      [trusting, { ...inside, Origin: "https://evil.example", "X-Forwarded-Host": "pods.example" }, 403],
      [trusting, { ...inside, Origin: "https://pods.example:8443", "X-Forwarded-Host": "pods.example" }, 403],
      [strict, { ...inside, ...origin, "X-Forwarded-Host": "pods.example" }, 403],
      [naming, { ...inside, ...origin }, 201],
      [naming, { Host: "pods.example", ...origin }, 201],
      [naming, { ...inside, Origin: "https://evil.example" }, 403],
      [naming, { ...inside, Origin: "https://pods.example.evil.example" }, 403],
      [naming, { Host: "evil.example", Origin: "https://evil.example" }, 421],
    ] as const) {
      const name = `p${newId()}`;
      const body = json("account", { name, password: PASSWORD });
      const signedUp = await which.call("POST", "/v1/accounts", {
        headers: { ...headers, "Content-Type": PLAIN },
        body,
      });
      assert.equal(signedUp.status, status, JSON.stringify(headers));
      if (status !== 201) continue;
      const added = await which.call("POST", "/v1/subscriptions", {
        headers: { ...headers, "Content-Type": PLAIN, Cookie: cookieOf(signedUp) },
        body: subscription(),
      });
      assert.equal(added.status, 201, JSON.stringify(headers));
    }
  });

  test("cross-site: sign-in or sign-up → 403, because the browser would then use the attacker's account", async () => {
    const started = await startServer(ACCOUNTS);
    const cookie = await signUp(started, "ann");
    for (const from of forged(started.port)) {
      const refused = [
        await signIn(started, "ann", PASSWORD, from),
        await started.call("POST", "/v1/accounts", {
          headers: { "Content-Type": PLAIN, ...from },
          body: json("account", { name: "theirs", password: PASSWORD }),
        }),
      ];
      for (const { status, headers } of refused)
        assert.deepEqual([status, headers["set-cookie"]], [403, undefined], JSON.stringify(from));
    }
    const sessions = await started.call("GET", "/v1/sessions", { headers: { Cookie: cookie } });
    assert.equal(sessions.json.meta.total, 1);
    assert.equal((await signIn(started, "theirs", PASSWORD)).status, 401);
  });

  test("cross-site: a request with a token → accepted, because browsers do not add tokens on their own", async () => {
    const started = await server;
    const Cookie = await signUp(started, "token");
    const Authorization = `Bearer ${await createToken(started, Cookie)}`;
    for (const from of forged(started.port)) {
      const headers = { Authorization, "Content-Type": PLAIN, ...from };
      const added = await started.call("POST", "/v1/subscriptions", { headers, body: subscription() });
      assert.equal(added.status, 201, JSON.stringify(from));
    }
    // With an invalid token, the cookie is not used instead.
    const headers = { Authorization: "Bearer x", Cookie, "Content-Type": PLAIN, Origin: "https://evil.example" };
    assert.equal((await started.call("POST", "/v1/subscriptions", { headers, body: subscription() })).status, 401);
    const alone = { headers: { Authorization: "Basic YW5uOng=", Cookie, "Content-Type": PLAIN }, body: subscription() };
    assert.equal((await started.call("POST", "/v1/subscriptions", alone)).status, 401);
  });

  test("cross-site: navigation from another site → the page opens, the API returns 403", async () => {
    const started = await server;
    const Cookie = await signUp(started, "reader");
    for (const method of ["GET", "HEAD"]) {
      const headers = { Cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate" };
      assert.equal((await started.call(method, "/", { headers })).status, 200);
      assert.equal((await started.call(method, "/v1/subscriptions", { headers })).status, 403);
    }
  });
});
