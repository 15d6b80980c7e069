import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../client/src/index.ts";
import { failureOf, feedsOf, newPerson, serverUrl, startProxy, startProxyWith } from "./support/client.ts";

test("signal: aborted before, between, during requests or while waiting → AbortError", {
  timeout: 50_000,
}, async () => {
  const { token } = await newPerson();
  const feeds = feedsOf(3_000);
  const stopped = async (proxy: { readonly url: string }, controller: AbortController, onProgress?: () => void) => {
    const client = createClient({ url: proxy.url, token, onRetry: () => setTimeout(() => controller.abort(), 50) });
    const failure = await failureOf(client.subscribe(feeds, { onProgress, signal: controller.signal }), DOMException);
    assert.equal(failure.name, "AbortError");
  };

  const early = new AbortController();
  early.abort();
  const unused = await startProxyWith();
  await stopped(unused, early);
  assert.equal(unused.all.length, 0);

  const between = new AbortController();
  const proxy = await startProxyWith();
  await stopped(proxy, between, () => between.abort());
  assert.equal(proxy.operations().length, 1);

  const within = new AbortController();
  const stalled = await startProxy(({ path }) => {
    if (path !== "/v1/operations") return "pass";
    setTimeout(() => within.abort(), 50);
    return "stall";
  });
  await stopped(stalled, within);

  await stopped(await startProxyWith({ status: 503, headers: { "Retry-After": "60" } }), new AbortController());

  const told = new AbortController();
  const busy = await startProxyWith({ status: 503, headers: { "Retry-After": "60" } });
  const client = createClient({ url: busy.url, token, onRetry: () => told.abort() });
  assert.equal((await failureOf(client.subscribe(feeds, { signal: told.signal }), DOMException)).name, "AbortError");

  // With a fetch that ignores signals, the call still stops between requests.
  const deaf = new AbortController();
  let calls = 0;
  const careless = createClient({
    url: serverUrl,
    token,
    fetch: (address, init) => {
      calls += 1;
      return fetch(address, { ...init, signal: null });
    },
  }).subscribe(feeds, { onProgress: () => deaf.abort(), signal: deaf.signal });
  assert.equal((await failureOf(careless, DOMException)).name, "AbortError");
  assert.equal(calls, 2);

  // Iterating stops too, with the signal's reason.
  const reason = new Error("enough");
  const listing = new AbortController();
  const seen: string[] = [];
  const iterate = async () => {
    for await (const { id } of createClient({ url: proxy.url, token }).subscriptions({ signal: listing.signal })) {
      seen.push(id);
      listing.abort(reason);
    }
  };
  assert.equal(await failureOf(iterate(), Error), reason);
  assert.equal(seen.length, 100);
  const timeout = createClient({ url: stalled.url, token, retries: 0 }).subscribe(feeds, {
    signal: AbortSignal.timeout(50),
  });
  assert.equal((await failureOf(timeout, DOMException)).name, "TimeoutError");
});
