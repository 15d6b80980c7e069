import assert from "node:assert/strict";
import { StoreUnavailable } from "../../src/util/store-unavailable.ts";
import { add, type HttpResponse, newId, PLAIN, type TestServer } from "./server.ts";

/** Helpers for tests of what is between the server and its clients: proxies, base paths and browsers. */
export const ACCOUNTS = { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" };
export const TRUSTING = { ...ACCOUNTS, EARMARK_TRUSTED_PROXIES: "127.0.0.1" };
export const PASSWORD = "correct horse battery staple";
export const BASE = "/pod/casts";

export type Headers = Readonly<Record<string, string | string[]>>;

export const json = (type: string, attributes: object) => JSON.stringify({ data: { type, attributes } });

export const subscription = (id = newId()) =>
  JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url: `https://feeds.example/${id}` } } });

/** The whole Set-Cookie header of a response. */
export function setCookie({ headers }: HttpResponse): string {
  const [cookie = "", ...more] = headers["set-cookie"] ?? [];
  assert.equal(more.length, 0, "more than one cookie");
  return cookie;
}

/** The Cookie header that a browser would send back. */
export const cookieOf = (response: HttpResponse) => setCookie(response).replace(/;.*/, "");

export const signIn = ({ call }: TestServer, name: string, password: string, headers: Headers = {}) =>
  call("POST", "/v1/sessions", {
    headers: { "Content-Type": PLAIN, ...headers },
    body: json("session", { name, password }),
  });

/** Creates an account and returns the cookie of its session. */
export async function signUp({ call }: TestServer, name: string, headers: Headers = {}): Promise<string> {
  const response = await call("POST", "/v1/accounts", {
    headers: { "Content-Type": PLAIN, ...headers },
    body: json("account", { name, password: PASSWORD }),
  });
  assert.equal(response.status, 201, response.text);
  return cookieOf(response);
}

export async function createToken({ call }: TestServer, cookie: string): Promise<string> {
  const response = await call("POST", "/v1/tokens", {
    headers: { "Content-Type": PLAIN, Cookie: cookie },
    body: json("token", { label: "app", scope: "write" }),
  });
  assert.equal(response.status, 201, response.text);
  return response.json.data.attributes.token;
}

/** Makes the readiness check fail, which a real database does not do on demand. */
export function breakReadiness({ store }: TestServer): void {
  Object.assign(store, { ready: () => Promise.reject(new StoreUnavailable("unavailable on purpose")) });
}

/** The headers (lower case) and the body of a raw response. */
export function parseResponse(text: string) {
  const [head = "", ...body] = text.split("\r\n\r\n");
  const lines = head.split("\r\n").map((line) => [line.replace(/:.*/, "").toLowerCase(), line.replace(/^[^:]*: /, "")]);
  const headers: Record<string, string | undefined> = Object.fromEntries(lines);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), headers, body: body.join("\r\n\r\n") };
}

/** Every request that changes something for the signed-in user. */
export function unsafeRequests(subscribed: string, token: string): readonly (readonly [string, string, string?])[] {
  const operations = { "atomic:operations": [add(newId(), `https://feeds.example/${newId()}`)] };
  return [
    ["POST", "/v1/subscriptions", subscription()],
    ["POST", "/v1/operations", JSON.stringify(operations)],
    ["DELETE", `/v1/subscriptions/${subscribed}`],
    ["POST", "/v1/tokens", json("token", { label: "theirs", scope: "write" })],
    ["DELETE", `/v1/tokens/${token}`],
    ["PATCH", "/v1/me", json("account", { current_password: PASSWORD, password: `${PASSWORD} too` })],
    ["DELETE", "/v1/me"],
  ];
}
