import assert from "node:assert/strict";
import { test } from "node:test";
import { openEvents } from "../../../test/support/events.ts";
import { basic, MINUTE, newUser, pointerOf, start } from "../../../test/support/http-accounts.ts";
import { add, type HttpResponse, newId, operate, PLAIN, type TestServer } from "../../../test/support/server.ts";
import { asUser, BY_SERVER } from "../../accounts/caller.ts";

const server = await start({ EARMARK_REQUESTS_PER_MINUTE: "1000000" });
const url = (number: number) => `https://feeds.example/${number}`;
const numbered = (count: number, from = 1) => Array.from({ length: count }, (_, index) => url(from + index));

/** A person with a page, tokens and apps; each of them changes the list after a pause. */
async function newScene() {
  const { name, user, Cookie, Authorization } = await newUser(server);
  const token = Authorization.slice("Bearer ".length);
  const as =
    (credentials: Readonly<Record<string, string>>): TestServer["call"] =>
    (method, path, options = {}) =>
      server.call(method, path, { ...options, headers: { ...credentials, ...options.headers } });
  const [page, program] = [as({ Cookie }), as({ Authorization })];
  const addBy = (call: TestServer["call"], urls: readonly string[]) =>
    operate(
      call,
      urls.map((each) => add(newId(), each)),
    );
  /** What an app sends to the gPodder API. */
  const app = async (device: string, changes: { add?: readonly string[]; remove?: readonly string[] }) => {
    const body = JSON.stringify({ add: [], remove: [], ...changes });
    const response = await as(basic(name, token))("POST", `/api/2/subscriptions/${name}/${device}.json`, { body });
    assert.equal(response.status, 200, response.text);
    return response.json as { timestamp: number };
  };
  const poll = async (device: string, since: number) => {
    const { json } = await as(basic(name, token))("GET", `/api/2/subscriptions/${name}/${device}.json?since=${since}`);
    return json as { add: string[]; remove: string[]; timestamp: number };
  };
  const caption = (device: string, text: string) =>
    as(basic(name, token))("POST", `/api/2/devices/${name}/${device}.json`, {
      body: JSON.stringify({ caption: text }),
    });
  const history = async () => (await page("GET", "/v1/history")).json.data as ChangeSetResource[];
  const newest = async () => (await history())[0] ?? assert.fail("no history");
  const undo = (id: string, attributes: object = { scope: "this" }, query = "", call = page) =>
    call("POST", `/v1/history/${id}/undo${query}`, {
      headers: { "Content-Type": PLAIN },
      body: JSON.stringify({ data: { type: "undo", attributes } }),
    });
  const listed = async () => {
    const { data } = (await page("GET", "/v1/subscriptions?page[size]=100")).json;
    return (data as SubscriptionResource[]).map(({ attributes: { feed_url } }) => feed_url);
  };
  const wait = () => server.wait(11 * MINUTE);
  return { name, user, token, as, page, program, addBy, app, poll, caption, history, newest, undo, listed, wait };
}

interface ChangeSetResource {
  readonly id: string;
  readonly attributes: {
    readonly by: { readonly kind: string; readonly name: string | null };
    readonly added: number;
    readonly updated: number;
    readonly removed: number;
    readonly is_large: boolean;
    readonly is_undone: boolean;
  };
}
interface SubscriptionResource {
  readonly id: string;
  readonly attributes: { readonly feed_url: string };
}

const brief = ({ attributes: { by, added, updated, removed } }: ChangeSetResource) => [
  by.kind,
  by.name,
  added,
  updated,
  removed,
];
const undone = ({ json }: HttpResponse) => json.data.attributes;

