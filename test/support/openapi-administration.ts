import assert from "node:assert/strict";
import { Accounts } from "../../src/accounts/accounts.ts";
import { isAccountRefusal } from "../../src/accounts/refusals.ts";
import { one } from "./access.ts";
import { document as documentWith, fromElsewhere, signIn, signUp } from "./accounts.ts";
import { createSecondFactor } from "./second-factors.ts";
import { PLAIN, type TestServer } from "./server.ts";
import type { Case, Headers } from "./sign-in-cases.ts";

/** Requests of an administrator, one for every documented status. */
export async function administrationCases(
  server: TestServer,
  basePath: string,
  invalidDocuments: (name: string, headers: Headers) => readonly Case[],
): Promise<Case[]> {
  const accounts = new Accounts(server.store.accounts, { signUp: false });
  assert.ok(!isAccountRefusal(await accounts.create("admin", "correct horse battery", new Date())));
  const admin = await signIn(server.port, { name: "admin", password: "correct horse battery" }, fromElsewhere());
  const bob = await signUp(server.port, "bob", "correct horse battery", fromElsewhere());
  const session = { Cookie: admin.cookie };
  const typed = { ...session, "Content-Type": PLAIN };
  const html = { ...session, Accept: "text/html" };
  const read = async (path: string) => (await server.call("GET", basePath + path, { headers: session })).json.data;
  const create = async (path: string, body?: string) =>
    (
      await server.call("POST", basePath + path, {
        headers: body === undefined ? session : typed,
        ...(body && { body }),
      })
    ).json.data;
  const idOf = async (name: string) =>
    (await read("/v1/accounts")).find((each: { attributes: { name: string } }) => each.attributes.name === name).id;
  const [self, other] = [`/v1/accounts/${await idOf("admin")}`, `/v1/accounts/${await idOf("bob")}`];
  const account = "/v1/accounts/{account}";
  const change = (attributes: object) => one("account", { attributes });
  const wanted = one("invitation", { attributes: { note: "Carol" } });
  const reset = (link: string, password = "a longer one this time") =>
    one("password-reset", { attributes: { link, password } });
  const newcomer = () => ({ ...fromElsewhere(), "Content-Type": PLAIN });
  const secretOf = (url: string) => url.split("#")[1] ?? "";
  const link = secretOf((await create(`${other}/reset-links`)).attributes.url);
  const { cookie: Cookie } = await signUp(server.port, "carol", "correct horse battery", fromElsewhere());
  const carol = `/v1/accounts/${await idOf("carol")}`;
  const app = documentWith("second-factor", await createSecondFactor(server.port, { Cookie }, new Date()));
  const added = { headers: { Cookie, "Content-Type": PLAIN }, body: app };
  assert.equal((await server.call("POST", `${basePath}/v1/second-factor`, added)).status, 201);
  const ofCarol = secretOf((await create(`${carol}/reset-links`)).attributes.url);
  const invited = await create("/v1/invitations", wanted);
  const invitation = `/v1/invitations/${invited.id}`;
  const check = (secret?: string) => one("invitation-check", { attributes: { invitation: secret } });
  return [
    ...["/v1/accounts", "/v1/invitations", "/v1/audit-log"].flatMap((path): Case[] => [
      [`GET ${path}`, 200, session],
      [`GET ${path}`, 200, session, undefined, `${path}?page[number]=2&page[size]=1`],
      [`GET ${path}`, 400, session, undefined, `${path}?x`],
      [`GET ${path}`, 403, { Cookie: bob.cookie }],
      [`GET ${path}`, 406, html],
    ]),
    ["GET /v1/server", 200, session],
    ["GET /v1/server", 400, session, undefined, "/v1/server?x"],
    ["GET /v1/server", 403, { Cookie: bob.cookie }],
    ["GET /v1/server", 406, html],
    [`GET ${account}`, 200, session, undefined, other],
    [`GET ${account}`, 400, session, undefined, `${other}?x`],
    [`GET ${account}`, 404, session],
    [`GET ${account}`, 404, session, undefined, "/v1/accounts/12345"],
    [`GET ${account}`, 406, html, undefined, other],
    [`PATCH ${account}`, 200, typed, change({ role: "administrator" }), other],
    [`PATCH ${account}`, 200, typed, change({ role: "member" }), other],
    [`PATCH ${account}`, 200, typed, change({}), other],
    [`PATCH ${account}`, 409, typed, change({ disabled: true }), self],
    [`PATCH ${account}`, 422, typed, change({ disabled: "yes" }), other],
    [`PATCH ${account}`, 422, typed, change({ role: "owner" }), other],
    [`PATCH ${account}`, 422, typed, change({ role: "member", disabled: true }), other],
    [`PATCH ${account}`, 404, typed, change({ disabled: true }), "/v1/accounts/12345"],
    ...invalidDocuments(`PATCH ${account}`, typed).map(
      ([name, status, headers, body]): Case => [...([name, status, headers, body, other] as const)],
    ),
    ["POST /v1/invitations", 201, typed, wanted],
    ["POST /v1/invitations", 422, typed, one("invitation", { attributes: { note: "\n" } })],
    ["POST /v1/invitations", 422, typed, one("invitation", { attributes: { expires_at: "1999-01-01T00:00:00Z" } })],
    ...invalidDocuments("POST /v1/invitations", typed),
    ["POST /v1/invitation-checks", 204, newcomer(), check(secretOf(invited.attributes.url))],
    ["POST /v1/invitation-checks", 422, newcomer(), check()],
    ...invalidDocuments("POST /v1/invitation-checks", newcomer()),
    ["DELETE /v1/invitations/{id}", 400, session, undefined, "/v1/invitations/1"],
    ["DELETE /v1/invitations/{id}", 406, html],
    ["DELETE /v1/invitations/{id}", 204, session, undefined, invitation],
    ["DELETE /v1/invitations/{id}", 404, session, undefined, invitation],
    ["POST /v1/invitation-checks", 403, newcomer(), check(secretOf(invited.attributes.url))],
    [`POST ${account}/reset-links`, 404, session, undefined, "/v1/accounts/12345/reset-links"],
    [`POST ${account}/reset-links`, 400, session, undefined, `${other}/reset-links?x`],
    [`POST ${account}/reset-links`, 406, html, undefined, `${other}/reset-links`],
    ...Array.from(
      { length: 9 },
      (): Case => [...([`POST ${account}/reset-links`, 201, session, undefined, `${other}/reset-links`] as const)],
    ),
    [`POST ${account}/reset-links`, 409, session, undefined, `${other}/reset-links`],
    ["POST /v1/password-resets", 422, newcomer(), reset(link, "short")],
    ["POST /v1/password-resets", 401, newcomer(), reset(ofCarol)],
    [`DELETE ${account}/second-factor`, 404, session, undefined, "/v1/accounts/12345/second-factor"],
    [`DELETE ${account}/second-factor`, 400, session, undefined, `${carol}/second-factor?x`],
    [`DELETE ${account}/second-factor`, 406, html, undefined, `${carol}/second-factor`],
    [`DELETE ${account}/second-factor`, 204, session, undefined, `${carol}/second-factor`],
    ["POST /v1/password-resets", 201, newcomer(), reset(link)],
    ["POST /v1/password-resets", 403, newcomer(), reset(link)],
    ...invalidDocuments("POST /v1/password-resets", newcomer()),
    [`PATCH ${account}`, 200, typed, change({ disabled: true }), other],
    [`POST ${account}/reset-links`, 403, session, undefined, `${other}/reset-links`],
    [
      "POST /v1/sessions",
      403,
      newcomer(),
      documentWith("session", { name: "bob", password: "a longer one this time" }),
    ],
    ["DELETE /v1/me", 409, session],
    [`DELETE ${account}`, 409, session, undefined, self],
    [`DELETE ${account}`, 400, session, undefined, `${other}?x`],
    [`DELETE ${account}`, 406, html, undefined, other],
    [`DELETE ${account}`, 204, session, undefined, other],
    [`DELETE ${account}`, 404, session, undefined, other],
  ];
}
