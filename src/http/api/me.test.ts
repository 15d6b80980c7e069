import assert from "node:assert/strict";
import { test } from "node:test";
import { newUser } from "../../../test/support/http-accounts.ts";
import { newId, PLAIN, startServer, type TestServer } from "../../../test/support/server.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import { feedKeyHex } from "../../lists/feed-url.ts";

const alone = await startServer();
const shared = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });

type Headers = Readonly<Record<string, string>>;

const changeMe = ({ call }: TestServer, attributes: object, headers: Headers = {}) =>
  call("PATCH", "/v1/me", {
    headers: { "Content-Type": PLAIN, ...headers },
    body: JSON.stringify({ data: { type: "account", attributes } }),
  });

async function followsMoves({ call }: TestServer, headers: Headers = {}): Promise<boolean> {
  return (await call("GET", "/v1/me", { headers })).json.data.attributes.follow_moves;
}

test("follow_moves: changed before there is a list → stored, and the list can be used", async () => {
  assert.equal(await followsMoves(alone), true);
  for (const follow_moves of [false, false, true, false]) {
    const { status, json } = await changeMe(alone, { follow_moves });
    assert.deepEqual(
      [status, json.data.attributes.name, json.data.attributes.follow_moves],
      [200, "local", follow_moves],
    );
    assert.deepEqual(json, (await alone.call("GET", "/v1/me")).json);
  }
  const { json } = await alone.call("GET", "/v1/me/export");
  assert.equal(json.data[0].attributes.follow_moves, false);
});

test("follow_moves: with accounts → each has its own; a read-only token and a new password are refused", async () => {
  const [ann, bob, cat] = [await newUser(shared), await newUser(shared), await newUser(shared, "read")];
  const ofAnn = { Authorization: ann.Authorization };
  assert.equal((await changeMe(shared, { follow_moves: false }, ofAnn)).status, 200);
  assert.equal(await followsMoves(shared, { Cookie: ann.Cookie }), false);
  assert.equal(await followsMoves(shared, { Cookie: bob.Cookie }), true);
  const refused = [
    [{ follow_moves: true }, { Authorization: cat.Authorization }, 403, "insufficient-scope"],
    [{ follow_moves: true }, {}, 401, "unauthenticated"],
    [{ current_password: "a", password: "b" }, ofAnn, 403, "session-required"],
    [{}, ofAnn, 403, "session-required"],
    [{}, { Cookie: bob.Cookie }, 422, "attribute-missing"],
  ] as const;
  for (const [attributes, headers, status, code] of refused) {
    const response = await changeMe(shared, attributes, headers);
    assert.deepEqual([response.status, response.json.errors[0].code], [status, code]);
  }
});

test("follow_moves: not true or false, or missing without accounts → 422 with a pointer", async () => {
  for (const [attributes, code, pointer] of [
    [{ follow_moves: "false" }, "invalid-attribute", "/data/attributes/follow_moves"],
    [{ follow_moves: null }, "invalid-attribute", "/data/attributes/follow_moves"],
    [{ follow_moves: true, password: "x" }, "invalid-attribute", "/data/attributes/follow_moves"],
    [{ current_password: "a", password: "b" }, "attribute-missing", "/data/attributes"],
  ] as const) {
    const { status, json } = await changeMe(alone, attributes);
    assert.deepEqual([status, json.errors[0].code, json.errors[0].source.pointer], [422, code, pointer]);
  }
});

test("follow_moves: false → a move that is proven is not followed; true → it is", async () => {
  const [from, to] = ["https://old.example/feed", "https://new.example/feed"];
  const { store } = shared;
  const { Authorization, Cookie } = await newUser(shared);
  const headers = { Authorization, "Content-Type": PLAIN };
  const user: UserId = Number((await shared.call("GET", "/v1/me", { headers: { Cookie } })).json.data.id);
  const body = JSON.stringify({ data: { type: "subscription", id: newId(), attributes: { feed_url: from } } });
  assert.equal((await shared.call("POST", "/v1/subscriptions", { headers, body })).status, 201);
  const follow = async () => {
    const feed = (url: string) => feedKeyHex(url.replace("https://", ""));
    await store.move(asUser(user), { kind: "follow", feed: feed(from), to: { feed: feed(to), url: to } }, new Date());
    return (await store.page(user, { offset: 0, size: 1 })).items[0]?.feedUrl;
  };
  await changeMe(shared, { follow_moves: false }, headers);
  assert.equal(await follow(), from);
  await changeMe(shared, { follow_moves: true }, headers);
  assert.equal(await follow(), to);
});
