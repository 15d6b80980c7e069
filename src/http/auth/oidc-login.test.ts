import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { document } from "../../../test/support/accounts.ts";
import { fromNewNetwork, MINUTE, newUser, PASSWORD, start } from "../../../test/support/http-accounts.ts";
import { Browser, CLIENT, listenForProvider } from "../../../test/support/oidc-provider.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { asUser } from "../../accounts/caller.ts";

const provider = await listenForProvider();
const SETTINGS = {
  EARMARK_OIDC_ISSUER: provider.url,
  EARMARK_OIDC_CLIENT_ID: CLIENT.id,
  EARMARK_OIDC_CLIENT_SECRET: CLIENT.secret,
};
const server = await start(SETTINGS);
const signUpServer = await start({ ...SETTINGS, EARMARK_OIDC_SIGN_UP: "true" });
const callbackOf = ({ url }: { readonly url: string }) => `${url}/oidc/callback`;
await provider.configure([server, signUpServer].map(callbackOf));

type TestServer = Awaited<ReturnType<typeof start>>;

/** Someone with a browser, which may be signed in. */
function newBrowser(cookie?: string): Browser {
  const browser = new Browser();
  for (const { url } of [server, signUpServer]) {
    const [name = "", value = ""] = cookie?.split("=") ?? [];
    if (cookie !== undefined) browser.cookies.set(`${new URL(url).host} ${name}`, value);
  }
  return browser;
}

/** Starts a login and signs in at the provider. Returns the URL of the callback, without opening it. */
async function logIn(browser: Browser, login: string, at: TestServer = server, path = "/v1/oidc-logins") {
  const response = await browser.send(`${at.url}${path}`, { method: "POST", headers: fromNewNetwork() });
  const body = await response.text();
  assert.equal(response.status, 200, body);
  return browser.logIn(JSON.parse(body).meta.authorization_url, callbackOf(at), login);
}

/** Where the page opens after a callback: "" or the code of the error. */
async function resultOf(browser: Browser, callback: string): Promise<string> {
  const response = await browser.send(callback, { headers: fromNewNetwork() });
  assert.equal(response.status, 303, await response.text());
  const [, code = ""] = /^\/(?:#sign-in-failed=([a-z-]+))?$/.exec(response.headers.get("location") ?? "none") ?? [
    "",
    "?",
  ];
  return code;
}

const finish = async (browser: Browser, login: string, at = server, path?: string) =>
  resultOf(browser, await logIn(browser, login, at, path));

async function me(
  browser: Browser,
  at: TestServer = server,
): Promise<{ name: string; issuer: string | null } | undefined> {
  const response = await browser.send(`${at.url}/v1/me`);
  const { data } = (await response.json()) as { data?: { attributes: { name: string; issuer: string | null } } };
  return data?.attributes;
}

const countFailures = ({ log }: TestServer) => log().match(/"way":"oidc","msg":"failed sign-in"/g)?.length ?? 0;