test("history: every kind of author → named, newest first, in pages", async () => {
  const { user, page, program, addBy, app, caption, history, wait, as, name, token } = await newScene();
  await addBy(page, numbered(2));
  await addBy(program, numbered(1, 3));
  await app("pixel", { add: numbered(2, 4) });
  await caption("pixel", "Ann’s phone");
  await as(basic(name, token))("POST", "/index.php/apps/gpoddersync/subscription_change/create", {
    headers: { "User-Agent": "AntennaPod/3.5" },
    body: JSON.stringify({ add: [url(6)], remove: [url(1)] }),
  });
  await page("POST", "/v1/imports", { headers: { "Content-Type": "text/plain" }, body: url(7) });
  await page("POST", "/v1/imports", { headers: { "Content-Type": "text/plain" }, body: url(8) });
  const [{ id } = { id: "" }] = (await server.store.page(user, { offset: 0, size: 1 })).items;
  await server.store.change(asUser(user), [{ kind: "update", id, title: "Two" }], server.now());
  await server.store.change({ ...asUser(user), author: BY_SERVER }, [{ kind: "remove", id }], server.now());
  wait();
  assert.deepEqual((await history()).map(brief), [
    ["server", null, 0, 0, 1],
    ["command", null, 0, 1, 0],
    ["import", null, 1, 0, 0],
    ["import", null, 1, 0, 0],
    ["app", "phone", 1, 0, 1],
    ["app", "Ann’s phone", 2, 0, 0],
    ["token", "phone", 1, 0, 0],
    ["page", null, 2, 0, 0],
  ]);
  const { json } = await page("GET", "/v1/history?page[number]=2&page[size]=3");
  assert.deepEqual(json.data.map(brief), (await history()).slice(3, 6).map(brief));
  assert.equal(json.meta.total, 8);
  assert.match(json.links.next, /^\/v1\/history\?page\[number\]=3&page\[size\]=3$/);
});

test("history: of one subscription → its sets in pages, whose links keep the filter; not those of others", async () => {
  const { page, program, addBy, app } = await newScene();
  await addBy(page, numbered(2));
  await addBy(program, numbered(1, 3));
  await app("pixel", { remove: [url(2)] });
  const [{ id }] = (await page("GET", "/v1/removals")).json.data;
  const path = `/v1/history?page[size]=1&filter[subscription_id]=${id.toUpperCase()}`;
  const { json } = await page("GET", path);
  assert.deepEqual(json.data.map(brief), [["app", "pixel", 0, 0, 1]]);
  assert.equal(json.meta.total, 2);
  assert.equal(json.links.next, `/v1/history?page[number]=2&page[size]=1&filter[subscription_id]=${id}`);
  assert.deepEqual((await page("GET", json.links.next)).json.data.map(brief), [["page", null, 2, 0, 0]]);
  const stranger = (await newScene()).page;
  assert.deepEqual((await stranger("GET", path)).json.data, []);
});

test("history: a filter that is not an id, or unknown → rejected", async () => {
  const { page } = await newScene();
  for (const query of ["filter[subscription_id]=", "filter[subscription_id]=1", "filter[subscription]=1"]) {
    const { status, json } = await page("GET", `/v1/history?${query}`);
    assert.deepEqual([status, json.errors[0].code], [400, "invalid-query"], query);
    assert.equal(json.errors[0].source.parameter, query.split("=")[0]);
  }
});

test("history: one set → what it changed, with the values of updates", async () => {
  const { page, addBy, newest, wait } = await newScene();
  const [first, second] = await addBy(page, numbered(2));
  wait();
  const change = (attributes: object) => ({
    op: "update",
    data: { type: "subscription", id: first.data.id, attributes },
  });
  await operate(page, [
    change({ title: "One", folders: ["News"] }),
    { op: "remove", ref: { type: "subscription", id: second.data.id } },
    add(newId(), url(3)),
  ]);
  const { id, attributes } = await newest();
  const { json } = await page("GET", `/v1/history/${id}`);
  const { changes, ...rest } = json.data.attributes;
  assert.deepEqual(rest, attributes);
  assert.deepEqual(
    changes.map((each: { change: string; feed_url: string; before?: object; after?: object }) => [
      each.change,
      each.feed_url,
      each.before,
      each.after,
    ]),
    [
      ["updated", url(1), { title: null, folders: null }, { title: "One", folders: ["News"] }],
      ["removed", url(2), undefined, undefined],
      ["added", url(3), undefined, undefined],
    ],
  );
});

test("history: another account, a token that only reads, an unknown id, invalid documents → refused", async () => {
  const { page, addBy, newest, undo, listed, as } = await newScene();
  await addBy(page, numbered(2));
  const { id } = await newest();
  const other = await newScene();
  assert.deepEqual(await other.history(), []);
  for (const path of [`/v1/history/${id}`, "/v1/history/0", "/v1/history/01", "/v1/history/x"])
    assert.equal((await other.page("GET", path)).status, 404);
  assert.equal((await other.undo(id)).status, 404);
  const { Authorization } = await newUser(server, "read");
  assert.equal((await as({ Authorization })("GET", "/v1/history")).status, 200);
  const refused = await undo(id, { scope: "this" }, "", as({ Authorization }));
  assert.deepEqual([refused.status, refused.json.errors[0].code], [403, "insufficient-scope"]);
  for (const [attributes, pointer] of [
    [{ scope: "all" }, "/data/attributes/scope"],
    [{}, "/data/attributes"],
    [{ scope: "this", subscription_ids: ["x"] }, "/data/attributes/subscription_ids"],
    [{ scope: "this", subscription_ids: [] }, "/data/attributes/subscription_ids"],
    [{ scope: "since", subscription_ids: [newId()] }, "/data/attributes/subscription_ids"],
  ] as const) {
    const response = await undo(id, attributes);
    assert.deepEqual([response.status, pointerOf(response)], [422, pointer]);
  }
  assert.deepEqual(await listed(), numbered(2));
});

