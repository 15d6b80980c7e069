import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asNewUser } from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, newId, PLAIN, startServer, type TestServer } from "../../../test/support/server.ts";
import { LOCAL_USER } from "../../accounts/caller.ts";
import { stateAtSequence } from "../../lists/state.ts";

const shared = await startServer({ EARMARK_ACCOUNTS: "true" });
const feed = () => `https://feeds.example/${newId()}`;
const remove = ({ call }: TestServer, id: string) => call("DELETE", `/v1/subscriptions/${id}`);

async function bulk({ call }: TestServer, ...operations: readonly object[]) {
  const body = JSON.stringify({ "atomic:operations": operations });
  return (await call("POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body })).json;
}

async function changes({ call }: TestServer, after?: string, size?: number) {
  const query = [after && `page[after]=${after}`, size && `page[size]=${size}`].filter(Boolean).join("&");
  const response = await call("GET", `/v1/changes?${query}`);
  assert.equal(response.status, 200, response.text);
  return response.json;
}

/** A client's copy of a list, brought up to date as docs/api.md says. */
class Copy {
  readonly items = new Map<string, string>();
  state: string | undefined;

  async read(server: TestServer, size?: number): Promise<boolean> {
    const { data, meta } = await changes(server, this.state, size);
    for (const { id } of meta.removed) this.items.delete(id);
    for (const { id, attributes } of data) this.items.set(id, attributes.feed_url);
    this.state = meta.state;
    return meta.has_more;
  }

  async assertEqual(server: TestServer, size?: number): Promise<void> {
    while (await this.read(server, size));
    const { data } = (await server.call("GET", "/v1/subscriptions?page[size]=100")).json;
    const listed = data.map(({ id, attributes }: { id: string; attributes: { feed_url: string } }) => [
      id,
      attributes.feed_url,
    ]);
    assert.deepEqual([...this.items].sort(), listed.sort());
  }
}

describe("state", () => {
  test("list, /v1/me and changes without a write in between → the same", async () => {
    const server = await asNewUser(shared);
    const empty = (await server.call("GET", "/v1/subscriptions")).json.meta.state;
    const { meta } = await bulk(server, add(newId(), feed()), add("1", feed()));
    assert.equal(meta.state_before, empty);
    assert.notEqual(meta.state, empty);
    const list = await server.call("GET", "/v1/subscriptions?page[number]=9");
    assert.deepEqual(list.json.meta, { total: 1, state: meta.state });
    assert.equal(list.headers["etag"], `"${meta.state}"`);
    assert.equal((await server.call("GET", "/v1/me")).json.meta.state, meta.state);
    assert.equal((await changes(server)).meta.state, meta.state);
  });

  test("writes → each starts from the state in which the previous one ended; nothing changed → the same before and after", async () => {
    const server = await asNewUser(shared);
    const id = newId();
    const body = JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url: feed() } } });
    const opml = `<opml version="2.0"><body><outline xmlUrl="${feed()}"/></body></opml>`;
    const send = (type: string, path: string, text: string, method = "POST") =>
      server.call(method, path, { headers: { "Content-Type": type }, body: text });
    const renamed = JSON.stringify({ data: { type: "subscription", id, attributes: { title: "T" } } });
    const rename = async () => (await send(PLAIN, `/v1/subscriptions/${id}`, renamed, "PATCH")).json.meta;
    const metas = [
      (await bulk(server, add(newId(), feed()))).meta,
      await bulk(server, add("1", "")).then(({ meta }) => meta),
      (await send(PLAIN, "/v1/subscriptions", body)).json.meta,
      await rename(),
      await rename(),
      (await bulk(server, add(newId(), "https://feeds.example/x"), add(newId(), "https://feeds.example/x"))).meta,
      (await bulk(server, { op: "remove", ref: { type: "subscription", id } })).meta,
      (await send("text/x-opml", "/v1/imports", opml)).json.meta,
      (await send("text/x-opml", "/v1/imports", opml)).json.meta,
      (await send("text/x-opml", "/v1/imports", "<opml><body><outline xmlUrl='x:'/></body></opml>")).json.meta,
    ];
    for (const [index, { state_before }] of metas.slice(1).entries()) assert.equal(state_before, metas[index].state);
    const isChanged = metas.map(({ state, state_before }) => state !== state_before);
    assert.deepEqual(isChanged, [true, false, true, true, false, true, true, true, false, false]);
    const preview = await send("text/x-opml", "/v1/imports?dryRun=true", opml);
    assert.deepEqual(Object.keys(preview.json.meta), ["dry_run", "counts", "reasons"]);
  });

  test("import with other writes in between → its state does not cover them", async () => {
    const server = await asNewUser(shared);
    const outlines = Array.from({ length: 1_000 }, () => `<outline xmlUrl="${feed()}"/>`).join("");
    const importing = server.call("POST", "/v1/imports", {
      headers: { "Content-Type": "text/x-opml" },
      body: `<opml version="2.0"><body>${outlines}</body></opml>`,
    });
    let isDone = false;
    void importing.finally(() => {
      isDone = true;
    });
    const others: string[] = [];
    while (!isDone) {
      const id = newId();
      await bulk(server, add(id, feed()));
      others.push(id);
    }
    const { meta } = (await importing).json;
    const idsAfter = async (state: string) => {
      const { data } = await changes(server, state, 1_000);
      return data.map(({ id }: { id: string }) => id);
    };
    const later = new Set(await idsAfter(meta.state));
    assert.ok(later.size > 0, "no other write came between two transactions of the import");
    const covered = (await idsAfter(meta.state_before)).filter((id: string) => !later.has(id));
    assert.deepEqual(
      covered.filter((id: string) => others.includes(id)),
      [],
    );
  });

  test("If-None-Match: the current state, also weak or among others → 304 without a body; else 200", async () => {
    const server = await asNewUser(shared);
    await bulk(server, add(newId(), feed()));
    const { headers } = await server.call("GET", "/v1/subscriptions");
    const tag = String(headers["etag"]);
    const ask = (known: string) =>
      server.call("GET", "/v1/subscriptions?page[size]=1", { headers: { "If-None-Match": known } });
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
      const response = await ask(known);
      assert.deepEqual([response.status, response.text, response.headers["etag"]], [304, "", tag], known);
    }
    for (const known of ['"x"', tag.slice(1, -1), ""]) assert.equal((await ask(known)).status, 200, known);
    await bulk(server, add(newId(), feed()));
    assert.equal((await ask(tag)).status, 200);
  });
});

