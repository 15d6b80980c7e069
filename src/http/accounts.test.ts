import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Answer, ATOMIC, add, newId, PLAIN, startServer, type TestServer } from "../../test/harness.ts";
import { addTo } from "../../test/lists.ts";
import { SESSION_IDLE_MS } from "../account-store.ts";
import { Accounts, hashSecret, SESSION_MS } from "../accounts.ts";
import { asUser } from "../subscriptions.ts";

const PASSWORD = "correct horse battery";
const MINUTE = 60_000;
const JSONAPI = { "Content-Type": PLAIN };

/** A server whose clock stands until it is moved, and through which a test may come from any network. */
async function start(settings: Readonly<Record<string, string>> = {}) {
  let now = Date.now();
  const server = await startServer(
    { EARMARK_ACCOUNTS: "on", EARMARK_SIGN_UP: "open", EARMARK_TRUSTED_PROXIES: "127.0.0.1", ...settings },
    () => new Date(now),
  );
  const accounts = new Accounts(server.store.accounts, { signUp: true });
  return {
    ...server,
    accounts,
    wait: (ms: number) => {
      now += ms;
    },
    now: () => new Date(now),
  };
}

let networks = 0;
/** Every call from another network, so that no limit is met by chance. */
const elsewhere = () => {
  networks += 1;
  return { "X-Forwarded-For": `10.${networks >> 16}.${(networks >> 8) & 255}.${networks & 255}` };
};

const documentOf = (type: string, attributes: object) => JSON.stringify({ data: { type, attributes } });

const signUp = ({ call }: TestServer, name: unknown, password: unknown = PASSWORD, more: object = {}) =>
  call("POST", "/v1/accounts", {
    headers: { ...JSONAPI, ...elsewhere() },
    body: documentOf("account", { name, password, ...more }),
  });

const signIn = ({ call }: TestServer, name: unknown, password: unknown = PASSWORD, headers = elsewhere()) =>
  call("POST", "/v1/sessions", {
    headers: { ...JSONAPI, ...headers },
    body: documentOf("session", { name, password }),
  });

const cookieOf = (answer: Answer) => String(answer.headers["set-cookie"]).split(";")[0] ?? "";

let names = 0;
/** A new user who is signed in, with a token for an app. */
async function newUser(server: TestServer, scope: "read" | "write" = "write") {
  names += 1;
  const name = `user-${names}`;
  const answer = await signUp(server, name);
  assert.equal(answer.status, 201, answer.text);
  const Cookie = cookieOf(answer);
  const made = await server.call("POST", "/v1/tokens", {
    headers: { ...JSONAPI, Cookie },
    body: documentOf("token", { label: "phone", scope }),
  });
  assert.equal(made.status, 201, made.text);
  const Authorization = `Bearer ${made.json.data.attributes.token}`;
  return { name, Cookie, Authorization, tokenId: made.json.data.id as string };
}

const titleOf = ({ json }: Answer) => json.errors[0].title;
const pointerOf = ({ json }: Answer) => json.errors[0].source?.pointer;

