import assert from "node:assert/strict";
import { cookieOf, PASSWORD, setCookie } from "./browser-requests.ts";
import type { Options } from "./proxy-examples.ts";
import type { HttpResponse } from "./server.ts";

/** Acts as a podcast app behind a proxy. */
export async function syncAsApp(
  ask: (method: string, path: string, options?: Options) => Promise<HttpResponse>,
  base: string,
  origin: string,
): Promise<void> {
  const Authorization = `Basic ${btoa(`ann:${PASSWORD}`)}`;
  const login = await ask("POST", `${base}/api/2/auth/ann/login.json`, { headers: { Authorization } });
  assert.equal(login.status, 200, login.text);
  assert.match(setCookie(login), new RegExp(`^sessionid=[^;]+; Path=${base}/; .*; Secure$`));
  const headers = { Cookie: cookieOf(login) };
  const feeds = `${base}/api/2/subscriptions/ann/phone.json`;
  const body = JSON.stringify({ add: ["https://feeds.example/app"], remove: [] });
  assert.equal((await ask("POST", feeds, { headers, body })).status, 200);
  const { text } = await ask("GET", `${feeds}?since=0`, { headers });
  assert.deepEqual(JSON.parse(text).add, ["https://feeds.example/app"]);
  const removal = JSON.stringify({ add: [], remove: ["https://feeds.example/app"] });
  assert.equal((await ask("POST", feeds, { headers, body: removal })).status, 200);
  const flow = JSON.parse((await ask("POST", `${base}/index.php/login/v2`)).text);
  assert.ok(flow.login.startsWith(`${origin}${base}/#app-login=`), flow.login);
  assert.equal(flow.poll.endpoint, `${origin}${base}/index.php/login/v2/poll`);
}