suite("OpenID Connect login", () => {
  test("login: unknown user, sign-up off → no account, one line in the log", async () => {
    const before = countFailures(server);
    const browser = newBrowser();
    assert.equal(await finish(browser, "stranger"), "no-account");
    assert.equal(countFailures(server), before + 1);
    assert.equal(await me(browser), undefined);
  });

  test("login: unknown user, sign-up on → a new account, and the same one next time", async () => {
    const [first, second] = [newBrowser(), newBrowser()];
    assert.equal(await finish(first, "alice", signUpServer), "");
    assert.deepEqual(
      [(await me(first, signUpServer))?.name, (await me(first, signUpServer))?.issuer],
      ["alice", provider.url],
    );
    assert.equal(await finish(second, "alice", signUpServer), "");
    const ids = await Promise.all(
      [first, second].map(
        async (one) => (await (await one.send(`${signUpServer.url}/v1/me`)).json()) as { data: { id: string } },
      ),
    );
    assert.equal(ids[0]?.data.id, ids[1]?.data.id);
  });

  test("login: a user with the same name as an account → not signed in to that account", async () => {
    const { name } = await newUser(server);
    assert.equal(await finish(newBrowser(), name), "no-account");
  });

  test("link: a signed-in user links and unlinks → signs in with the provider in between", async () => {
    const { name, Cookie } = await newUser(server);
    const browser = newBrowser(Cookie);
    assert.equal(await finish(browser, "linked", server, "/v1/identities"), "");
    const list = await server.call("GET", "/v1/identities", { headers: { Cookie } });
    assert.deepEqual(
      list.json.data.map((each: { attributes: { label: string } }) => each.attributes.label),
      ["linked"],
    );
    const other = newBrowser();
    assert.equal(await finish(other, "linked"), "");
    assert.equal((await me(other))?.name, name);
    // Linking again changes nothing.
    assert.equal(await finish(browser, "linked", server, "/v1/identities"), "");
    const { links } = list.json.data[0];
    assert.equal((await server.call("GET", links.self, { headers: { Cookie } })).status, 200);
    assert.equal((await server.call("DELETE", links.self, { headers: { Cookie } })).status, 204);
    assert.equal((await server.call("DELETE", links.self, { headers: { Cookie } })).status, 404);
    assert.equal(await me(other), undefined, "the other session has ended");
    assert.equal((await me(browser))?.name, name, "this session has not");
    assert.equal(await finish(newBrowser(), "linked"), "no-account");
  });

  test("link: a user of the provider with another account → rejected", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    assert.equal(await finish(newBrowser(ann.Cookie), "taken", server, "/v1/identities"), "");
    assert.equal(await finish(newBrowser(bob.Cookie), "taken", server, "/v1/identities"), "identity-taken");
    const owner = newBrowser();
    assert.equal(await finish(owner, "own", signUpServer), "");
    const carol = await newUser(signUpServer);
    assert.equal(await finish(newBrowser(carol.Cookie), "own", signUpServer, "/v1/identities"), "identity-taken");
  });

  test("link: another user signed in meanwhile, or nobody → not linked", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    for (const cookie of [bob.Cookie, undefined]) {
      const browser = newBrowser(ann.Cookie);
      const callback = await logIn(browser, "swapped", server, "/v1/identities");
      const key = `${new URL(server.url).host} earmark`;
      if (cookie === undefined) browser.cookies.delete(key);
      else browser.cookies.set(key, cookie.split("=")[1] ?? "");
      assert.notEqual(await resultOf(browser, callback), "");
    }
    assert.equal(await finish(newBrowser(), "swapped"), "no-account");
  });

  test("link: sign-in more than ten minutes ago, or only a token → rejected", async () => {
    const { Authorization } = await newUser(server);
    const refused = await server.call("POST", "/v1/identities", { headers: { Authorization } });
    assert.deepEqual([refused.status, refused.json.errors[0].code], [403, "session-required"]);
    const later = await start(SETTINGS);
    const user = await newUser(later);
    later.wait(11 * MINUTE);
    const late = await later.call("POST", "/v1/identities", { headers: { Cookie: user.Cookie } });
    assert.deepEqual([late.status, late.json.errors[0].code], [403, "recent-sign-in-required"]);
  });
});