describe("signing up and in", async () => {
  const server = await start();

  test("whoever signs up has an account, and is signed in", async () => {
    const answer = await signUp(server, "Ann.Smith");
    assert.equal(answer.status, 201);
    assert.equal(answer.headers["location"], "/v1/me");
    assert.equal(answer.json.data.type, "account");
    assert.equal(answer.json.data.attributes.name, "ann.smith");
    const me = await server.call("GET", "/v1/me", { headers: { Cookie: cookieOf(answer) } });
    assert.deepEqual(me.json.data, answer.json.data);
  });

  test("a sign-in gives a cookie that no script can read and no other site can use", async () => {
    const { name } = await newUser(server);
    const plain = await signIn(server, name);
    assert.equal(plain.status, 201);
    assert.match(
      String(plain.headers["set-cookie"]),
      /^earmark=[\w-]{43}; Path=\/; Max-Age=7776000; HttpOnly; SameSite=Lax$/,
    );
    const https = await signIn(server, name, PASSWORD, { ...elsewhere(), "X-Forwarded-Proto": "https" } as never);
    assert.match(
      String(https.headers["set-cookie"]),
      /^__Host-earmark=[\w-]{43}; Path=\/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure$/,
    );
    assert.equal(https.headers["location"], https.json.data.links.self);
    assert.equal(https.json.data.attributes.current, true);
  });

  test("a name has one form: case, width and composition do not count, and nothing looks like another", async () => {
    assert.equal((await signUp(server, "Zoe-1")).status, 201);
    for (const same of ["zoe-1", "ZOE-1", "ｚｏｅ－１"]) {
      const again = await signUp(server, same);
      assert.deepEqual([again.status, titleOf(again), pointerOf(again)], [409, "Name Taken", "/data/attributes/name"]);
      assert.equal((await signIn(server, same)).status, 201);
    }
    for (const other of [
      "zоe-1",
      "zoé-1",
      "zoe\u0301-1",
      "zoe\u200b-1",
      "zoe 1",
      "",
      "-zoe",
      "a".repeat(65),
      "zoe\0",
    ]) {
      const answer = await signUp(server, other);
      assert.deepEqual([answer.status, pointerOf(answer)], [422, "/data/attributes/name"], JSON.stringify(other));
      assert.equal((await signIn(server, other)).status, 401);
    }
  });

  test("a password is taken exactly as it was typed", async () => {
    for (const [index, password] of [
      " leading and trailing ",
      "with\0nul inside",
      "🎧📻🎙️🎵🎧📻🎙️🎵",
      "x1".repeat(50),
      "y2".repeat(128),
      "caf\u00e9 au lait",
    ].entries()) {
      const name = `exact-${index}`;
      assert.equal((await signUp(server, name, password)).status, 201, password);
      assert.equal((await signIn(server, name, password)).status, 201, password);
      for (const wrong of [password.trim(), password.slice(0, 72), password.normalize("NFD"), `${password} `]) {
        if (wrong !== password) assert.equal((await signIn(server, name, wrong)).status, 401, wrong);
      }
    }
  });

  test("a password that is too short, too long or common is refused before anything is made", async () => {
    for (const password of [
      "seven77",
      "x".repeat(257),
      "Password123",
      "1234567890",
      "aaaaaaaaaaaa",
      "common-name",
      "a\ud800bcdefgh",
    ]) {
      const answer = await signUp(server, "common-name", password);
      assert.deepEqual([answer.status, pointerOf(answer)], [422, "/data/attributes/password"], password);
    }
    assert.equal((await signUp(server, "common-name")).status, 201);
  });

  test("a password of a megabyte is not even read", async () => {
    const { name } = await newUser(server);
    assert.equal((await signIn(server, name, "x".repeat(1 << 20))).status, 413);
    assert.equal((await signIn(server, name, "x".repeat(8_000))).status, 422);
  });

  test("a wrong password and an unknown name are answered with the same bytes", async () => {
    const { name } = await newUser(server);
    const [wrong, unknown] = [
      await signIn(server, name, "wrong password"),
      await signIn(server, "nobody-at-all", PASSWORD),
    ];
    assert.equal(wrong.status, 401);
    assert.equal(wrong.headers["www-authenticate"], 'Bearer realm="Earmark"');
    assert.equal(wrong.text, unknown.text);
    assert.deepEqual({ ...wrong.headers, date: "" }, { ...unknown.headers, date: "" });
  });

  test("an unknown name takes as long as a wrong password", async () => {
    const { name } = await newUser(server);
    /** Mann and Whitney: how often one is slower than the other, in deviations; 7.7 where it always is. */
    const compare = async () => {
      const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] };
      for (let round = 0; round < 40; round += 1) {
        for (const kind of round % 2 === 0 ? (["known", "unknown"] as const) : (["unknown", "known"] as const)) {
          const started = performance.now();
          await signIn(server, kind === "known" ? name : `nobody-${round}`, "wrong password");
          times[kind].push(performance.now() - started);
        }
      }
      const { known, unknown } = times;
      let slower = 0;
      for (const one of known) for (const other of unknown) slower += one > other ? 1 : 0;
      const [n, m] = [known.length, unknown.length];
      return Math.abs(slower - (n * m) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12);
    };
    // What a machine does besides may look like a difference once, but not each time.
    const deviations: number[] = [];
    while (deviations.length < 3 && !deviations.some((each) => each < 5)) deviations.push(await compare());
    assert.ok(
      deviations.some((each) => each < 5),
      `${deviations.map((each) => each.toFixed(1))} deviations`,
    );
  });

  test("documents that are none, or of another type, are refused", async () => {
    const post = (body: string, headers = {}) =>
      server.call("POST", "/v1/sessions", { headers: { ...JSONAPI, ...elsewhere(), ...headers }, body });
    for (const [body, status, pointer] of [
      ["{", 400, undefined],
      ["[]", 400, ""],
      ["{}", 400, ""],
      ['{"data":[]}', 400, "/data"],
      ['{"data":{}}', 400, "/data"],
      ['{"data":{"type":"token"}}', 409, "/data/type"],
      ['{"data":{"type":"session"}}', 422, "/data"],
      ['{"data":{"type":"session","attributes":[]}}', 422, "/data/attributes"],
      ['{"data":{"type":"session","attributes":{"name":"x"}}}', 422, "/data/attributes"],
      ['{"data":{"type":"session","attributes":{"name":1,"password":"x"}}}', 422, "/data/attributes/name"],
    ] as const) {
      const answer = await post(body);
      assert.deepEqual([answer.status, pointerOf(answer)], [status, pointer], body);
    }
    assert.equal((await post("{}", { "Content-Type": "application/json" })).status, 415);
    assert.equal((await post("{}", { Accept: "text/html" })).status, 406);
  });
});