test("undo: a dry run changes nothing, the undo does, and can be undone", async () => {
  const { page, addBy, app, history, newest, undo, listed, wait } = await newScene();
  await addBy(page, numbered(12));
  wait();
  await app("desk", { remove: numbered(9) });
  const { id, attributes } = await newest();
  assert.deepEqual([attributes.is_large, attributes.is_undone], [true, false]);
  const preview = await undo(id, { scope: "this" }, "?dryRun=true");
  assert.deepEqual(undone(preview), { restored: 9, removed: 0, reverted: 0, skipped: [] });
  assert.deepEqual([(await listed()).length, (await history()).length], [3, 2]);
  const done = await undo(id);
  assert.deepEqual(undone(done), undone(preview));
  assert.deepEqual((await listed()).toSorted(), numbered(12).toSorted());
  const [second, first] = await history();
  assert.deepEqual([second?.id, first?.attributes.is_undone], [done.json.data.id, true]);
  assert.deepEqual(undone(await undo(done.json.data.id)), { restored: 0, removed: 9, reverted: 0, skipped: [] });
  assert.deepEqual(await listed(), numbered(3, 10));
  assert.deepEqual(
    (await history()).map(({ attributes: { is_undone } }) => is_undone),
    [false, true, false, false],
  );
});

test("undo: some subscriptions of a set → the others stay as they are, and the set is not undone", async () => {
  const { page, addBy, history, newest, undo, listed, wait } = await newScene();
  const results = await addBy(page, numbered(3));
  const ids: string[] = results.map(({ data }) => data.id);
  wait();
  await operate(
    page,
    ids.map((id) => ({ op: "remove", ref: { type: "subscription", id } })),
  );
  const { id } = await newest();
  const only = { scope: "this", subscription_ids: [ids[1]?.toUpperCase(), newId()] };
  assert.deepEqual(undone(await undo(id, only)), { restored: 1, removed: 0, reverted: 0, skipped: [] });
  assert.deepEqual(await listed(), [url(2)]);
  assert.deepEqual(
    (await history()).map(({ attributes: { is_undone } }) => is_undone),
    [false, false, false],
  );
  assert.deepEqual(undone(await undo(id)), {
    restored: 2,
    removed: 0,
    reverted: 0,
    skipped: [{ subscription_id: ids[1], code: "already-subscribed" }],
  });
});

test("undo: a subscription was added, renamed and removed in one set → the removal alone can be undone", async () => {
  const { page, addBy, newest, undo } = await newScene();
  const [{ data }] = await addBy(page, numbered(1));
  const ref = { type: "subscription", id: data.id };
  const before = { ...data, attributes: { ...data.attributes, title: "New" } };
  await operate(page, [{ op: "update", data: { ...ref, attributes: { title: "New" } } }]);
  await operate(page, [{ op: "remove", ref }]);
  const { id } = await newest();
  assert.deepEqual(undone(await undo(id)), { restored: 0, removed: 0, reverted: 0, skipped: [] });
  const only = { scope: "this", subscription_ids: [data.id] };
  assert.deepEqual(undone(await undo(id, only)), { restored: 1, removed: 0, reverted: 0, skipped: [] });
  assert.deepEqual((await page("GET", `/v1/subscriptions/${data.id}`)).json.data, before);
});

test("undo since: takes the list back to before the set, whatever came later", async () => {
  const { page, program, addBy, app, history, undo, listed, wait } = await newScene();
  const [first] = await addBy(page, numbered(3));
  wait();
  const update = { type: "subscription", id: first.data.id, attributes: { title: "Other" } };
  await operate(program, [{ op: "update", data: update }]);
  await app("phone", { remove: [url(2)], add: [url(4)] });
  await addBy(page, [url(2)]);
  const { id } = (await history())[2] ?? assert.fail();
  assert.deepEqual(undone(await undo(id, { scope: "since" })).skipped, []);
  assert.deepEqual((await listed()).toSorted(), numbered(3));
  const { json } = await page("GET", `/v1/subscriptions/${first.data.id}`);
  assert.equal(json.data.attributes.title, undefined);
  assert.deepEqual(
    (await history()).map(({ attributes: { is_undone } }) => is_undone),
    [false, true, true, true, false],
  );
});

