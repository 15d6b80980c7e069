import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { asUser, type UserId } from "../src/accounts/caller.ts";
import { hashPassword } from "../src/accounts/passwords.ts";
import { isAccountRefusal } from "../src/accounts/refusals.ts";
import { AppSync } from "../src/apps/sync.ts";
import { basic, type Headers } from "./apps/app.ts";
import { holdBack, writeRequest } from "./support/accounts.ts";
import { cookieOf, fromNewNetwork, PASSWORD, start } from "./support/http-accounts.ts";

const PLAY = { podcast: "https://feeds.example/a", episode: "https://media.example/a", action: "play", position: 5 };
const CHANGES = JSON.stringify({ add: ["https://feeds.example/new"], remove: [] });
const LIST = '["https://feeds.example/new"]';
const OPML = '<opml><body><outline xmlUrl="https://feeds.example/new"/></body></opml>';
const APP = "/apps/gpoddersync";
const INDEX = "/index.php";

/** Every route by which an app writes, with a body that changes something. */
const WRITES: Readonly<Record<string, string>> = {
  "POST /api/2/devices/:user/phone.json": '{"caption":"new"}',
  "PUT /api/2/devices/:user/phone.json": '{"caption":"new"}',
  "POST /api/2/subscriptions/:user/phone.json": CHANGES,
  "POST /api/2/episodes/:user.json": JSON.stringify([PLAY]),
  "POST /api/2/episodes/:user/phone.json": JSON.stringify([PLAY]),
  "PUT /subscriptions/:user/phone.json": LIST,
  "PUT /subscriptions/:user/phone.txt": "https://feeds.example/new\n",
  "PUT /subscriptions/:user/phone.opml": OPML,
  "POST /subscriptions/:user/phone.json": LIST,
  "POST /subscriptions/:user/phone.txt": "https://feeds.example/new\n",
  "POST /subscriptions/:user/phone.opml": OPML,
  [`POST ${APP}/subscription_change/create`]: CHANGES,
  [`POST ${APP}/episode_action/create`]: JSON.stringify([PLAY]),
  [`POST ${INDEX}${APP}/subscription_change/create`]: CHANGES,
  [`POST ${INDEX}${APP}/episode_action/create`]: JSON.stringify([PLAY]),
};
/** All devices share one list, so this one changes nothing. */
const WITHOUT_EFFECT = "POST /api/2/sync-devices/:user.json";

describe("app access is revoked", async () => {
  const server = await start();
  const sync = new AppSync(server.store);
  after(() => server.close());

  const hash = await hashPassword(PASSWORD);
  let people = 0;
  const newPerson = async () => {
    people += 1;
    const name = `person-${people}`;
    const wanted = { name, issuer: "", passwordHash: hash, isCreatedByOperator: false, invitationHash: undefined };
    await server.store.accounts.create(1_000 + people, wanted, server.now());
    const account = (await server.accounts.findByName(name)) ?? assert.fail();
    const token = { label: "x", scope: "write", expiresAt: undefined } as const;
    const issued = await server.accounts.createToken(asUser(account.user), token, server.now());
    assert.ok(!isAccountRefusal(issued));
    return { name, tokenId: issued.credential.id, token: issued.secret, account };
  };
  type Person = Awaited<ReturnType<typeof newPerson>>;

  const sessionOf = async (name: string, secret: string) => {
    const headers = { ...basic(name, secret), ...fromNewNetwork() };
    return { Cookie: cookieOf(await server.call("GET", `/subscriptions/${name}.json`, { headers })) };
  };
  const CREDENTIALS = {
    "a token": ({ name, token }: Person) => basic(name, token),
    "a session of a token": ({ name, token }: Person) => sessionOf(name, token),
    "the password": ({ name }: Person) => basic(name, PASSWORD),
    "a session of the password": ({ name }: Person) => sessionOf(name, PASSWORD),
  };
  const end = async ({ tokenId, account }: Person, how: string) => {
    if (how === "the account is deleted") await server.accounts.delete(asUser(account.user), server.now());
    else if (how === "the token is revoked")
      await server.accounts.removeCredential(asUser(account.user), "token", tokenId, server.now());
    else await server.accounts.setPassword(account, "another horse battery", server.now());
  };
  const contentOf = async (user: UserId) => {
    const actions = [];
    // Every table of a deleted account is empty, and reading its actions is refused.
    if ((await server.accounts.get(user)) !== undefined)
      for await (const some of sync.everyAction(user)) actions.push(...some);
    return [await server.store.page(user, { offset: 0, size: 10 }), await server.store.apps.devices(user), actions];
  };
  const requestOf = (route: string, who: Person, headers: Headers) => {
    const [method = "", path = ""] = route.replace(":user", who.name).split(" ");
    const type = path.endsWith(".opml") ? { "Content-Type": "text/x-opml" } : {};
    return writeRequest(method, path, { ...fromNewNetwork(), ...type, ...headers }, WRITES[route]);
  };

  test("app writes: every route that writes → tested here", () => {
    const found = server.server.routes.filter(
      ({ method, access, dialect }) => dialect.app !== undefined && access === "write" && /P/.test(method),
    );
    assert.deepEqual(
      found.map(({ method, path }) => `${method} ${path.replace(":device", "phone")}`).sort(),
      [...Object.keys(WRITES), WITHOUT_EFFECT].sort(),
    );
  });

  const requireRefused = async (route: string, who: Person, headers: Headers, how: string) => {
    const { user } = who.account;
    const request = requestOf(route, who, headers);
    let atTheEnd: unknown;
    const response = await holdBack(server.port, request, async () => {
      await end(who, how);
      atTheEnd = await contentOf(user);
    });
    assert.equal(response.status, 401, response.bytes);
    assert.deepEqual(await contentOf(user), atTheEnd);
  };

  for (const route of Object.keys(WRITES)) {
    test(`${route}: access ends before the last byte of the request → 401, nothing is written`, async () => {
      for (const what of ["a token", "the password"] as const) {
        const who = await newPerson();
        await requireRefused(route, who, await CREDENTIALS[what](who), endOf(what));
      }
    });

    test(`${route}: request with a valid password, last byte delayed → succeeds`, async () => {
      const who = await newPerson();
      const before = await contentOf(who.account.user);
      const request = requestOf(route, who, basic(who.name, PASSWORD));
      assert.equal((await holdBack(server.port, request, () => sleep(80))).status, 200);
      assert.notDeepEqual(await contentOf(who.account.user), before);
    });
  }

  for (const [what, headersOf] of Object.entries(CREDENTIALS)) {
    for (const how of [endOf(what), "the account is deleted"]) {
      test(`app write with ${what}: ${how} before the last byte of the request → 401, nothing is written`, async () => {
        const who = await newPerson();
        await requireRefused("POST /api/2/episodes/:user.json", who, await headersOf(who), how);
      });
    }
  }
});

function endOf(credential: string): string {
  return credential.includes("token") ? "the token is revoked" : "the password is changed";
}