describe("who may sign up", () => {
  test("sign-up is closed unless opened", async () => {
    const server = await start({ EARMARK_SIGN_UP: "closed" });
    const answer = await signUp(server, "stranger");
    assert.deepEqual([answer.status, titleOf(answer)], [403, "Sign-Up Closed"]);
    assert.equal((await signIn(server, "stranger")).status, 401);
  });

  test("an invitation makes one account, until it ends", async () => {
    const server = await start({ EARMARK_SIGN_UP: "closed" });
    const invite = async () => {
      const opened = await server.accounts.invite(7, server.now());
      assert.ok(!("refused" in opened));
      return opened.secret;
    };
    const [used, late] = [await invite(), await invite()];
    assert.equal((await signUp(server, "ann", "short", { invitation: used })).status, 422);
    assert.equal((await signUp(server, "ann", PASSWORD, { invitation: used })).status, 201);
    server.wait(8 * 24 * 60 * MINUTE);
    for (const invitation of [used, late, "emi_x", "", `${late}x`]) {
      const answer = await signUp(server, "bob", PASSWORD, { invitation });
      assert.deepEqual([answer.status, titleOf(answer)], [403, "Invitation Not Valid"], invitation);
    }
  });

  test("the set-up link makes the first account, and no other", async () => {
    const server = await start({ EARMARK_SIGN_UP: "closed" });
    const [first, second] = [await server.accounts.setUp(server.now()), await server.accounts.setUp(server.now())];
    assert.ok(first !== undefined && second !== undefined);
    assert.equal((await signUp(server, "ann", PASSWORD, { invitation: first.secret })).status, 201);
    assert.equal((await signUp(server, "bob", PASSWORD, { invitation: second.secret })).status, 403);
    assert.equal(await server.accounts.setUp(server.now()), undefined);
  });

  test("whoever signs up by themselves does not get the list that was there before", async () => {
    const server = await start();
    await addTo(
      server.store,
      asUser(1),
      [{ kind: "add", id: newId(), feedUrl: "https://ann:secret@a.example/", feed: "a.example" }],
      server.now(),
    );
    const stranger = await signUp(server, "stranger");
    assert.notEqual(stranger.json.data.id, "1");
    const list = await server.call("GET", "/v1/subscriptions", { headers: { Cookie: cookieOf(stranger) } });
    assert.equal(list.json.meta.total, 0);
    const made = await server.accounts.create("owner", PASSWORD, server.now());
    assert.equal("user" in made && made.user, 1);
  });

  test("nobody can choose a name that stands for a user of the identity provider", async () => {
    const { accounts, now } = await start();
    const issuer = "https://id.example";
    const vouched = await accounts.findOrCreateOidcUser(issuer, "alice", true, now());
    const made = await accounts.create("alice", PASSWORD, now());
    assert.equal((await accounts.findByName("oidc:alice", issuer))?.user, vouched);
    assert.equal((await accounts.findByName("Alice", issuer))?.user, "user" in made && made.user);
    assert.equal(await accounts.findByName("oidc:alice"), undefined);
    assert.ok("refused" in (await accounts.create("oidc:alice", PASSWORD, now())));
  });

  test("an open server still refuses an invitation that is none", async () => {
    const server = await start();
    assert.equal((await signUp(server, "ann", PASSWORD, { invitation: "emi_nothing" })).status, 403);
  });
});

