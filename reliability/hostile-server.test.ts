import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { after, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Client, type ClientOptions, createClient, EarmarkError, NetworkError } from "../client/src/index.ts";
import { runInProcess } from "../test/support/commands.ts";
import { listen } from "../test/support/listen.ts";
import { run } from "../test/support/process.ts";

/** Terminal control sequences, bidirectional controls and invisible characters. */
const HOSTILE = "\x1b[2J\x07\x9b31m\u202egpj.exe\u2066\u200b\u{e0041}\u2028";
const CONTROLS = /[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Zl}\p{DI}]/u;
const MIB = 1_048_576;

const resource = (index: number, feed = `https://a.example/${index}`) => ({
  type: "subscription",
  id: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
  attributes: { feed_url: feed, user_subscribed_at: "2026-01-01T00:00:00.000Z" },
});

interface Links {
  readonly prev?: string | null;
  readonly next?: string | null;
}

const page = (data: readonly object[], { prev = null, next = null }: Links = {}, total = data.length) =>
  JSON.stringify({ data, links: { prev, next }, meta: { total } });

const me = (limits: object) =>
  JSON.stringify({ data: { attributes: { name: "x" } }, meta: { counts: { subscriptions: 0 }, limits } });

/** A client of a fake server that returns these bodies, and the number of requests so far. */
function clientOf(respond: (path: string, requests: number) => string, options: Partial<ClientOptions> = {}) {
  let requests = 0;
  const fetch = async (url: string) => {
    requests += 1;
    return new Response(respond(new URL(url).pathname, requests));
  };
  const client = createClient({ url: "http://127.0.0.1", retries: 0, fetch, ...options });
  return { client, requests: () => requests };
}

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    (value) => assert.fail(`should have failed, but returned ${JSON.stringify(value)}`),
    (error) => error,
  );
}

const titleOf = async (call: Promise<unknown>) => {
  const failure = await failureOf(call);
  assert.ok(failure instanceof EarmarkError, String(failure));
  return failure.title;
};

async function readAll(client: Client): Promise<number> {
  let count = 0;
  for await (const _ of client.subscriptions()) count += 1;
  return count;
}

/** Sends up to `max` MiB as fast as the client reads. Resolves to the MiB sent when the connection is closed. */
async function flood(response: ServerResponse, max: number, start = ""): Promise<number> {
  let sent = 0;
  const chunks = function* () {
    yield start;
    for (; sent < max; sent += 1) yield "x".repeat(MIB);
  };
  Readable.from(chunks()).pipe(response);
  await once(response, "close");
  return sent;
}

