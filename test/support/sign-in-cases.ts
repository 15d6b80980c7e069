import { Accounts } from "../../src/accounts/accounts.ts";
import { asUser } from "../../src/accounts/caller.ts";
import { linkUser } from "../../src/accounts/linked-users.ts";
import { document as documentWith } from "./accounts.ts";
import { createPasskey } from "./passkeys.ts";
import { createSecondFactor } from "./second-factors.ts";
import { PLAIN, type TestServer } from "./server.ts";

export type Headers = Record<string, string>;
/** A request and the status of its response. `path` is set where it differs from the template. */
export type Case = readonly [name: string, status: number, headers: Headers, body?: string | undefined, path?: string];

/** Requests about passkeys, identities and logins of the user "ann". */
export async function signInCases(server: TestServer, session: Headers): Promise<readonly Case[]> {
  const typed = { ...session, "Content-Type": PLAIN };
  const passkey = await createPasskey(server.port, { Host: "127.0.0.1", ...session });
  const added = documentWith("passkey", { label: "phone", passkey });
  const options = { headers: { Host: "127.0.0.1", ...typed }, body: added };
  const { json: created } = await server.call("POST", "/v1/passkeys", options);
  const accounts = new Accounts(server.store.accounts, { signUp: false });
  const user = asUser((await accounts.findByName("ann"))?.user ?? 0);
  const linked = await linkUser(accounts, user, { issuer: "https://id.example", subject: "1" }, "ann", new Date());
  const ids = { passkeys: String(created.data.id), identities: "id" in linked ? linked.id : "" };
  const fresh = documentWith("passkey", { label: "x", passkey: await createPasskey(server.port, session) });
  const refused = (name: string, headers: Headers): Case[] => [
    [name, 400, headers, undefined, `${name.split(" ")[1]}?x`],
    [name, 406, { ...headers, Accept: "text/html" }],
  ];
  return [
    ...(await secondFactorCases(server, session)),
    ...["GET /v1/second-factor", "POST /v1/second-factor", "DELETE /v1/second-factor"].flatMap((name) =>
      refused(name, name.startsWith("POST") ? typed : session),
    ),
    ...refused("GET /v1/second-factor/enrollment", session),
    ...refused("POST /v1/second-factor/recovery-codes", session),
    ["POST /v1/passkeys", 422, typed, added],
    ["POST /v1/passkeys", 201, { ...typed, Host: `127.0.0.1:${server.port}` }, fresh],
    ["GET /v1/passkey-options/sign-in", 200, {}],
    ["GET /v1/passkey-options/registration", 200, session],
    ["POST /v1/identities", 200, session],
    ["POST /v1/oidc-logins", 200, {}],
    ["GET /oidc/callback", 303, {}],
    ...refused("GET /v1/passkey-options/sign-in", {}),
    ...refused("GET /v1/passkey-options/registration", session),
    ...refused("POST /v1/identities", session),
    ...refused("POST /v1/oidc-logins", {}),
    ...(["passkeys", "identities"] as const).flatMap((kind): Case[] => [
      [`GET /v1/${kind}`, 200, session],
      ...refused(`GET /v1/${kind}`, session),
      [`GET /v1/${kind}/{id}`, 200, session, undefined, `/v1/${kind}/${ids[kind]}`],
      ...(["GET", "DELETE"] as const).flatMap((method): Case[] => [
        [`${method} /v1/${kind}/{id}`, 404, session],
        [`${method} /v1/${kind}/{id}`, 400, session, undefined, `/v1/${kind}/1`],
        [`${method} /v1/${kind}/{id}`, 406, { ...session, Accept: "text/html" }],
      ]),
      [`DELETE /v1/${kind}/{id}`, 204, session, undefined, `/v1/${kind}/${ids[kind]}`],
    ]),
  ];
}

/** Requests about the authenticator app of a user who has none, and has none again afterwards. */
async function secondFactorCases({ port }: TestServer, session: Headers): Promise<readonly Case[]> {
  const typed = { ...session, "Content-Type": PLAIN };
  const path = "/v1/second-factor";
  const confirmed = await createSecondFactor(port, session, new Date());
  const add = (changes: object = {}) => documentWith("second-factor", { ...confirmed, ...changes });
  return [
    [`GET ${path}/enrollment`, 200, session],
    [`GET ${path}`, 200, session],
    [`POST ${path}/recovery-codes`, 409, session],
    [`POST ${path}`, 422, typed, add({ ticket: "x" })],
    [`POST ${path}`, 422, typed, add({ one_time_code: "x" })],
    [`POST ${path}`, 201, typed, add()],
    [`POST ${path}`, 409, typed, add()],
    [`GET ${path}`, 200, session],
    [`POST ${path}/recovery-codes`, 201, session],
    [`DELETE ${path}`, 204, session],
  ];
}