test("undo: the list is full → what fits is restored, the rest reported", async () => {
  const small = await start({ EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "5" });
  const { Authorization } = await newUser(small);
  const call: TestServer["call"] = (method, path, options = {}) =>
    small.call(method, path, { ...options, headers: { Authorization, ...options.headers } });
  const addAll = (urls: readonly string[]) =>
    operate(
      call,
      urls.map((each) => add(newId(), each)),
    );
  const results = await addAll(numbered(4));
  small.wait(11 * MINUTE);
  await operate(
    call,
    results.map(({ data: { id } }) => ({ op: "remove", ref: { type: "subscription", id } })),
  );
  const [set] = (await call("GET", "/v1/history")).json.data;
  small.wait(11 * MINUTE);
  await addAll(numbered(3, 10));
  const headers = { "Content-Type": PLAIN };
  const body = JSON.stringify({ data: { type: "undo", attributes: { scope: "this" } } });
  const { restored, skipped } = undone(await call("POST", `/v1/history/${set.id}/undo`, { headers, body }));
  assert.equal(restored, 2);
  assert.deepEqual(
    skipped.map(({ code }: { code: string }) => code),
    ["quota-exceeded", "quota-exceeded"],
  );
});

test("undo: apps, changes and events report it; an app that removes it again is ignored", async () => {
  const { page, addBy, app, poll, newest, undo, listed, wait, token, history } = await newScene();
  await addBy(page, numbered(12));
  const [phone, desk] = [await poll("phone", 0), await poll("desk", 0)];
  assert.deepEqual([phone.add.length, desk.add.length], [12, 12]);
  wait();
  await app("desk", { remove: numbered(12) });
  const gone = await poll("phone", phone.timestamp);
  assert.deepEqual(gone.remove.toSorted(), numbered(12).toSorted());
  const state = (await page("GET", "/v1/me")).json.meta.state;
  const events = await openEvents(server.port, { Authorization: `Bearer ${token}` });
  wait();
  await undo((await newest()).id);
  await events.until((await page("GET", "/v1/me")).json.meta.state);
  events.close();
  const changes = (await page("GET", `/v1/changes?page[after]=${state}`)).json;
  assert.equal(changes.data.length, 12);
  assert.deepEqual((await poll("phone", gone.timestamp)).add.toSorted(), numbered(12).toSorted());
  const back = await poll("desk", desk.timestamp);
  assert.deepEqual(back.add.toSorted(), numbered(12).toSorted());
  const before = (await history()).length;
  await app("desk", { remove: numbered(12) });
  assert.deepEqual([(await listed()).length, (await history()).length], [12, before]);
  const [{ id } = assert.fail()] = (await page("GET", "/v1/subscriptions")).json.data as { id: string }[];
  assert.equal((await page("DELETE", `/v1/subscriptions/${id}`)).status, 204);
  assert.equal((await listed()).length, 11);
});

test("undo: apps write meanwhile → every change is kept or undone, none is lost", async () => {
  const { page, addBy, app, newest, undo, listed, wait } = await newScene();
  await addBy(page, numbered(60));
  wait();
  await app("desk", { remove: numbered(50) });
  const { id } = await newest();
  const writes = Array.from({ length: 20 }, (_, index) => app("phone", { add: [url(100 + index)] }));
  const [response] = await Promise.all([undo(id), ...writes]);
  assert.equal(undone(response).restored, 50);
  assert.deepEqual((await listed()).toSorted(), [...numbered(60), ...numbered(20, 100)].toSorted());
});

test("history: the export of an account → has the change sets", async () => {
  const { page, addBy, app, newest, undo, history } = await newScene();
  await addBy(page, numbered(3));
  await app("phone", { remove: [url(1)] });
  await undo((await newest()).id);
  const { json } = await page("GET", "/v1/me/export");
  const exported = (json.data as { type: string }[]).filter(({ type }) => type === "change-set");
  assert.deepEqual(exported, (await history()).toReversed());
  assert.equal(exported.length, 3);
});