describe("client with a hostile server", () => {
  for (const status of [200, 404, 500]) {
    test(`client: endless response with status ${status} → Response Too Large`, async () => {
      const sent: Promise<number>[] = [];
      const url = await listen((_, response) => {
        response.writeHead(status);
        sent.push(flood(response, 256));
      });
      const client = createClient({ url, retries: 0 });
      assert.equal(await titleOf(client.me()), "Response Too Large");
      assert.ok(((await sent[0]) ?? 256) < 64);
      const small = createClient({ url, retries: 0, maxResponseBytes: MIB });
      const calls = [small.exportOpml(), small.exportAccount(), small.importOpml(""), small.get("x")];
      assert.deepEqual(new Set(await Promise.all(calls.map(titleOf))), new Set(["Response Too Large"]));
    });
  }

  test("client: compressed response that expands beyond the limit → Response Too Large", async () => {
    const bomb = gzipSync(Buffer.alloc(32 * MIB));
    assert.ok(bomb.length < MIB);
    const url = await listen((_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb));
    assert.equal(await titleOf(createClient({ url, retries: 0 }).me()), "Response Too Large");
  });

  test("client: export larger than the limit of other responses → complete", async () => {
    const url = await listen((_, response) => void flood(response, 20));
    assert.equal((await createClient({ url }).exportOpml()).length, 20 * MIB);
  });

  test("client: no response, or one byte at a time → timeout", async () => {
    const timers: NodeJS.Timeout[] = [];
    after(() => timers.forEach(clearInterval));
    const url = await listen(({ url: path }, response) => {
      if (path === "/v1/me") timers.push(setInterval(() => response.write(" "), 20));
    });
    const client = createClient({ url, retries: 1, timeoutMs: 200, onRetry: () => (retries += 1) });
    let retries = 0;
    for (const call of [() => client.me(), () => client.exportOpml()]) {
      const failure = await failureOf(call());
      assert.ok(failure instanceof NetworkError, String(failure));
      assert.equal((failure.cause as Error).name, "TimeoutError");
    }
    assert.equal(retries, 2);
  });

  test("client: page that links to itself, or repeats items → Endless List", async () => {
    for (const next of [
      () => "?page[number]=1&page[size]=100",
      (requests: number) => `?page[number]=${requests + 1}`,
    ]) {
      const first = [resource(1), resource(2)];
      const list = clientOf((_, requests) => page(first, { next: next(requests) }));
      assert.equal(await titleOf(readAll(list.client)), "Endless List");
      assert.equal(list.requests(), 2);
      const tokens = clientOf((_, requests) => page(first, { next: next(requests) }));
      assert.equal(await titleOf(tokens.client.tokens()), "Endless List");
      assert.equal(tokens.requests(), 2);
    }
    const empty = clientOf((_, requests) => page([], { next: `?${requests}` }));
    assert.equal(await titleOf(readAll(empty.client)), "Endless List");
    assert.equal(empty.requests(), 1);
  });

  test("client: pages that lead back and forth → Endless List", async () => {
    const { client, requests } = clientOf((_, requests) =>
      page([resource(requests % 2)], { prev: `?${requests}`, next: `?${requests}` }, 3 - (requests % 3)),
    );
    assert.equal(await titleOf(readAll(client)), "Endless List");
    assert.ok(requests() <= 30_000, String(requests()));
  });

  test("client: endless list of new items → Endless List after a million", async () => {
    const items = Array.from({ length: 20_000 }, (_, index) => ({ id: `REQUEST-${index}`, attributes: {} }));
    const text = page(items, { next: "?REQUEST" });
    const { client } = clientOf((_, requests) => text.replaceAll("REQUEST", String(requests)));
    assert.equal(await titleOf(client.tokens()), "Endless List");
  });

  test("client: limits that are not numbers → each feed is sent once", async () => {
    for (const [limits, wanted] of [
      [{}, 2],
      [{ operations_per_request: "many", body_bytes: null }, 4],
      [{ operations_per_request: -5 }, 4],
    ] as const) {
      const { client, requests } = clientOf((path) =>
        path === "/v1/me" ? me(limits) : JSON.stringify({ "atomic:results": [{ data: resource(1) }] }),
      );
      const results = await client.subscribe(["https://a.example/1", "https://a.example/2", "https://a.example/3"]);
      assert.deepEqual([results.length, requests()], [3, wanted]);
    }
  });

  test("client: values of the wrong type → Invalid Response", async () => {
    const { id, attributes } = resource(1);
    for (const item of [
      { id: "x".repeat(1_000), attributes },
      { id: { toString: 1 }, attributes },
      { id, attributes: { ...attributes, feed_url: ["https://a.example/"] } },
      { id, attributes: { ...attributes, user_subscribed_at: "never" } },
    ]) {
      assert.equal(await titleOf(clientOf(() => page([item])).client.page()), "Invalid Response");
    }
  });

  test("client: redirect to another origin → not followed, the token is not sent", async () => {
    let visits = 0;
    const other = await listen((_, response) => {
      visits += 1;
      response.end("{}");
    });
    for (const status of [301, 302, 303, 307, 308]) {
      const url = await listen((_, response) => response.writeHead(status, { location: other }).end());
      const client = createClient({ url, token: "emk_secret" });
      for (const call of [() => client.me(), () => client.remove("x"), () => client.importOpml("")])
        assert.equal(((await failureOf(call())) as EarmarkError).status, status);
    }
    assert.equal(visits, 0);
  });

  test("client: Retry-After too long or not a number → fails at once, or waits as usual", async () => {
    for (const [after, retries] of [
      ["86400", 0],
      ["1e999", 0],
      ["Fri, 31 Dec 9999 23:59:59 GMT", 0],
      ["-1", 1],
      ["soon", 1],
    ] as const) {
      const url = await listen((_, response) => response.writeHead(503, { "retry-after": after }).end());
      const waits: number[] = [];
      const client = createClient({ url, retries: 1, onRetry: ({ delayMs }) => waits.push(delayMs) });
      assert.equal(((await failureOf(client.me())) as EarmarkError).status, 503);
      assert.equal(waits.length, retries, after);
      assert.ok(waits.every((ms) => ms <= 500));
    }
  });
});

