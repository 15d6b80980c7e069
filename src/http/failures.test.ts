import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { after, test } from "node:test";
import { ATOMIC, add, callServer, newId } from "../../test/support/server.ts";
import type { AccountStore } from "../accounts/account-store.ts";
import type { AdministrationStore } from "../accounts/administration-store.ts";
import type { AlertStore } from "../alerts/alert-store.ts";
import type { AppStore } from "../apps/app-store.ts";
import { readConfig } from "../config/config.ts";
import type { LinkStore } from "../links/link-store.ts";
import type { HistoryStore } from "../lists/history-store.ts";
import type { DuplicateStore } from "../podcasts/duplicates.ts";
import type { LookStore } from "../podcasts/look-store.ts";
import type { PodcastStore } from "../podcasts/podcast-store.ts";
import type { TitleStore } from "../podcasts/title-store.ts";
import type { Store } from "../store/shared/contract.ts";
import { StoreUnavailable } from "../util/store-unavailable.ts";
import { createServer } from "./server.ts";

/** A server whose store always fails, which a real one does not do on demand. */
async function startBroken(failure: Error) {
  const fail = () => Promise.reject(failure);
  const store: Store = {
    epoch: new Uint8Array(8),
    change: fail,
    move: fail,
    find: fail,
    page: fail,
    itemsAfter: fail,
    sequences: fail,
    readChanges: fail,
    removals: fail,
    watch: () => undefined,
    forgetRemovals: fail,
    describeDatabase: fail,
    sample: fail,
    connections: undefined,
    ready: fail,
    close: () => Promise.resolve(),
    accounts: {} as AccountStore,
    administration: {} as AdministrationStore,
    apps: { watchActions: () => undefined } as unknown as AppStore,
    podcasts: {} as PodcastStore,
    alerts: {} as AlertStore,
    links: {} as LinkStore,
    moves: {} as LookStore,
    duplicates: {} as DuplicateStore,
    history: {} as HistoryStore,
    titles: {} as TitleStore,
  };
  const stream = new PassThrough();
  let log = "";
  stream.on("data", (chunk) => {
    log += chunk;
  });
  const config = readConfig({ EARMARK_FETCH_FEEDS: "false" }, "/");
  const server = createServer({ config, store, metrics: undefined, logStream: stream, clock: () => new Date() });
  const port = Number(new URL(await server.listen("127.0.0.1", 0)).port);
  after(() => server.drain());
  const all = async () => [
    await callServer(port, "GET", "/v1/subscriptions"),
    await callServer(port, "GET", `/v1/subscriptions/${newId()}`),
    await callServer(port, "DELETE", `/v1/subscriptions/${newId()}`),
    await callServer(port, "POST", "/v1/operations", {
      headers: { "Content-Type": ATOMIC },
      body: JSON.stringify({ "atomic:operations": [null, add(newId(), "https://a.example/canary")] }),
    }),
    await callServer(port, "GET", "/readyz"),
  ];
  return { all, ask: (path: string) => callServer(port, "GET", path), log: () => log };
}

test("failures: an unexpected error → 500 without details, with an id that is also in the log", async () => {
  const { all, log } = await startBroken(new TypeError("secret driver text"));
  for (const response of await all()) {
    assert.equal(response.status, 500);
    const [error] = response.json.errors;
    assert.deepEqual(Object.keys(error), ["id", "status", "code", "title", "detail"]);
    assert.equal(error.status, "500");
    assert.match(response.headers["content-type"] as string, /^application\/vnd\.api\+json(;ext="[^"]+")?$/);
    assert.doesNotMatch(response.text, /secret|TypeError|\.ts/);
    const line = log()
      .split("\n")
      .find((text) => text.includes(`"reqId":"${error.id}"`));
    assert.match(line ?? "", /secret driver text/);
  }
  assert.doesNotMatch(log(), /canary/);
});

test("failures: the database is unavailable → 503 with Retry-After, without details of the engine", async () => {
  for (const [options, code] of [
    [{ cause: new Error("secret driver text") }, "database-unavailable"],
    [{ isOutcomeUnknown: true, cause: new Error("secret driver text") }, "outcome-unknown"],
  ] as const) {
    const { all } = await startBroken(new StoreUnavailable("secret", options));
    for (const response of await all()) {
      assert.equal(response.status, 503);
      assert.equal(response.headers["retry-after"], "1");
      assert.deepEqual(Object.keys(response.json), ["jsonapi", "errors"]);
      assert.equal(response.json.errors[0].code, code);
      assert.doesNotMatch(response.text, /secret/);
    }
  }
});

test("failures: control characters in a request or an error → escaped in the response and the log", async () => {
  const { all, ask, log } = await startBroken(new TypeError("text \u202e of \x9b others \u200b"));
  await all();
  assert.match(log(), /text \\u202e of \\u009b others \\u200b/);
  assert.doesNotMatch(log(), /[\u202e\x9b\u200b]/);
  const name = "a\u202eb\x9b";
  const refused = await ask(`/v1/subscriptions?${encodeURIComponent(name)}=1`);
  assert.equal(refused.status, 400);
  assert.equal(refused.json.errors[0].source.parameter, name);
  assert.doesNotMatch(refused.text, /[\u202e\x9b]/);
});

test("failures: podcast app, the database is unavailable → 503 that does not claim that nothing was changed", async () => {
  const { ask } = await startBroken(new StoreUnavailable("secret"));
  const { status, json } = await ask("/subscriptions/earmark.json");
  assert.equal(status, 503);
  assert.deepEqual(json, { message: "The database is unavailable. Try again." });
});
