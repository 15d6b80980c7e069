import assert from "node:assert/strict";
import { test } from "node:test";
import { basic, newUser } from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, newId, operate, PLAIN, startServer } from "../../../test/support/server.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import { feedKeyHex } from "../../lists/feed-url.ts";

const shared = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });

let feeds = 0;
function newFeed(): string {
  feeds += 1;
  return `https://feeds.example/${feeds}`;
}

const keyOf = (url: string) => feedKeyHex(url.replace("https://", ""));
const one = (id: string, attributes: object) => ({ data: { type: "subscription", id, attributes } });
const update = (id: string, attributes: object) => ({ op: "update", ...one(id, attributes) });
const move = (id: string, feed_url: string) => update(id, { feed_url });
const remove = (id: string) => ({ op: "remove", ref: { type: "subscription", id } });
const merge = (id: string, into: unknown) => ({ ...remove(id), meta: { merge_into: into } });
const opmlOf = (...urls: readonly string[]) =>
  `<opml version="2.0"><body>${urls.map((url) => `<outline xmlUrl="${url}"/>`).join("")}</body></opml>`;

interface Result {
  readonly data?: { readonly id: string; readonly attributes: Attributes } | null;
  readonly errors?: readonly {
    readonly code: string;
    readonly status: string;
    readonly source?: { readonly pointer: string };
    readonly meta?: { readonly existing_id?: string };
  }[];
}

interface Attributes {
  readonly feed_url: string;
  readonly title?: string;
  readonly folders?: readonly string[];
  readonly former_feed_urls?: readonly string[];
}

/** Former URLs, or the code of the error with the id or pointer that it names. */
function outcomeOf({ data, errors: [error] = [] }: Result): unknown {
  if (error === undefined) return data === null ? "removed" : (data?.attributes.former_feed_urls ?? []);
  return `${error.code} ${error.meta?.existing_id ?? error.source?.pointer.replace(/^\/atomic:operations\/\d+/, "")}`;
}