describe("credentials in a request", async () => {
  const server = await start();
  const { call } = server;
  const list = (headers: Record<string, string | string[]>, path = "/v1/subscriptions") =>
    call("GET", path, { headers });

  test("without credentials there is nothing but 401, in the route's own dialect", async () => {
    const plain = await list({});
    assert.equal(plain.status, 401);
    assert.equal(plain.headers["www-authenticate"], 'Bearer realm="Earmark"');
    assert.equal(plain.headers["content-type"], PLAIN);
    const atomic = await call("POST", "/v1/operations", { body: "nonsense" });
    assert.equal(atomic.status, 401);
    assert.equal(atomic.headers["content-type"], ATOMIC);
  });

  test("a token is a bearer token: one space, any case of the scheme, nothing else", async () => {
    const { Authorization } = await newUser(server);
    const token = Authorization.slice("Bearer ".length);
    for (const good of [Authorization, `bearer ${token}`, `BEARER ${token}`])
      assert.equal((await list({ Authorization: good })).status, 200, good);
    for (const bad of [
      "Bearer",
      "Bearer ",
      `Bearer  ${token}`,
      `Bearer\t${token}`,
      `Bearer ${token} x`,
      `Bearer ${token},`,
      `Basic ${Buffer.from(`ann:${token}`).toString("base64")}`,
      `Token ${token}`,
      token,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token}A`,
      `Bearer ${token.toUpperCase()}`,
      `Bearer emk_${"A".repeat(43)}`,
      `Bearer emk_${"A".repeat(8_000)}`,
      `Bearer ${"A".repeat(8_000)}`,
    ]) {
      const answer = await list({ Authorization: bad });
      assert.equal(answer.status, 401, bad.slice(0, 80));
      assert.equal(answer.headers["www-authenticate"], 'Bearer realm="Earmark", error="invalid_token"');
    }
    assert.equal((await list({ Authorization: `Bearer ${"A".repeat(100 * 1024)}` })).status, 431);
  });

  test("of two Authorization headers neither is used", async () => {
    const { Authorization } = await newUser(server);
    for (const two of [
      [Authorization, Authorization],
      [Authorization, "Bearer x"],
      ["Bearer x", Authorization],
    ])
      assert.equal((await list({ Authorization: two })).status, 401);
  });

  test("a wrong, a revoked and an expired token, and another's session, are answered with the same bytes", async () => {
    const { Cookie, Authorization, tokenId } = await newUser(server);
    const expires_at = new Date(server.now().getTime() + MINUTE).toISOString();
    const short = await call("POST", "/v1/tokens", {
      headers: { ...JSONAPI, Cookie },
      body: documentOf("token", { label: "guest", scope: "read", expires_at }),
    });
    const expiring = `Bearer ${short.json.data.attributes.token}`;
    assert.equal((await list({ Authorization: expiring })).status, 200);
    assert.equal((await call("DELETE", `/v1/tokens/${tokenId}`, { headers: { Cookie } })).status, 204);
    server.wait(MINUTE);
    const answers = [
      await list({ Authorization: `Bearer emk_${"A".repeat(43)}` }),
      await list({ Authorization }),
      await list({ Authorization: expiring }),
      await list({ Authorization: `Bearer ${Cookie.split("=")[1]}` }),
      await list({ Cookie: "earmark=tampered" }),
      await list({ Cookie: Cookie.replace(/.$/, (last) => (last === "A" ? "B" : "A")) }),
      await list({ Authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ." }),
    ];
    for (const { status, text, headers } of answers) {
      assert.equal(status, 401);
      assert.equal(text, answers[0]?.text);
      assert.deepEqual({ ...headers, date: "" }, { ...answers[0]?.headers, date: "" });
    }
  });

  test("a token in an address is 400, wherever, and is not used", async () => {
    const { Authorization } = await newUser(server);
    const token = Authorization.slice("Bearer ".length);
    for (const query of [`access_token=${token}`, "access_token=x", `token=${token}`, `page[size]=${token}`]) {
      const answer = await list({}, `/v1/subscriptions?${query}`);
      assert.deepEqual([answer.status, titleOf(answer)], [400, "Token In Query"], query);
      assert.doesNotMatch(answer.text, /emk_/);
    }
    assert.equal((await list({ Authorization }, `/v1/subscriptions?access_token=${token}`)).status, 400);
  });

  test("a read-only token reads, and changes nothing", async () => {
    const { Authorization } = await newUser(server, "read");
    const headers = { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC };
    const body = JSON.stringify({ "atomic:operations": [add(newId(), "https://feeds.example/1")] });
    const answer = await call("POST", "/v1/operations", { headers, body });
    assert.deepEqual([answer.status, titleOf(answer)], [403, "Insufficient Scope"]);
    assert.match(String(answer.headers["www-authenticate"]), /error="insufficient_scope"/);
    assert.equal((await list({ Authorization })).json.meta.total, 0);
  });

  test("a token cannot make tokens, see sessions, change the password or delete the account", async () => {
    const { Authorization, Cookie } = await newUser(server);
    for (const [method, path] of [
      ["GET", "/v1/tokens"],
      ["POST", "/v1/tokens"],
      ["GET", "/v1/sessions"],
      ["PATCH", "/v1/me"],
      ["DELETE", "/v1/me"],
    ] as const) {
      const answer = await call(method, path, { headers: { Authorization } });
      assert.deepEqual([answer.status, titleOf(answer)], [403, "Sign In Needed"], `${method} ${path}`);
    }
    assert.equal((await call("GET", "/v1/me", { headers: { Cookie } })).status, 200);
  });

  test("cookies: others of our name beside a valid session → the valid one counts", async () => {
    const { name, Cookie } = await newUser(server);
    const planted = (count: number) =>
      Array.from({ length: count }, (_, index) => `earmark=planted-${index}; `).join("");
    for (const header of [
      `x=1; ${Cookie}; y=2`,
      `${Cookie}; ${Cookie}`,
      `earmark=; ${Cookie}`,
      `${Cookie}; ${planted(9)}`,
      `${planted(3)}${Cookie}`,
      `${planted(1).repeat(9)}${Cookie}`,
    ]) {
      const answer = await list({ Cookie: header }, "/v1/me");
      assert.equal(answer.json.data?.attributes.name, name, header);
    }
    assert.equal((await list({ Cookie: [Cookie, "earmark=planted"] })).status, 200);
    assert.equal((await list({ Cookie: `${planted(4)}${Cookie}` })).status, 401, "no more than four are tried");
  });

  test("cookies: two different valid sessions → 401; a header that is too long → 431", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const other = cookieOf(await signIn(server, ann.name));
    for (const header of [`${ann.Cookie}; ${bob.Cookie}`, `${ann.Cookie}; earmark=x; ${other}`])
      assert.equal((await list({ Cookie: header })).status, 401, header);
    assert.equal((await list({ Cookie: "earmark=x; earmark=y" })).status, 401);
    assert.equal((await list({ Cookie: `earmark=${"A".repeat(8_192)}` })).status, 431);
  });

  test("who sends a token is known by it, whatever the cookie", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const me = await list({ Authorization: ann.Authorization, Cookie: bob.Cookie }, "/v1/me");
    assert.equal(me.json.data.attributes.name, ann.name);
    assert.equal((await list({ Authorization: "Bearer x", Cookie: bob.Cookie })).status, 401);
  });
});

describe("sessions", async () => {
  const server = await start();
  const { call } = server;
  const me = (Cookie: string) => call("GET", "/v1/me", { headers: { Cookie } });
  const sessions = async (Cookie: string) => (await call("GET", "/v1/sessions", { headers: { Cookie } })).json.data;

  test("a sign-in never takes up an id that the browser brought", async () => {
    const { name } = await newUser(server);
    const preset = `earmark=${"A".repeat(43)}`;
    const answer = await call("POST", "/v1/sessions", {
      headers: { ...JSONAPI, ...elsewhere(), Cookie: preset },
      body: documentOf("session", { name, password: PASSWORD }),
    });
    assert.notEqual(cookieOf(answer), preset);
    assert.equal((await me(preset)).status, 401);
    assert.notEqual(cookieOf(await signIn(server, name)), cookieOf(answer));
  });

  test("sessions are listed with what opened them, and each can be ended", async () => {
    const { name, Cookie } = await newUser(server);
    server.wait(1);
    const other = await call("POST", "/v1/sessions", {
      headers: { ...JSONAPI, ...elsewhere(), "User-Agent": "A phone/1.0" },
      body: documentOf("session", { name, password: PASSWORD }),
    });
    const listed = await sessions(Cookie);
    assert.deepEqual(
      listed.map(({ attributes }: { attributes: { label: string; current: boolean } }) => [
        attributes.label,
        attributes.current,
      ]),
      [
        ["", true],
        ["A phone/1.0", false],
      ],
    );
    const path = other.json.data.links.self;
    assert.equal((await call("GET", path, { headers: { Cookie } })).json.data.id, other.json.data.id);
    const ended = await call("DELETE", path, { headers: { Cookie } });
    assert.deepEqual([ended.status, ended.headers["set-cookie"]], [204, undefined]);
    assert.equal((await me(cookieOf(other))).status, 401);
    assert.equal((await sessions(Cookie)).length, 1);
  });

  test("who ends the present session is signed out, and the browser forgets it", async () => {
    const { Cookie } = await newUser(server);
    const [{ links }] = await sessions(Cookie);
    const answer = await call("DELETE", links.self, { headers: { Cookie } });
    assert.equal(answer.status, 204);
    assert.match(String(answer.headers["set-cookie"]), /^earmark=; Path=\/; Max-Age=0;/);
    assert.equal((await me(Cookie)).status, 401);
  });

  test("a session ends when it was not used for long, and at some time in any case", async () => {
    const { Cookie } = await newUser(server);
    const use = async () => {
      // The use is written beside the answer, when the clock was just set by the next look at the credential.
      const isWritten = async () => {
        const answer = await me(Cookie);
        assert.equal(answer.status, 200, "as long as it is used");
        const [session] = await server.store.accounts.listCredentials(Number(answer.json.data.id), "session");
        return session?.usedAt?.getTime() === server.now().getTime();
      };
      for (let tries = 0; tries < 500 && !(await isWritten()); tries += 1)
        await new Promise((resolve) => setTimeout(resolve, 5));
    };
    let age = 0;
    for (; age + SESSION_IDLE_MS - 1 < SESSION_MS; age += SESSION_IDLE_MS - 1) {
      server.wait(SESSION_IDLE_MS - 1);
      await use();
    }
    server.wait(SESSION_MS - age - 1);
    assert.equal((await me(Cookie)).status, 200);
    server.wait(1);
    assert.equal((await me(Cookie)).status, 401, "at its end");
    const { Cookie: idle } = await newUser(server);
    assert.equal((await me(idle)).status, 200);
    server.wait(SESSION_IDLE_MS);
    assert.equal((await me(idle)).status, 401, "not used");
  });

  test("a new password ends all other sessions, and no token", async () => {
    const { name, Cookie, Authorization } = await newUser(server);
    const other = cookieOf(await signIn(server, name));
    const change = (attributes: object) =>
      call("PATCH", "/v1/me", {
        headers: { ...JSONAPI, ...elsewhere(), Cookie },
        body: documentOf("account", attributes),
      });
    const wrong = await change({ current_password: "not it at all", password: "another password" });
    assert.deepEqual(
      [wrong.status, titleOf(wrong), pointerOf(wrong)],
      [403, "Wrong Password", "/data/attributes/current_password"],
    );
    const weak = await change({ current_password: PASSWORD, password: "password" });
    assert.deepEqual([weak.status, pointerOf(weak)], [422, "/data/attributes/password"]);
    assert.equal((await me(other)).status, 200);
    assert.equal((await change({ current_password: PASSWORD, password: "another password" })).status, 204);
    assert.equal((await me(Cookie)).status, 200);
    assert.equal((await me(other)).status, 401);
    assert.equal((await call("GET", "/v1/me", { headers: { Authorization } })).status, 200);
    assert.equal((await signIn(server, name)).status, 401);
    assert.equal((await signIn(server, name, "another password")).status, 201);
  });

  test("of very many sessions the one that was not used for longest makes room", async () => {
    const { Cookie } = await newUser(server);
    const user = Number((await me(Cookie)).json.data.id);
    const account = await server.store.accounts.get(user);
    for (let count = 1; count < 100; count += 1) {
      const credential = {
        id: newId(),
        kind: "session",
        user,
        scope: "write",
        label: "old",
        createdAt: new Date(server.now().getTime() - count),
        usedAt: undefined,
        expiresAt: new Date(server.now().getTime() + SESSION_MS),
      } as const;
      await server.store.accounts.addCredential(asUser(user), {
        credential,
        hash: hashSecret(newId()),
        atMost: 100,
      });
    }
    assert.equal((await sessions(Cookie)).length, 25, "a page");
    assert.equal((await me(Cookie)).json.meta.counts.sessions, 100);
    assert.equal((await signIn(server, account?.account.name)).status, 201);
    assert.equal((await me(Cookie)).json.meta.counts.sessions, 100);
  });
});

describe("tokens", async () => {
  const server = await start();
  const { call } = server;
  const create = (Cookie: string, attributes: object) =>
    call("POST", "/v1/tokens", { headers: { ...JSONAPI, Cookie }, body: documentOf("token", attributes) });

  test("a token is shown once, with 256 bits behind its prefix", async () => {
    const { Cookie } = await newUser(server);
    const answer = await create(Cookie, { label: "Küche 🎧", scope: "write" });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers["location"], answer.json.data.links.self);
    const { token, ...rest } = answer.json.data.attributes;
    assert.match(token, /^emk_[\w-]{43}$/);
    assert.equal(Buffer.from(token.slice(4), "base64url").length, 32);
    assert.deepEqual(rest, {
      label: "Küche 🎧",
      scope: "write",
      created_at: server.now().toISOString(),
      last_used_at: null,
      expires_at: null,
    });
    const again = await call("GET", answer.json.data.links.self, { headers: { Cookie } });
    assert.deepEqual(again.json.data.attributes, rest);
    const all = await call("GET", "/v1/tokens", { headers: { Cookie } });
    assert.equal(all.json.meta.total, 2);
    assert.doesNotMatch(all.text, /emk_/);
  });

  test("its last use is remembered, to some minutes", async () => {
    const { Cookie, Authorization } = await newUser(server);
    const used = async () => {
      // It is written beside the answer, when the clock was just set by the next look at the credential.
      for (let tries = 0; tries < 100; tries += 1) {
        await call("GET", "/v1/subscriptions", { headers: { Authorization } });
        const [{ attributes }] = (await call("GET", "/v1/tokens", { headers: { Cookie } })).json.data;
        if (attributes.last_used_at === server.now().toISOString()) return attributes.last_used_at;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return undefined;
    };
    assert.equal(await used(), server.now().toISOString());
    server.wait(5 * MINUTE);
    assert.equal(await used(), server.now().toISOString());
  });

  test("a revoked token is refused with the very next request", async () => {
    const { Cookie, Authorization, tokenId } = await newUser(server);
    const ask = () => call("GET", "/v1/subscriptions", { headers: { Authorization } });
    assert.equal((await ask()).status, 200);
    assert.equal((await call("DELETE", `/v1/tokens/${tokenId.toUpperCase()}`, { headers: { Cookie } })).status, 204);
    assert.equal((await ask()).status, 401);
    const again = await call("DELETE", `/v1/tokens/${tokenId}`, { headers: { Cookie } });
    assert.deepEqual([again.status, titleOf(again)], [404, "Token not found"]);
    assert.equal((await call("DELETE", "/v1/tokens/nonsense", { headers: { Cookie } })).status, 400);
  });

  test("what a token must be like", async () => {
    const { Cookie } = await newUser(server);
    const past = new Date(server.now().getTime() - 1).toISOString();
    for (const [attributes, member] of [
      [{ scope: "read" }, ""],
      [{ label: "", scope: "read" }, "/label"],
      [{ label: "x".repeat(101), scope: "read" }, "/label"],
      [{ label: "x\u0000", scope: "read" }, "/label"],
      [{ label: "x\ud800", scope: "read" }, "/label"],
      [{ label: "x" }, ""],
      [{ label: "x", scope: "admin" }, "/scope"],
      [{ label: "x", scope: "read", expires_at: past }, "/expires_at"],
      [{ label: "x", scope: "read", expires_at: "tomorrow" }, "/expires_at"],
      [{ label: "x", scope: "read", expires_at: "2999-02-31" }, "/expires_at"],
      [{ label: "x", scope: "read", expires_at: 1e15 }, "/expires_at"],
    ] as const) {
      const answer = await create(Cookie, attributes);
      assert.deepEqual(
        [answer.status, pointerOf(answer)],
        [422, `/data/attributes${member}`],
        JSON.stringify(attributes),
      );
    }
    assert.equal((await create(Cookie, { label: "x", scope: "read", expires_at: null })).status, 201);
  });

  test("an account has at most a hundred", async () => {
    const { Cookie } = await newUser(server);
    for (let count = 1; count < 100; count += 1)
      assert.equal((await create(Cookie, { label: `${count}`, scope: "read" })).status, 201);
    const answer = await create(Cookie, { label: "one more", scope: "read" });
    assert.deepEqual(
      [answer.status, titleOf(answer), answer.json.errors[0].meta],
      [409, "Too Many Tokens", { max: 100 }],
    );
    const page = await call("GET", "/v1/tokens?page[number]=4&page[size]=30", { headers: { Cookie } });
    assert.equal(page.json.data.length, 10);
    assert.equal(page.json.links.prev, "/v1/tokens?page[number]=3&page[size]=30");
    assert.equal(page.json.links.next, null);
    assert.equal((await call("GET", "/v1/tokens?page[size]=101", { headers: { Cookie } })).status, 400);
    assert.equal((await call("GET", "/v1/tokens?sort=label", { headers: { Cookie } })).status, 400);
  });
});

describe("limits", () => {
  test("ten guesses at a name, then one a minute; the right person elsewhere gets in", async () => {
    const server = await start();
    const { name } = await newUser(server);
    const attacker = { "X-Forwarded-For": "192.0.2.1" };
    for (let guess = 0; guess < 10; guess += 1)
      assert.equal((await signIn(server, name, "wrong password", attacker)).status, 401);
    const limited = await signIn(server, name, PASSWORD, attacker);
    assert.deepEqual([limited.status, limited.headers["retry-after"]], [429, "60"]);
    assert.equal(limited.headers["content-type"], PLAIN);
    assert.equal(titleOf(limited), "Too Many Requests");
    assert.equal((await signIn(server, name.toUpperCase(), PASSWORD, attacker)).status, 429, "in any case");
    assert.equal((await signIn(server, "nobody", PASSWORD, attacker)).status, 401, "another name");
    assert.equal((await signIn(server, name, PASSWORD, { "X-Forwarded-For": "192.0.2.2" })).status, 201, "elsewhere");
    server.wait(MINUTE);
    assert.equal((await signIn(server, name, "wrong password", attacker)).status, 401);
    assert.equal((await signIn(server, name, PASSWORD, attacker)).status, 429);
  });

  test("one network does not try all names, and 64 bits of IPv6 are one network", async () => {
    const server = await start();
    const from = (host: number) => ({ "X-Forwarded-For": `2001:db8::${host.toString(16)}` });
    // Nothing of this is hashed: a name that cannot be one is known to be wrong, but counts.
    const tries = await Promise.all(
      Array.from({ length: 110 }, (_, index) =>
        server.call("POST", "/v1/accounts", {
          headers: { ...JSONAPI, ...from(index + 1) },
          body: documentOf("account", { name: "?", password: PASSWORD }),
        }),
      ),
    );
    assert.equal(tries.filter(({ status }) => status === 422).length, 100);
    assert.equal(tries.filter(({ status }) => status === 429).length, 10);
    assert.equal((await signIn(server, "nobody", PASSWORD, { "X-Forwarded-For": "2001:db8:0:1::1" })).status, 401);
  });

  for (const [width, most, addressOf] of [
    ["/56", 200, (index: number) => `2001:db8:1:${(index % 256).toString(16)}::1`],
    ["/48", 400, (index: number) => `2001:db8:2:${(index * 256).toString(16)}::1`],
    ["/24", 800, (index: number) => `192.0.2.${index % 256}`],
  ] as const) {
    test(`attempts from a whole ${width} → ${most}, then 429`, async () => {
      const server = await start();
      const tries = await Promise.all(
        Array.from({ length: most + 10 }, (_, index) =>
          server.call("POST", "/v1/accounts", {
            headers: { ...JSONAPI, "X-Forwarded-For": addressOf(width === "/48" ? index % 256 : index) },
            body: documentOf("account", { name: "?", password: PASSWORD }),
          }),
        ),
      );
      assert.equal(tries.filter(({ status }) => status === 422).length, most);
      assert.equal(tries.filter(({ status }) => status === 429).length, 10);
      const neighbour = { "X-Forwarded-For": "2001:db8:3::1" };
      assert.equal((await signIn(server, "nobody", PASSWORD, neighbour)).status, 401);
    });
  }

  test("guesses at a name from a whole /56 → 20, then 429; from elsewhere → 201", async () => {
    const server = await start();
    const { name } = await newUser(server);
    const from = (household: number) => ({ "X-Forwarded-For": `2001:db8:4:${household.toString(16)}::1` });
    for (let guess = 0; guess < 20; guess += 1)
      assert.equal((await signIn(server, name, "wrong password", from(guess))).status, 401);
    assert.equal((await signIn(server, name, PASSWORD, from(20))).status, 429);
    assert.equal((await signIn(server, name, PASSWORD, from(0x100))).status, 201, "the next /56");
  });

  test("a flood of guesses from a whole /48 → every correct sign-in from elsewhere succeeds", async () => {
    const server = await start();
    const people = [await newUser(server), await newUser(server), await newUser(server)];
    const guesses: Promise<Answer>[] = [];
    const guess = (index: number) => {
      const from = { "X-Forwarded-For": `2001:db8:5:${(index * 7).toString(16)}::1` };
      guesses.push(signIn(server, `name-${index % 50}`, "wrong password", from));
    };
    for (let index = 0; index < 300; index += 1) guess(index);
    for (let index = 0; index < 12; index += 1) {
      for (let more = 0; more < 20; more += 1) guess(300 + 20 * index + more);
      const { name } = people[index % people.length] ?? { name: "" };
      const from = { "X-Forwarded-For": `10.200.${index}.1` };
      assert.equal((await signIn(server, name, PASSWORD, from)).status, 201, `sign-in ${index}`);
    }
    const refused = (await Promise.all(guesses)).filter(({ status }) => status === 503);
    assert.ok(refused.length > 0, "there were more guesses than can be hashed");
  });

  test("requests of an account are limited by the minute, and nobody else's", async () => {
    const server = await start({ EARMARK_REQUESTS_PER_MINUTE: "20" });
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const ask = ({ Authorization }: { Authorization: string }) =>
      server.call("GET", "/v1/subscriptions", { headers: { Authorization } });
    // One request was the making of the token.
    for (let count = 1; count < 20; count += 1) assert.equal((await ask(ann)).status, 200);
    const limited = await ask(ann);
    assert.deepEqual([limited.status, limited.headers["retry-after"]], [429, "3"]);
    assert.match(limited.json.errors[0].detail, /20 requests per minute/);
    assert.equal((await ask(bob)).status, 200);
    server.wait(3_000);
    assert.equal((await ask(ann)).status, 200);
    assert.equal((await ask(ann)).status, 429);
  });

  test("operations of an account are limited by the minute; a request is carried out whole or not at all", async () => {
    const server = await start({ EARMARK_OPERATIONS_PER_MINUTE: "100" });
    const { Authorization } = await newUser(server);
    const send = (count: number) =>
      server.call("POST", "/v1/operations", {
        headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
        body: JSON.stringify({
          "atomic:operations": Array.from({ length: count }, () => add(newId(), `https://feeds.example/${newId()}`)),
        }),
      });
    const total = async () =>
      (await server.call("GET", "/v1/subscriptions", { headers: { Authorization } })).json.meta.total;
    assert.equal((await send(60)).status, 200);
    const limited = await send(60);
    assert.deepEqual([limited.status, limited.headers["content-type"]], [429, ATOMIC]);
    assert.equal(await total(), 60);
    assert.equal((await send(40)).status, 200);
    server.wait(MINUTE);
    // More than a minute's worth in one request is taken when there was nothing before it.
    assert.equal((await send(150)).status, 200);
    assert.equal(await total(), 250);
    assert.equal((await send(1)).status, 429);
  });
});

