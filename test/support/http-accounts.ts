import assert from "node:assert/strict";
import { after } from "node:test";
import { Accounts } from "../../src/accounts/accounts.ts";
import { Administration } from "../../src/accounts/administration.ts";
import { asUser } from "../../src/accounts/caller.ts";
import { isAccountRefusal } from "../../src/accounts/refusals.ts";
import { createAccount, document as documentOf, fromElsewhere as fromNewNetwork } from "./accounts.ts";
import { type FixedValues, type HttpResponse, operate, PLAIN, startServer, type TestServer } from "./server.ts";

export const PASSWORD = "correct horse battery";
export const MINUTE = 60_000;
export const JSONAPI = { "Content-Type": PLAIN };

/** A server whose clocks stand until they are moved, and through which a test may come from any network. */
export async function start(settings: Readonly<Record<string, string>> = {}, values: FixedValues = {}) {
  let now = Date.now();
  let uptime = 0;
  const server = await startServer(
    { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_TRUSTED_PROXIES: "127.0.0.1", ...settings },
    () => new Date(now),
    after,
    () => uptime,
    values,
  );
  const accounts = new Accounts(server.store.accounts, { signUp: true });
  return {
    ...server,
    accounts,
    administration: new Administration(server.store.administration, accounts),
    wait: (ms: number) => {
      now += ms;
      uptime += ms;
    },
    /** Sets the time of day forward or back. */
    stepClock: (ms: number) => {
      now += ms;
    },
    now: () => new Date(now),
  };
}

export { documentOf, fromNewNetwork };

export const signUp = ({ call }: TestServer, name: unknown, password: unknown = PASSWORD, more: object = {}) =>
  call("POST", "/v1/accounts", {
    headers: { ...JSONAPI, ...fromNewNetwork() },
    body: documentOf("account", { name, password, ...more }),
  });

export const signIn = ({ call }: TestServer, name: unknown, password: unknown = PASSWORD, headers = fromNewNetwork()) =>
  call("POST", "/v1/sessions", {
    headers: { ...JSONAPI, ...headers },
    body: documentOf("session", { name, password }),
  });

export const basic = (name: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`,
});

export const cookieOf = (response: HttpResponse) => String(response.headers["set-cookie"]).split(";")[0] ?? "";

let names = 0;
/** A new user who is signed in, with a token for an app. */
export async function newUser(
  { store, now = () => new Date() }: Pick<TestServer, "store"> & { readonly now?: () => Date },
  scope: "read" | "write" = "write",
) {
  names += 1;
  const name = `user-${names}`;
  const { user, cookie } = await createAccount(store, { name, password: PASSWORD }, now());
  const accounts = new Accounts(store.accounts, { signUp: false });
  const issued = await accounts.createToken(asUser(user), { label: "phone", scope, expiresAt: undefined }, now());
  assert.ok(!isAccountRefusal(issued));
  return { name, user, Cookie: cookie, Authorization: `Bearer ${issued.secret}`, tokenId: issued.credential.id };
}

/** The server as a new user sees it, whose list is empty. */
export async function asNewUser(server: TestServer) {
  const { Authorization } = await newUser(server);
  const call: TestServer["call"] = (method, path, options = {}) =>
    server.call(method, path, { ...options, headers: { Authorization, ...options.headers } });
  const operateAsUser: TestServer["operate"] = (operations) => operate(call, operations);
  return { ...server, Authorization, call, operate: operateAsUser };
}

export const titleOf = ({ json }: HttpResponse) => json.errors[0].title;
export const pointerOf = ({ json }: HttpResponse) => json.errors[0].source?.pointer;