/** A new account with an empty list. */
async function startList() {
  const { name, Authorization, Cookie } = await newUser(shared);
  const token = Authorization.slice("Bearer ".length);
  const call = (method: string, path: string, options: { headers?: Record<string, string>; body?: string } = {}) =>
    shared.call(method, path, { ...options, headers: { Authorization, ...options.headers } });
  const send = (method: string, path: string, document: object) =>
    call(method, path, { headers: { "Content-Type": PLAIN }, body: JSON.stringify(document) });
  const get = async (path: string) => {
    const { status, json } = await call("GET", path);
    assert.equal(status, 200, path);
    return json;
  };
  return {
    Cookie,
    call,
    send,
    get,
    operate: (...operations: readonly object[]): Promise<Result[]> => operate(call as typeof shared.call, operations),
    outcomes: async (...operations: readonly object[]) =>
      (await operate(call as typeof shared.call, operations)).map(outcomeOf),
    /** Subscribes, in one request. */
    subscribe: async (...urls: readonly string[]) => {
      const ids = urls.map(() => newId());
      await operate(
        call as typeof shared.call,
        urls.map((url, index) => add(ids[index], url)),
      );
      return ids as [string, string, string, string];
    },
    list: async (): Promise<Attributes[]> =>
      (await get("/v1/subscriptions?page[size]=100")).data.map(({ attributes }: { attributes: Attributes }) => {
        const { user_subscribed_at: _, ...rest } = attributes as Attributes & { user_subscribed_at: string };
        return rest;
      }),
    changesSince: async (state: string) => {
      const { data, meta } = await get(`/v1/changes?page[after]=${state}`);
      const changed = data.map(({ id, attributes }: { id: string; attributes: Attributes }) => [
        id,
        attributes.feed_url,
        attributes.former_feed_urls,
      ]);
      return { changed, removed: meta.removed.map(({ id }: { id: string }) => id) };
    },
    user: async (): Promise<UserId> => Number((await get("/v1/me")).data.id),
    state: async (): Promise<string> => (await get("/v1/me")).meta.state,
    /** As a podcast app. */
    app: async (method: string, path: string, body?: unknown) => {
      const options = { headers: basic(name, token), ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const { status, json, text } = await shared.call(method, path.replace("USER", name), options);
      assert.equal(status, 200, text);
      return json;
    },
  };
}

test("former URLs: feed moved twice → in every document, newest first", async () => {
  const { send, get, call, outcomes, subscribe, list, Cookie } = await startList();
  const [A, B, C] = [newFeed(), newFeed(), newFeed()];
  const [id] = await subscribe(A);
  assert.deepEqual(await list(), [{ feed_url: A }], "absent without a move");
  const patched = await send("PATCH", `/v1/subscriptions/${id}`, one(id, { feed_url: B }));
  assert.deepEqual([patched.status, outcomeOf(patched.json)], [200, [A]]);
  assert.deepEqual(await outcomes(move(id, C), update(id, { title: "T" })), [
    [B, A],
    [B, A],
  ]);
  const whole = (await get(`/v1/subscriptions/${id}`)).data;
  assert.deepEqual([whole.attributes.feed_url, whole.attributes.former_feed_urls], [C, [B, A]]);
  for (const path of ["/v1/subscriptions", "/v1/changes", `/v1/subscriptions?filter[feed_url]=${C}`])
    assert.deepEqual((await get(path)).data, [whole], path);
  for (const url of [A, B, `${A.replace("https", "http")}/#x`])
    assert.deepEqual((await get(`/v1/subscriptions?filter[feed_url]=${encodeURIComponent(url)}`)).data, [whole], url);
  for (const path of ["/v1/subscriptions?", `/v1/subscriptions/${id}?`]) {
    const { data } = await get(`${path}fields[subscription]=former_feed_urls`);
    assert.deepEqual([data].flat()[0].attributes, { former_feed_urls: [B, A] });
    const other = (await get(`${path}fields[subscription]=title`)).data;
    assert.deepEqual([other].flat()[0].attributes, { title: "T" });
  }
  const exported = await shared.call("GET", "/v1/me/export", { headers: { Cookie } });
  const subscriptions = exported.json.data.filter(({ type }: { type: string }) => type === "subscription");
  assert.deepEqual(subscriptions, [whole]);
  const opml = (await call("GET", "/v1/subscriptions.opml")).text;
  assert.deepEqual([opml.includes(C), opml.includes(A), opml.includes(B)], [true, false, false]);
});

test("former URLs: another spelling of the same feed → none", async () => {
  const { outcomes, subscribe } = await startList();
  const A = newFeed();
  const [id] = await subscribe(A);
  assert.deepEqual(await outcomes(move(id, `${A}/`), move(id, A.replace("https", "http"))), [[], []]);
});

test("former URLs: 25 moves in a row → the 20 newest; the others can be subscribed to separately", async () => {
  const { outcomes, operate, subscribe, list } = await startList();
  const urls = Array.from({ length: 26 }, newFeed);
  const [id] = await subscribe(urls[0] ?? "");
  const results = await operate(...urls.slice(1).map((url) => move(id, url)));
  const newest = urls.slice(5, 25).reverse();
  assert.deepEqual(outcomeOf(results.at(-1) ?? {}), newest);
  assert.deepEqual(
    await outcomes(...newest.map((url) => add(newId(), url))),
    Array(20).fill(`already-subscribed ${id}`),
  );
  assert.deepEqual(await outcomes(...urls.slice(0, 5).map((url) => add(newId(), url))), Array(5).fill([]));
  assert.equal((await list()).length, 6);
  // One request per move gives the same.
  const other = await startList();
  const [slow] = await other.subscribe(urls[0] ?? "");
  for (const url of urls.slice(1)) await other.operate(move(slow, url));
  assert.deepEqual((await other.list())[0]?.former_feed_urls, newest);
});

test("former URLs: long ones → as many as fit, at least the newest", async () => {
  const { operate, subscribe } = await startList();
  const urls = Array.from({ length: 5 }, () => `${newFeed()}/${"x".repeat(2_000)}`);
  const [id] = await subscribe(urls[0] ?? "");
  const results = await operate(...urls.slice(1).map((url) => move(id, url)));
  assert.deepEqual(outcomeOf(results.at(-1) ?? {}), urls.slice(2, 4).reverse());
});

test("former URLs: cleared with null or [] → the feed can be subscribed to separately", async () => {
  const { send, get, outcomes, subscribe } = await startList();
  for (const former_feed_urls of [null, []]) {
    const [A, B, C] = [newFeed(), newFeed(), newFeed()];
    const [id] = await subscribe(A);
    await outcomes(move(id, B));
    const { json } = await send("PATCH", `/v1/subscriptions/${id}`, one(id, { former_feed_urls }));
    assert.deepEqual(outcomeOf(json), []);
    assert.equal((await get(`/v1/subscriptions?filter[feed_url]=${A}`)).data.length, 0);
    const other = newId();
    assert.deepEqual(await outcomes(add(other, A), update(id, { former_feed_urls })), [[], []]);
    assert.equal((await get(`/v1/subscriptions?filter[feed_url]=${A}`)).data[0].id, other);
    assert.deepEqual(await outcomes(update(id, { feed_url: C, former_feed_urls })), [[]], "with a move");
    assert.deepEqual(await outcomes(add(newId(), B)), [[]]);
  }
});

test("former URLs: from a client → refused with a pointer; null and [] are accepted", async () => {
  const { send, outcomes, subscribe } = await startList();
  const [A] = [newFeed()];
  const [id] = await subscribe(A);
  for (const former_feed_urls of [[newFeed()], [""], "x", 1, true, {}]) {
    const added = one(newId(), { feed_url: newFeed(), former_feed_urls });
    for (const { status, json } of [
      await send("PATCH", `/v1/subscriptions/${id}`, one(id, { former_feed_urls })),
      await send("POST", "/v1/subscriptions", added),
    ]) {
      const { code, source } = json.errors[0];
      assert.deepEqual(
        [status, code, source.pointer],
        [422, "invalid-former-feed-urls", "/data/attributes/former_feed_urls"],
      );
    }
    assert.deepEqual(await outcomes({ op: "add", ...added }), ["invalid-former-feed-urls "]);
  }
  const accepted = [null, []].map((former_feed_urls) => one(newId(), { feed_url: newFeed(), former_feed_urls }));
  assert.deepEqual(await outcomes(...accepted.map((each) => ({ op: "add", ...each }))), [[], []]);
});

test("former URLs: added anywhere → already subscribed, with the id", async () => {
  const { send, call, app, outcomes, subscribe, list } = await startList();
  const [A, B] = [newFeed(), newFeed()];
  const [id] = await subscribe(A);
  const first = await outcomes(move(id, B), add(newId(), A), add(newId(), `${A}/`));
  assert.deepEqual(first, [[A], `already-subscribed ${id}`, `already-subscribed ${id}`], "in the same request");
  assert.deepEqual(await outcomes(add(newId(), A)), [`already-subscribed ${id}`]);
  const posted = await send("POST", "/v1/subscriptions", one(newId(), { feed_url: A }));
  assert.deepEqual([posted.status, posted.json.errors[0].meta.existing_id], [409, id]);
  for (const [type, body] of [
    ["text/x-opml", opmlOf(A, newFeed())],
    ["text/plain", `${A}\n${newFeed()}`],
  ] as const) {
    const run = async (query: string) =>
      (await call("POST", `/v1/imports${query}`, { headers: { "Content-Type": type }, body })).json.data.map(
        ({ attributes }: { attributes: { outcome: string } }) => attributes.outcome,
      );
    assert.deepEqual(await run("?dryRun=true"), ["already-subscribed", "added"]);
    assert.deepEqual(await run(""), ["already-subscribed", "added"]);
  }
  const { update_urls } = await app("POST", "/api/2/subscriptions/USER/phone.json", { add: [A], remove: [] });
  assert.deepEqual(update_urls, [[A, B]]);
  assert.deepEqual((await list()).filter(({ feed_url }) => feed_url === A || feed_url === B).length, 1);
});

test("former URLs: as the new URL of another subscription → 409; of its own → it moves back", async () => {
  const { send, outcomes, subscribe, list } = await startList();
  const [A, B, X] = [newFeed(), newFeed(), newFeed()];
  const [id, other] = await subscribe(A, X);
  await outcomes(move(id, B));
  const { status, json } = await send("PATCH", `/v1/subscriptions/${other}`, one(other, { feed_url: A }));
  assert.deepEqual([status, outcomeOf(json)], [409, `already-subscribed ${id}`]);
  assert.deepEqual(await outcomes(move(other, A), move(id, A), move(other, B)), [
    `already-subscribed ${id}`,
    [B],
    `already-subscribed ${id}`,
  ]);
  assert.deepEqual(await list(), [{ feed_url: A, former_feed_urls: [B] }, { feed_url: X }]);
});

test("former URLs: a mistaken move was undone, and its URL leads elsewhere → it is free, as an import previews", async () => {
  const { call, get, outcomes, subscribe, list, user } = await startList();
  const [A, B] = [newFeed(), newFeed()];
  const [id] = await subscribe(A);
  assert.deepEqual(await outcomes(move(id, B), move(id, A)), [[A], [B]]);
  const [feed, target] = [keyOf(B), keyOf(A)];
  await shared.store.move(asUser(await user()), { kind: "look", feed, target, look: "elsewhere" }, new Date());
  assert.deepEqual((await get(`/v1/subscriptions?filter[feed_url]=${B}`)).data, []);
  const imported = async (query: string) =>
    (await call("POST", `/v1/imports${query}`, { headers: { "Content-Type": "text/plain" }, body: B })).json.meta
      .counts;
  const preview = await imported("?dryRun=true");
  assert.deepEqual([preview, preview.added], [await imported(""), 1]);
  assert.deepEqual(
    (await list()).map(({ feed_url, former_feed_urls }) => [feed_url, former_feed_urls]),
    [
      [A, undefined],
      [B, undefined],
    ],
  );
});

test("former URLs: removed and added again under any of them → they are back", async () => {
  const { get, outcomes, subscribe } = await startList();
  const [A, B] = [newFeed(), newFeed()];
  const [id] = await subscribe(A);
  await outcomes(move(id, B), remove(id));
  const [removal] = (await get("/v1/removals")).data;
  assert.deepEqual([removal.attributes.feed_url, removal.attributes.former_feed_urls], [B, [A]]);
  assert.deepEqual(await outcomes(add(id, B), remove(id), add(id, A)), [[A], "removed", [B]]);
});

test("former URLs: changes → a move is one update, a merge one update and one removal", async () => {
  const { outcomes, subscribe, changesSince, state } = await startList();
  const [A, B, X] = [newFeed(), newFeed(), newFeed()];
  const [id, other] = await subscribe(A, X);
  const before = await state();
  await outcomes(move(id, B));
  assert.deepEqual(await changesSince(before), { changed: [[id, B, [A]]], removed: [] });
  const between = await state();
  await outcomes(merge(other, id));
  assert.deepEqual(await changesSince(between), { changed: [[id, B, [X, A]]], removed: [other] });
  assert.deepEqual(await changesSince(before), { changed: [[id, B, [X, A]]], removed: [other] });
  const after = await state();
  assert.deepEqual(await outcomes(merge(other, id)), ["not-found "]);
  assert.deepEqual(await changesSince(after), { changed: [], removed: [] });
});

test("merge: → title and folders where there are none, URLs and episode actions", async () => {
  const { app, get, outcomes, operate, subscribe, list } = await startList();
  const [A0, A, B] = [newFeed(), newFeed(), newFeed()];
  const [from, into] = await subscribe(A0, B);
  const action = (podcast: string, episode: string, timestamp: string, position: number) => {
    const media = `https://media.example/${episode}`;
    return { podcast, episode: media, action: "play", timestamp, position, started: 0, total: 100 };
  };
  await operate(move(from, A), update(from, { title: "Of A", folders: ["a"] }), update(into, { folders: ["b"] }));
  await app("POST", "/api/2/episodes/USER.json", [
    action(A, "1", "2026-01-01T00:00:00", 10),
    action(A, "2", "2026-01-03T00:00:00", 20),
    action(B, "2", "2026-01-02T00:00:00", 21),
    action(B, "3", "2026-01-04T00:00:00", 30),
  ]);
  assert.deepEqual(await outcomes(merge(from.toUpperCase(), into.toUpperCase())), ["removed"]);
  const merged = { feed_url: B, title: "Of A", folders: ["b"], former_feed_urls: [A, A0] };
  assert.deepEqual(await list(), [merged]);
  for (const url of [A0, A, B]) {
    assert.equal((await get(`/v1/subscriptions?filter[feed_url]=${url}`)).data[0].id, into);
    const actions = (await get(`/v1/episode-actions?filter[feed_url]=${url}`)).data.map(
      ({ attributes }: { attributes: { media_url: string; position: number } }) =>
        `${attributes.media_url.at(-1)} ${attributes.position}`,
    );
    assert.deepEqual(actions.sort(), ["1 10", "2 20", "3 30"], url);
  }
  assert.deepEqual(await outcomes(add(newId(), A)), [`already-subscribed ${into}`]);
});

test("merge: what is set stays; what would be too long is not taken over", async () => {
  const { outcomes, operate, subscribe, list } = await startList();
  const long = ["a", "b", "c"].map((name) => name.repeat(300));
  const urls = [newFeed(), newFeed(), newFeed(), newFeed()] as const;
  const [one, two, three, four] = await subscribe(...urls);
  await operate(
    update(one, { title: "one", folders: ["1"] }),
    update(two, { title: "two", folders: ["2"] }),
    update(three, { title: "x".repeat(300) }),
    update(four, { folders: long }),
  );
  assert.deepEqual(await outcomes(merge(one, two), merge(three, four)), ["removed", "removed"]);
  assert.deepEqual(await list(), [
    { feed_url: urls[1], title: "two", folders: ["2"], former_feed_urls: [urls[0]] },
    { feed_url: urls[3], folders: long, former_feed_urls: [urls[2]] },
  ]);
});

test("merge: several in one request → the last one has all URLs", async () => {
  const { outcomes, subscribe, list } = await startList();
  const [A, B, C] = [newFeed(), newFeed(), newFeed()];
  const [a, b, c] = await subscribe(A, B, C);
  assert.deepEqual(await outcomes(merge(a, b), merge(b, c), add(newId(), A), merge(a, c)), [
    "removed",
    "removed",
    `already-subscribed ${c}`,
    "not-found ",
  ]);
  assert.deepEqual(await list(), [{ feed_url: C, former_feed_urls: [B, A] }]);
});

test("merge: not possible → its error, and nothing is removed", async () => {
  const { outcomes, operate, subscribe, list } = await startList();
  const [A, B] = [newFeed(), newFeed()];
  const [id, other] = await subscribe(A, B);
  const cases = [
    [merge(id, newId()), "not-found /meta/merge_into"],
    [merge(newId(), id), "not-found "],
    [merge(newId(), newId()), "not-found "],
    [merge(id, id), "merge-into-itself /meta/merge_into"],
    [merge(id, id.toUpperCase()), "merge-into-itself /meta/merge_into"],
    ...["x", "", null, 1, [other], { id: other }].map(
      (into) => [merge(id, into), "invalid-merge-target /meta/merge_into"] as const,
    ),
  ] as const;
  assert.deepEqual(
    await outcomes(...cases.map(([operation]) => operation)),
    cases.map(([, outcome]) => outcome),
  );
  const statuses = (await operate(...cases.map(([operation]) => operation))).map(({ errors }) => errors?.[0]?.status);
  assert.deepEqual(statuses, [...Array(3).fill("404"), ...Array(8).fill("422")]);
  assert.deepEqual(await list(), [{ feed_url: A }, { feed_url: B }]);
  assert.deepEqual(await outcomes(remove(other), merge(id, other)), ["removed", "not-found /meta/merge_into"]);
  assert.deepEqual(await list(), [{ feed_url: A }]);
  assert.deepEqual(await outcomes({ ...remove(id), meta: {} }), ["removed"], "without a target it is a removal");
});

test("merge: former URLs cleared → the other feed can be subscribed to again", async () => {
  const { outcomes, subscribe, list } = await startList();
  const [A, B] = [newFeed(), newFeed()];
  const [from, into] = await subscribe(A, B);
  await outcomes(merge(from, into));
  assert.deepEqual(await outcomes(update(into, { former_feed_urls: null }), add(from, A)), [[], []]);
  assert.deepEqual(await list(), [{ feed_url: B }, { feed_url: A }]);
});

test("merge: a read-only token → 403", async () => {
  const { Authorization } = await newUser(shared, "read");
  const body = JSON.stringify({ "atomic:operations": [merge(newId(), newId())] });
  const response = await shared.call("POST", "/v1/operations", {
    headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
    body,
  });
  assert.equal(response.status, 403);
});