describe("command line with a hostile server", () => {
  const serve = (replies: Readonly<Record<string, string | readonly [status: number, body: string]>>) =>
    listen(({ url = "" }, response) => {
      const reply = replies[url.replace(/\?.*/, "")] ?? [404, ""];
      const [status, body] = typeof reply === "string" ? [200, reply] : reply;
      response.writeHead(status).end(body);
    });
  const FEED = `https://a.example/${HOSTILE}`;
  const LIST = { "/v1/subscriptions": page([resource(1, FEED)]) };

  test("list: control characters in a feed URL → replaced, and escaped in JSON", async () => {
    const url = await serve(LIST);
    const { code, stdout } = await runInProcess(["list", "--server", url]);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, CONTROLS);
    assert.match(stdout, /^NAME\t[^\n]*\n\t\t\thttps:\/\/a\.example\/�\[2J[^\n]*\n$/);
    const json = (await runInProcess(["list", "--json", "--server", url])).stdout;
    assert.match(json, /^[ -~]+\n$/);
    assert.equal(JSON.parse(json).feed_url, FEED);
  });

  test("remove: control characters in a feed URL → replaced in prompt and output", async () => {
    const url = await serve({
      [`/v1/subscriptions/${resource(1).id}`]: JSON.stringify({ data: resource(1, FEED) }),
      "/v1/operations": JSON.stringify({ "atomic:results": [{ data: null }] }),
    });
    for (const options of [[], ["--yes"]]) {
      const { stderr } = await runInProcess(["remove", resource(1).id, "--server", url, ...options]);
      assert.match(stderr, /https:\/\/a\.example\/�\[2J/);
      assert.doesNotMatch(stderr, CONTROLS);
    }
  });

  test("any command: control characters and line breaks in an error → replaced", async () => {
    const errors = [
      { status: "403", title: `T${HOSTILE}`, detail: `D${HOSTILE}\nearmark: All is well.${"x".repeat(MIB)}` },
    ];
    const url = await serve({ "/v1/subscriptions": [403, JSON.stringify({ errors })] });
    const { code, stderr } = await runInProcess(["list", "--server", url]);
    assert.equal(code, 1);
    assert.match(stderr, /^earmark: The server returned an error: 403 T�\[2J.*: D�.*�earmark: All is well.*\n$/);
    assert.doesNotMatch(stderr, CONTROLS);
    assert.ok(stderr.length < 2_000);
  });

  test("add: control characters in a result → replaced", async () => {
    const error = { status: "422", title: "Validation Failed", detail: `no ${HOSTILE}\nadded\thttps://a.example/` };
    const url = await serve({
      "/v1/me": me({ operations_per_request: 10, body_bytes: 1_000 }),
      "/v1/operations": JSON.stringify({ "atomic:results": [{ errors: [error] }] }),
    });
    const { stdout } = await runInProcess(["add", FEED, "--server", url]);
    assert.match(stdout, /^refused\thttps:\/\/a\.example\/�[^\n\t]*\tno �[^\n\t]*�added�[^\n\t]*\n$/);
    assert.doesNotMatch(stdout, CONTROLS);
  });

  test("export: not an OPML file, or control characters → rejected", async () => {
    for (const body of [
      "\x1b]0;title\x07<opml></opml>",
      "rm -rf ~ # <opml>",
      '<opml version="2.0"><body><outline text="\x1b[2J"/></body></opml>',
      '<?xml version="1.0"?><opml><head><title>\x9b31m</title></head></opml>',
      "<opml>\0</opml>",
    ]) {
      const { code, stdout, stderr } = await runInProcess([
        "export",
        "--server",
        await serve({ "/v1/subscriptions.opml": body }),
      ]);
      assert.deepEqual([code, stdout], [1, ""], body);
      assert.match(stderr, /did not return an OPML file/);
    }
    const fine = `<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0"><body><outline xmlUrl="https://a.example/\u202e"/></body></opml>\n`;
    const { stdout } = await runInProcess(["export", "--server", await serve({ "/v1/subscriptions.opml": fine })]);
    assert.equal(stdout, fine, "other characters are kept");
  });

  test("export: endless response → rejected", async () => {
    const url = await listen((_, response) => void flood(response, 512, "<opml>"));
    const { code, stdout, stderr } = await run(["export", "--server", url]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /Response Too Large/);
  });
});