describe("my account", async () => {
  const server = await start();
  const { call } = server;

  test("says who I am, what I have and what I may", async () => {
    const { name, Authorization, tokenId } = await newUser(server);
    const { json } = await call("GET", "/v1/me", { headers: { Authorization } });
    assert.deepEqual(json.data.attributes, { name, issuer: null, created_at: server.now().toISOString() });
    assert.deepEqual(json.meta, {
      credential: { kind: "token", id: tokenId, scope: "write" },
      counts: { subscriptions: 0, tokens: 1, sessions: 1 },
      limits: {
        operations_per_request: 10_000,
        body_bytes: 8_388_608,
        page_size: 100,
        requests_per_minute: 6_000,
        operations_per_minute: 100_000,
        subscriptions: 20_000,
      },
    });
  });

  test("all of it can be exported, however long the list, and nothing secret with it", async () => {
    const { name, Cookie, Authorization } = await newUser(server);
    const operations = Array.from({ length: 6_000 }, (_, index) => add(newId(), `https://feeds.example/${index}`));
    await call("POST", "/v1/operations", {
      headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
      body: JSON.stringify({ "atomic:operations": operations }),
    });
    const byToken = await call("GET", "/v1/me/export", { headers: { Authorization } });
    assert.deepEqual([byToken.status, titleOf(byToken)], [403, "Sign In Needed"]);
    for (const headers of [{ Cookie }]) {
      const answer = await call("GET", "/v1/me/export", { headers });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["content-type"], PLAIN);
      assert.equal(answer.headers["content-disposition"], 'attachment; filename="earmark.json"');
      const types = answer.json.data.map(({ type }: { type: string }) => type);
      assert.deepEqual(types.slice(0, 4), ["account", "token", "session", "subscription"]);
      assert.equal(types.length, 6_003);
      assert.equal(answer.json.data[0].attributes.name, name);
      assert.doesNotMatch(answer.text, /emk_|argon2/);
    }
  });

  test("is deleted with everything, by someone who has just signed in, and by nobody else", async () => {
    const { name, Cookie, Authorization } = await newUser(server);
    const other = await newUser(server);
    await call("POST", "/v1/operations", {
      headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
      body: JSON.stringify({ "atomic:operations": [add(newId(), "https://feeds.example/1")] }),
    });
    server.wait(11 * MINUTE);
    const stale = await call("DELETE", "/v1/me", { headers: { Cookie } });
    assert.deepEqual([stale.status, titleOf(stale)], [403, "Sign In Again"]);
    const fresh = cookieOf(await signIn(server, name));
    const answer = await call("DELETE", "/v1/me", { headers: { Cookie: fresh } });
    assert.equal(answer.status, 204);
    assert.match(String(answer.headers["set-cookie"]), /Max-Age=0/);
    for (const headers of [{ Cookie }, { Cookie: fresh }, { Authorization }])
      assert.equal((await call("GET", "/v1/me", { headers })).status, 401);
    assert.equal((await signIn(server, name)).status, 401);
    assert.equal((await call("GET", "/v1/me", { headers: { Cookie: other.Cookie } })).status, 200);
    // The name is free again, and what comes with it is new.
    const again = await signUp(server, name);
    assert.equal(again.status, 201);
    assert.equal((await call("GET", "/v1/subscriptions", { headers: { Cookie: cookieOf(again) } })).json.meta.total, 0);
  });

  test("without accounts there is the local user, and nothing to sign in to", async () => {
    const local = await startServer();
    const { json } = await local.call("GET", "/v1/me");
    assert.deepEqual(json.data.attributes, { name: "local", issuer: null, created_at: null });
    assert.equal(json.meta.credential, null);
    assert.equal(json.meta.limits.requests_per_minute, null);
    assert.equal(json.meta.limits.subscriptions, null);
    assert.equal((await local.call("GET", "/v1/me/export")).json.data.length, 1);
    assert.equal((await local.call("DELETE", "/v1/me")).status, 405);
    for (const path of ["/v1/tokens", "/v1/sessions", "/v1/accounts", "/join"])
      assert.equal((await local.call("GET", path)).status, 404, path);
  });
});