describe("changes", () => {
  test("add, remove and add again, in pages of one → each subscription once, and the copy matches the list", async () => {
    const server = await asNewUser(shared);
    const [a, b, c] = [newId(), newId(), newId()];
    const [one, two, three] = [feed(), feed(), feed()];
    const copy = new Copy();
    await bulk(server, add(a, one), add(b, two), add(c, three));
    await copy.assertEqual(server, 1);
    const start = copy.state;
    await remove(server, a);
    await remove(server, b);
    // One under the same id, one under another.
    await bulk(server, add(a, one), add(newId(), two), add(newId(), feed()));
    const { data, meta } = await changes(server, start);
    assert.equal(data.length, 3);
    assert.deepEqual(meta.removed, [{ id: b }]);
    await copy.assertEqual(server, 1);
    assert.deepEqual((await changes(server, copy.state)).meta, { removed: [], state: copy.state, has_more: false });
  });

  test("writes between pages → the copy matches the list", async () => {
    const server = await asNewUser(shared);
    const ids = Array.from({ length: 20 }, newId);
    await bulk(server, ...ids.map((id) => add(id, feed())));
    const copy = new Copy();
    for (const id of ids.slice(0, 10)) {
      await copy.read(server, 2);
      await remove(server, id);
      await bulk(server, add(newId(), feed()));
    }
    await copy.assertEqual(server, 3);
  });

  test("links.next → the next page, null on the last", async () => {
    const server = await startServer({ EARMARK_BASE_PATH: "/pods" });
    await bulk(
      { ...server, call: (method, path, options) => server.call(method, `/pods${path}`, options) },
      add(newId(), feed()),
      add(newId(), feed()),
    );
    const first = (await server.call("GET", "/pods/v1/changes?page[size]=1")).json;
    assert.equal(first.links.next, `/pods/v1/changes?page[after]=${first.meta.state}&page[size]=1`);
    const second = (await server.call("GET", first.links.next)).json;
    assert.deepEqual([second.data.length, second.links.next, second.meta.has_more], [1, null, false]);
  });

  test("a malformed state, or a size out of range → 400 that names the parameter", async () => {
    const server = await asNewUser(shared);
    const state: string = (await changes(server)).meta.state;
    const invalid: [string, string][] = [
      ...["", "x", state.slice(1), `${state}A`, `${state.slice(0, 35)}=`, `${state.slice(0, 35)}%2F`].map(
        (text): [string, string] => ["page[after]", text],
      ),
      ...["0", "1001", "-1", "1.5", "x", ""].map((text): [string, string] => ["page[size]", text]),
      ["page[number]", "1"],
      ["since", state],
    ];
    for (const [parameter, value] of invalid) {
      const { status, json } = await server.call("GET", `/v1/changes?${parameter}=${value}`);
      assert.deepEqual(
        [status, json.errors[0].code, json.errors[0].source],
        [400, "invalid-query", { parameter }],
        value,
      );
    }
  });

  test("a state of another user or server, from the future, or made up → 410", async () => {
    const [server, other] = [await startServer(), await startServer()];
    await bulk(server, add(newId(), feed()));
    await bulk(other, add(newId(), feed()));
    const { epoch } = server.store;
    const state: string = (await changes(server)).meta.state;
    assert.equal(stateAtSequence(epoch, LOCAL_USER, 1), state);
    const expired = [
      (await changes(other)).meta.state,
      stateAtSequence(epoch, LOCAL_USER + 1, 1),
      stateAtSequence(epoch, LOCAL_USER, 2),
      stateAtSequence(epoch, LOCAL_USER, 2 ** 48 - 1),
      `B${state.slice(1)}`,
      "A".repeat(36),
      "_".repeat(36),
    ];
    for (const text of expired) {
      const { status, json } = await server.call("GET", `/v1/changes?page[after]=${text}`);
      assert.deepEqual([status, json.errors[0].code], [410, "state-expired"], text);
    }
  });

  test("removals no longer stored → 410 for earlier states, and a first sync in pages works", async () => {
    const server = await asNewUser(shared);
    const ids = Array.from({ length: 6 }, newId);
    await bulk(server, ...ids.map((id) => add(id, feed())));
    const { state } = (await changes(server)).meta;
    await remove(server, ids[1] ?? "");
    await server.store.forgetRemovals(new Date(Date.now() + 60_000));
    assert.equal((await server.call("GET", `/v1/changes?page[after]=${state}`)).status, 410);
    await new Copy().assertEqual(server, 2);
  });
});