suite("attacks on a login", () => {
  test("login: state of another login, none, or repeated → rejected", async () => {
    for (const change of [
      (url: URL) => url.searchParams.set("state", "x".repeat(43)),
      (url: URL) => url.searchParams.delete("state"),
      (url: URL) => url.searchParams.append("state", "again"),
    ]) {
      const browser = newBrowser();
      const url = new URL(await logIn(browser, "alice", signUpServer));
      change(url);
      assert.equal(await resultOf(browser, url.href), "oidc-failed");
      assert.equal(await me(browser, signUpServer), undefined);
    }
  });

  test("login: callback of an attacker in another browser → rejected (login CSRF)", async () => {
    const callback = await logIn(newBrowser(), "mallory", signUpServer);
    const fresh = newBrowser();
    assert.equal(await resultOf(fresh, callback), "oidc-failed");
    const victim = newBrowser();
    await logIn(victim, "alice", signUpServer);
    assert.equal(await resultOf(victim, callback), "oidc-failed");
    assert.equal(await me(victim, signUpServer), undefined);
  });

  test("login: code of another login in the same browser → rejected (code injection)", async () => {
    const stolen = new URL(await logIn(newBrowser(), "victim", signUpServer)).searchParams.get("code") ?? "";
    const attacker = newBrowser();
    const url = new URL(await logIn(attacker, "mallory", signUpServer));
    url.searchParams.set("code", stolen);
    assert.equal(await resultOf(attacker, url.href), "oidc-failed");
    assert.equal(await me(attacker, signUpServer), undefined);
  });

  test("login: replayed callback, even with its cookie → rejected", async () => {
    const browser = newBrowser();
    const callback = await logIn(browser, "alice", signUpServer);
    const key = `${new URL(signUpServer.url).host} earmark-oidc`;
    const cookie = browser.cookies.get(key) ?? "";
    assert.equal(await resultOf(browser, callback), "");
    assert.equal(browser.cookies.has(key), false, "the cookie is deleted");
    const thief = newBrowser();
    assert.equal(await resultOf(thief, callback), "oidc-failed");
    thief.cookies.set(key, cookie);
    assert.equal(await resultOf(thief, callback), "oidc-failed");
    assert.equal(await me(thief, signUpServer), undefined);
  });

  test("login: issuer of another provider in the callback → rejected (mix-up)", async () => {
    const browser = newBrowser();
    const url = new URL(await logIn(browser, "alice", signUpServer));
    assert.equal(url.searchParams.get("iss"), provider.url);
    url.searchParams.set("iss", "https://other.example");
    assert.equal(await resultOf(browser, url.href), "oidc-failed");
  });

  test("login: tampered or foreign cookie → rejected", async () => {
    const browser = newBrowser();
    const callback = await logIn(browser, "alice", signUpServer);
    const key = `${new URL(signUpServer.url).host} earmark-oidc`;
    const cookie = browser.cookies.get(key) ?? "";
    for (const value of ["", "x", cookie.slice(0, -1), cookie.replace("sign-in", "1"), "~".repeat(300)]) {
      browser.cookies.set(key, value);
      assert.equal(await resultOf(browser, callback), "oidc-failed", value);
    }
    // The genuine one still works: nothing was sent to the provider.
    browser.cookies.set(key, cookie);
    assert.equal(await resultOf(browser, callback), "");
  });

  test("login: more than ten minutes at the provider → rejected", async () => {
    const late = await start({ ...SETTINGS, EARMARK_OIDC_SIGN_UP: "true" });
    await provider.configure([server, signUpServer, late].map(callbackOf));
    const browser = newBrowser();
    const callback = await logIn(browser, "alice", late);
    late.wait(10 * MINUTE);
    assert.equal(await resultOf(browser, callback), "oidc-failed");
  });

  test("login: URLs in the query → never redirected to (open redirect)", async () => {
    const browser = newBrowser();
    const callback = await logIn(browser, "alice", signUpServer);
    const extra = "&next=https://evil.example&redirect_uri=//evil.example&return_to=%0d%0aLocation:x";
    assert.equal(await resultOf(browser, `${callback}${extra}`), "");
  });

  test("login: HEAD of the callback → has no effect", async () => {
    const browser = newBrowser();
    const callback = await logIn(browser, "alice", signUpServer);
    const { headers } = await signUpServer.call("HEAD", callback.slice(signUpServer.url.length), {
      headers: { Cookie: `earmark-oidc=${browser.cookies.get(`${new URL(signUpServer.url).host} earmark-oidc`)}` },
    });
    assert.equal(headers["location"], "/#sign-in-failed=oidc-failed");
    assert.equal(await resultOf(browser, callback), "");
  });

  test("login: started by a page on another site → rejected", async () => {
    for (const path of ["/v1/oidc-logins", "/v1/identities"]) {
      const { status } = await server.call("POST", path, { headers: { "Sec-Fetch-Site": "cross-site" } });
      assert.equal(status, 403, path);
    }
  });

  test("login: canceled at the provider → reported, if it belongs to this browser", async () => {
    const browser = newBrowser();
    const response = await browser.send(`${signUpServer.url}/v1/oidc-logins`, {
      method: "POST",
      headers: fromNewNetwork(),
    });
    const { meta } = (await response.json()) as { meta: { authorization_url: string } };
    const state = new URL(meta.authorization_url).searchParams.get("state");
    const callbackWith = (error: string, given: string | null) =>
      `${callbackOf(signUpServer)}?${new URLSearchParams({ error, state: given ?? "", iss: provider.url })}`;
    const host = new URL(signUpServer.url).host;
    const cookie = browser.cookies.get(`${host} earmark-oidc`) ?? "";
    for (const [error, given, code] of [
      ["access_denied", "x", "oidc-failed"],
      ["access_denied", state, "oidc-denied"],
      ["server_error", state, "oidc-failed"],
      ["<script>", state, "oidc-failed"],
    ] as const) {
      browser.cookies.set(`${host} earmark-oidc`, cookie);
      assert.equal(await resultOf(browser, callbackWith(error, given)), code, error);
    }
  });

  test("login: too many callbacks from one network → sent back with too-many-attempts", async () => {
    const busy = await start({ ...SETTINGS });
    const network = fromNewNetwork();
    const browser = newBrowser();
    const response = await browser.send(`${busy.url}/v1/oidc-logins`, { method: "POST" });
    const { meta } = (await response.json()) as { meta: { authorization_url: string } };
    const state = new URL(meta.authorization_url).searchParams.get("state") ?? "";
    const Cookie = `earmark-oidc=${browser.cookies.get(`${new URL(busy.url).host} earmark-oidc`)}`;
    let last = "";
    for (let count = 0; count < 101; count += 1) {
      const path = `/oidc/callback?${new URLSearchParams({ error: "access_denied", state, iss: provider.url })}`;
      last = String((await busy.call("GET", path, { headers: { Cookie, ...network } })).headers["location"]);
    }
    assert.equal(last, "/#sign-in-failed=too-many-attempts");
  });

  test("login: behind a proxy with a base path → https redirect URI and a cookie for that path", async () => {
    const proxied = await start({ ...SETTINGS, EARMARK_BASE_PATH: "/pods" });
    const headers = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "pods.example", ...fromNewNetwork() };
    const response = await proxied.call("POST", "/pods/v1/oidc-logins", { headers });
    const url = new URL(response.json.meta.authorization_url);
    assert.equal(url.searchParams.get("redirect_uri"), "https://pods.example/pods/oidc/callback");
    assert.equal(url.searchParams.get("code_challenge_method"), "S256");
    assert.match(String(response.headers["set-cookie"]), /^__Secure-earmark-oidc=[^;]+; Path=\/pods\/; .*; Secure$/);
    const failed = await proxied.call("GET", "/pods/oidc/callback?code=x&state=x", { headers });
    assert.equal(failed.headers["location"], "/pods/#sign-in-failed=oidc-failed");
  });

  test("login: EARMARK_PUBLIC_URL → the redirect URI, whatever the request says", async () => {
    const named = await start({ ...SETTINGS, EARMARK_PUBLIC_URL: "https://pods.example/p", EARMARK_BASE_PATH: "/p" });
    const headers = { Host: "localhost", "X-Forwarded-Host": "other.example", ...fromNewNetwork() };
    const response = await named.call("POST", "/p/v1/oidc-logins", { headers });
    const url = new URL(response.json.meta.authorization_url);
    assert.equal(url.searchParams.get("redirect_uri"), "https://pods.example/p/oidc/callback");
  });

  test("login: disabled account, of the identity or linked to it → rejected, not logged as a failed sign-in", async () => {
    const { name, Cookie } = await newUser(signUpServer);
    const owner = newBrowser(Cookie);
    assert.equal(await finish(owner, "linked", signUpServer, "/v1/identities"), "");
    assert.equal(await finish(newBrowser(), "dora", signUpServer), "");
    await signUpServer.accounts.create("operator", PASSWORD, signUpServer.now());
    for (const [login, account] of [
      ["dora", await signUpServer.accounts.findByName("oidc:dora", provider.url)],
      ["linked", await signUpServer.accounts.findByName(name)],
    ] as const) {
      const change = (kind: "disable" | "enable") =>
        signUpServer.administration.change(asUser(NOBODY), account?.user ?? 0, kind, signUpServer.now());
      const before = countFailures(signUpServer);
      assert.equal(await change("disable"), undefined);
      const browser = newBrowser();
      assert.equal(await finish(browser, login, signUpServer), "account-disabled");
      assert.equal(await me(browser, signUpServer), undefined);
      assert.equal(countFailures(signUpServer), before);
      assert.equal(await change("enable"), undefined);
      assert.equal(await finish(browser, login, signUpServer), "");
    }
  });

  test("login: not configured → the paths do not exist", async () => {
    const plain = await start();
    for (const [method, path] of [
      ["POST", "/v1/oidc-logins"],
      ["GET", "/oidc/callback"],
    ] as const)
      assert.equal((await plain.call(method, path)).status, 404);
    const { status } = await plain.call("POST", "/v1/sessions", {
      headers: { "Content-Type": "application/vnd.api+json" },
      body: document("session", { passkey: {} }),
    });
    assert.equal(status, 401);
  });
});
