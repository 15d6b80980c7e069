import assert from "node:assert/strict";
import { test } from "node:test";
import { newToken, signUp } from "../../../test/support/accounts.ts";
import { ATOMIC, add, newId, PLAIN, startServer } from "../../../test/support/server.ts";
import { ERRORS } from "../../errors/catalog.ts";

const DETAIL =
  "The account already has the maximum of 3 subscriptions. Remove some, or ask the server's operator for a higher limit.";

/** A server with a quota of three subscriptions per account, and a user with a token. */
async function start() {
  const settings = { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "3" };
  const { port, call } = await startServer(settings);
  const { token } = await newToken(port, await signUp(port, "ann", "the password of ann"), {
    label: "x",
    scope: "write",
  });
  const Authorization = `Bearer ${token}`;
  const send = (method: string, path: string, type: string, body?: string) =>
    call(method, path, { headers: { Authorization, "Content-Type": type }, ...(body === undefined ? {} : { body }) });
  const operate = async (...operations: object[]) =>
    (await send("POST", "/v1/operations", ATOMIC, JSON.stringify({ "atomic:operations": operations }))).json[
      "atomic:results"
    ];
  const post = (id: string, feed: string) => {
    const { data } = add(id, feed) as { data: object };
    return send("POST", "/v1/subscriptions", PLAIN, JSON.stringify({ data }));
  };
  const importAll = async (query: string, ...feeds: string[]) => {
    const outlines = feeds.map((feed) => `<outline type="rss" text="x" xmlUrl="${feed}"/>`);
    const file = `<opml version="2.0"><body>${outlines.join("")}</body></opml>`;
    const { json } = await send("POST", `/v1/imports${query}`, "text/x-opml", file);
    const entries = json.data as { attributes: { outcome: string; detail: string | null } }[];
    return entries.map(({ attributes: { outcome, detail } }) => detail ?? outcome);
  };
  const me = async () => (await send("GET", "/v1/me", PLAIN)).json.meta;
  return { send, operate, post, importAll, me };
}

const feedOf = (number: number) => `https://feeds.example/${number}`;

test("quota: a request exceeds the limit → the first are added, the rest 422, conflicts 409", async () => {
  const { operate, me } = await start();
  const [a, b] = [newId(), newId()];
  const results = await operate(
    add(a, feedOf(1)),
    add(newId(), feedOf(1)),
    add(b, feedOf(2)),
    add(newId(), feedOf(3)),
    add(newId(), feedOf(4)),
    add(newId(), feedOf(2)),
    add(a, feedOf(5)),
    add("x", feedOf(6)),
  );
  const statuses = results.map(
    (result: { data?: object; errors?: [{ status: string }] }) => result.errors?.[0].status ?? "added",
  );
  assert.deepEqual(statuses, ["added", "409", "added", "added", "422", "409", "409", "400"]);
  const error = { status: "422", code: "quota-exceeded", title: "Quota Exceeded", detail: DETAIL, meta: { max: 3 } };
  assert.deepEqual(results[4].errors, [{ ...error, source: { pointer: "/atomic:operations/4" } }]);
  const { counts, limits } = await me();
  assert.deepEqual([counts.subscriptions, limits.subscriptions], [3, 3]);
});

test("quota: a single subscription when the list is full → 403, and 201 after a removal", async () => {
  const { operate, post, send } = await start();
  const [a, b, c] = [newId(), newId(), newId()];
  await operate(add(a, feedOf(1)), add(b, feedOf(2)), add(c, feedOf(3)));
  const id = newId();
  const refused = await post(id, feedOf(4));
  assert.equal(refused.status, 403);
  const error = {
    status: "403",
    code: "quota-exceeded",
    title: "Quota Exceeded",
    detail: DETAIL,
    source: { pointer: "/data" },
    meta: { max: 3 },
  };
  assert.deepEqual(refused.json.errors, [error]);
  assert.equal((await post(newId(), feedOf(3))).status, 409);
  assert.equal((await send("DELETE", `/v1/subscriptions/${a}`, PLAIN)).status, 204);
  assert.equal((await post(id, feedOf(4))).status, 201);
  assert.equal((await post(newId(), feedOf(5))).status, 403);
});

test("quota: an import exceeds the limit → what does not fit is rejected, and the dry run says so", async () => {
  const { operate, importAll, me } = await start();
  await operate(add(newId(), feedOf(1)));
  const feeds = [2, 1, 2, 3, 4, 3, 5].map(feedOf);
  const again = ERRORS["duplicate-in-file"].detail;
  const outcomes = ["added", "already-subscribed", again, "added", DETAIL, again, DETAIL];
  assert.deepEqual(await importAll("?dryRun=true", ...feeds), outcomes);
  assert.equal((await me()).counts.subscriptions, 1);
  assert.deepEqual(await importAll("", ...feeds), outcomes);
  assert.equal((await me()).counts.subscriptions, 3);
});

test("quota: a server without accounts → no quota", async () => {
  const { call } = await startServer();
  assert.equal((await call("GET", "/v1/me")).json.meta.limits.subscriptions, null);
  await assert.rejects(startServer({ EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "3" }), /requires EARMARK_ACCOUNTS=true/);
});
