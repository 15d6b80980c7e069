import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newToken } from "./support/accounts.ts";
import {
  basic,
  cookieOf,
  documentOf,
  JSONAPI,
  MINUTE,
  newUser,
  PASSWORD,
  signIn,
  start,
} from "./support/http-accounts.ts";
import { add, newId, operate } from "./support/server.ts";

const HOUR = 60 * MINUTE;
const FEEDS = "/index.php/apps/gpoddersync/subscriptions";
const CHANGE_FEEDS = "/index.php/apps/gpoddersync/subscription_change/create";

/** The clock of a real server is wrong for hours, and then is not. */
const STEPS = {
  "set back": [-2 * HOUR],
  "set forward": [2 * HOUR],
  "set forward, then back": [2 * HOUR, -2 * HOUR],
  "set back, then forward": [-9 * HOUR, 9 * HOUR],
};

for (const [what, steps] of Object.entries(STEPS))
  describe(`clock ${what}`, async () => {
    const server = await start({ EARMARK_REQUESTS_PER_MINUTE: "30", EARMARK_OPERATIONS_PER_MINUTE: "30" });
    const { call } = server;
    const forEachStep = async (work: (step: number) => Promise<void>) => {
      await work(0);
      for (const [index, step] of steps.entries()) {
        server.stepClock(step);
        await work(index + 1);
        server.wait(1_000);
      }
    };

    test("clock steps: session, token and app session in use → still valid, and no limit is reached", async () => {
      const { name, Cookie, Authorization } = await newUser(server);
      const list = `/api/2/devices/${name}.json`;
      const app = await call("GET", list, { headers: basic(name, PASSWORD) });
      const credentials = [{ Cookie }, { Authorization }, { Cookie: cookieOf(app) }];
      const paths = ["/v1/subscriptions", "/v1/subscriptions", list];
      await forEachStep(async () => {
        for (const [index, headers] of [...credentials, ...credentials].entries()) {
          const { status } = await call("GET", paths[index % 3] ?? "", { headers });
          assert.equal(status, 200, `request ${index}`);
        }
        const asUser: typeof call = (method, path, options) =>
          call(method, path, { ...options, headers: { ...options?.headers, Authorization } });
        const id = newId();
        const [added] = await operate(asUser, [add(id, `https://feeds.example/${id}`)]);
        assert.equal(added.data.id, id);
      });
    });

    test("clock steps: sign-ins from one network → allowed, for other names too", async () => {
      const from = { "X-Forwarded-For": "203.0.113.5" };
      await forEachStep(async () => {
        const { name } = await newUser(server);
        assert.equal((await signIn(server, name, PASSWORD, from)).status, 201);
        server.wait(MINUTE);
        assert.equal((await signIn(server, name, "wrong password", from)).status, 401);
        assert.equal((await signIn(server, name, PASSWORD, from)).status, 201);
      });
    });

    test("clock steps: apps that sync → each gets every change of the others", async () => {
      const { name, Cookie } = await newUser(server);
      /** `next` chooses the timestamp for the next poll, from the server's and that of a correct clock. */
      const createApp = async (agent: string, next: (issued: number, own: number) => number) => {
        const { token } = await newToken(server.port, { cookie: Cookie }, { label: agent, scope: "write" });
        const feeds = new Set<string>();
        const headers = { ...basic(name, token), "User-Agent": agent };
        let [since, issuedLast] = [0, 0];
        const poll = async (own: number) => {
          const { status, json } = await call("GET", `${FEEDS}?since=${since}`, { headers });
          assert.equal(status, 200);
          for (const url of json.add) feeds.add(url);
          for (const url of json.remove) feeds.delete(url);
          assert.ok(json.timestamp >= issuedLast, "timestamps never decrease");
          issuedLast = json.timestamp;
          since = next(json.timestamp, own);
        };
        const upload = async (own: number, changes: { readonly add: string[]; readonly remove: string[] }) => {
          await poll(own);
          const { status, json } = await call("POST", CHANGE_FEEDS, { headers, body: JSON.stringify(changes) });
          assert.equal(status, 200);
          for (const url of changes.add) feeds.add(url);
          for (const url of changes.remove) feeds.delete(url);
          since = next(json.timestamp, own);
        };
        return { feeds, poll, upload };
      };
      const phone = await createApp("AntennaPod/3.9", (issued) => issued);
      const laptop = await createApp("Kasts/25.04", (issued) => issued + 1);
      const tablet = await createApp("Cardo/1.0", (_, own) => own);
      const apps = [phone, laptop, tablet];
      let own = Math.floor(server.now().getTime() / 1_000);
      const wait = (seconds: number) => {
        own += seconds;
        server.wait(1_000 * seconds);
      };
      await forEachStep(async (step) => {
        for (const [index, app] of apps.entries()) {
          const url = (count: number) => `https://feeds.example/${count}-${index}`;
          await app.upload(own, { add: [url(step)], remove: step === 0 ? [] : [url(step - 1)] });
          wait(7);
          for (const each of apps) await each.poll(own);
          wait(7);
        }
        const expected = apps.map((_, index) => `https://feeds.example/${step}-${index}`);
        for (const [index, { feeds }] of apps.entries())
          assert.deepEqual([...feeds].sort(), expected, `app ${index} after step ${step}`);
        wait(60);
      });
      const isNew = await createApp("AntennaPod/4.0", (issued) => issued);
      await isNew.poll(own);
      assert.deepEqual([...isNew.feeds].sort(), [...phone.feeds].sort());
    });
  });

describe("clock set back", async () => {
  const server = await start();
  const { call } = server;

  test("clock steps: all guesses at a name are used up → at most one more, then 429", async () => {
    const { name } = await newUser(server);
    const from = { "X-Forwarded-For": "203.0.114.5" };
    const guess = async () => (await signIn(server, name, "wrong password", from)).status;
    for (let count = 0; count < 10; count += 1) assert.equal(await guess(), 401);
    server.stepClock(-2 * HOUR);
    await guess();
    assert.deepEqual([await guess(), await guess()], [429, 429]);
  });

  test("clock steps: an app login in progress → completed", async () => {
    const { Cookie } = await newUser(server);
    const begun = await call("POST", "/index.php/login/v2");
    const id = new URLSearchParams(new URL(begun.json.login).hash.slice(1)).get("app-login");
    server.stepClock(-2 * HOUR);
    const body = documentOf("app-login", { label: "an app" });
    const approved = await call("POST", `/v1/app-logins/${id}`, { headers: { ...JSONAPI, Cookie }, body });
    assert.equal(approved.status, 201);
    const { token } = begun.json.poll;
    assert.equal((await call("POST", "/index.php/login/v2/poll", { body: JSON.stringify({ token }) })).status, 200);
  });
});
