import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { detailOf, IMPORTING, importAccount, outcomeOf } from "./support/account-imports.ts";
import { THIS_MACHINE } from "./support/fetching.ts";
import {
  ANN,
  FEED,
  gpodderPaths,
  type OldAction,
  type OtherServer,
  PAGES,
  type Paths,
  play,
  type Received,
  startOther,
  status,
} from "./support/other-servers.ts";
import { start as startProcess } from "./support/process.ts";
import { callServer, startServer, type TestServer, temporaryFolder } from "./support/server.ts";

/** A server without accounts. An hour passes between two imports, so that they are not limited. */
async function start(importLimits: object = {}, environment: Readonly<Record<string, string>> = IMPORTING) {
  let uptime = 0;
  const server = await startServer(environment, undefined, undefined, () => uptime, { importLimits });
  const importFrom = ({ url }: { readonly url: unknown }, more: object = {}, query = "") => {
    uptime += 3_600_000;
    return importAccount(server, { url, ...ANN, ...more }, query);
  };
  const actions = async () => (await server.call("GET", "/api/2/episodes/x.json?since=0")).json.actions;
  const feeds = async () => (await server.call("GET", "/subscriptions/x.json")).json as { url: string }[];
  return { importFrom, actions, feeds, log: server.log, databaseUrl: server.databaseUrl };
}

const shared = await start();
const { importFrom } = shared;
const countsOf = ({ json }: Awaited<ReturnType<typeof importFrom>>) => json.data.attributes;

for (const [name, pages] of Object.entries(PAGES)) {
  test(`account import: pages that are ${name} → every action once, whatever the size of pages and seconds`, async () => {
    for (const [count, perSecond, size] of [
      [0, 1, 10],
      [1, 1, 10],
      [95, 1, 10],
      [95, 3, 10],
      [40, 9, 10],
      [30, 1, 2],
    ] as const) {
      const actions = Array.from({ length: count }, (_, index) => play(index, Math.floor(index / perSecond)));
      const other = await startOther(gpodderPaths({ actions, size, pages }));
      const response = await importFrom(other, {}, "?dryRun=true");
      const found = { found: count, added: count, not_newer: 0, refused: 0 };
      assert.deepEqual(countsOf(response).episode_actions, found, `${count} actions, ${perSecond} a second: ${size}`);
      assert.ok(other.requests.length < 20 + count, `${other.requests.length} requests`);
    }
  });
}

test("account import: a second that fills pages, or a page that never changes → the import ends", async () => {
  const actions = Array.from({ length: 35 }, (_, index) => play(index, index < 25 ? 5 : index));
  const cut = await importFrom(await startOther(gpodderPaths({ actions, size: 10 })));
  assert.equal(countsOf(cut).episode_actions.found, 20, "the last ones are found, not what did not fit");
  const same = { actions: [play(1), play(2)], timestamp: 1_700_000_002 };
  for (const timestamp of [same.timestamp, 0, 5, "1700000002", 4_000_000_000]) {
    const other = await startOther(gpodderPaths({}, { "/api/2/episodes/ann.json": { ...same, timestamp } }));
    assert.equal(countsOf(await importFrom(other, {}, "?dryRun=true")).episode_actions.found, 2, String(timestamp));
    assert.ok(other.requests.length < 15);
  }
});

test("account import: subscriptions as texts, objects or per device → each feed once; removed ones are left out", async () => {
  const [a, b, c] = ["https://a.example/", "https://b.example/", "https://c.example/"] as const;
  const importFeeds = async (paths: Paths) => {
    const other = await startOther(gpodderPaths({}, paths));
    return { found: countsOf(await importFrom(other, {}, "?dryRun=true")).subscriptions, other };
  };
  const list = "/subscriptions/ann.json";
  const all = { found: 3, added: 3, already_subscribed: 0, refused: 0 };
  assert.deepEqual((await importFeeds({ [list]: [a, b, c] })).found, all);
  assert.deepEqual((await importFeeds({ [list]: [a, b, c].map((url) => ({ url, title: "x", feed: 1 })) })).found, all);
  const twice = [a, { url: "http://A.example" }, b, 5, { title: "x" }, "nonsense", null, ["x"]];
  const mixed = { found: 8, added: 2, already_subscribed: 1, refused: 5 };
  assert.deepEqual((await importFeeds({ [list]: twice })).found, mixed);
  // oPodSync
  const removed = await importFeeds({
    [list]: [a, b, c].map((feed) => ({ feed, title: null })),
    "/api/2/subscriptions/ann/phone.json": { add: [a, c], remove: [b], timestamp: 5 },
  });
  assert.deepEqual(removed.found, { ...all, found: 2, added: 2 });
  // PinePods: no list of all, and for some servers a page instead.
  for (const missing of [status(404), status(501), "<!doctype html>"]) {
    const { found, other } = await importFeeds({
      [list]: missing,
      "/api/2/devices/ann.json": [{ id: "phone" }, { id: "tablet & co" }, { caption: "x" }],
      "/api/2/subscriptions/ann/phone.json": { add: [a, b], remove: ["x"], timestamp: 5 },
      "/api/2/subscriptions/ann/tablet%20%26%20co.json": { add: [b, c], remove: [a], timestamp: 5 },
    });
    assert.deepEqual(found, all);
    const paths = other.requests.map(({ url }) => url).filter((url) => url.includes("/subscriptions/ann/"));
    assert.deepEqual(
      paths.map((path) => path.replace(/^.*\?/, "")),
      ["since=0", "since=0"],
    );
  }
});

test("account import: bad values in actions → refused one by one; dates in every form → read", async () => {
  const bad: OldAction[] = [
    play(1, 1, { position: -1 }),
    play(2, 2, { position: "x" }),
    play(3, 3, { podcast: 5 }),
    play(4, 4, { episode: "nowhere" }),
    play(5, 5, { action: "dance" }),
    play(6, 6, { timestamp: "yesterday" }),
    play(7, 7, { timestamp: { deep: true } }),
    null as unknown as OldAction,
    [] as unknown as OldAction,
    "x" as unknown as OldAction,
  ];
  const good: OldAction[] = [
    play(20, 20, { timestamp: "2024-07-01T10:00:00Z" }),
    play(21, 21, { timestamp: "2024-07-01T12:00:00+02:00", started: -1, total: -1 }),
    play(22, 22, { timestamp: 1_719_828_000, position: "22.5" }),
    play(23, 23, { timestamp: "2024-07-01 10:00:00" }),
  ];
  const document = { actions: [...bad, ...good, ...good], timestamp: 1_800_000_000, update_urls: [["a", "b"]] };
  const { importFrom: importHere, actions } = await start();
  const other = await startOther(gpodderPaths({}, { "/api/2/episodes/ann.json": document }));
  const { episode_actions: counts } = countsOf(await importHere(other));
  assert.deepEqual(counts, { found: 14, added: 4, not_newer: 0, refused: 10 });
  for (const each of await actions()) assert.equal(each.timestamp, "2024-07-01T10:00:00");
});

test("account import: several actions for an episode → the newest is added, the others are not newer", async () => {
  const actions = [play(1, 5, { position: 50 }), play(1, 9, { position: 90 }), play(1, 2, { position: 20 })];
  const other = await startOther(gpodderPaths({ actions, pages: PAGES.whole }));
  const here = await start();
  const preview = await here.importFrom(other, {}, "?dryRun=true");
  const { episode_actions: counts } = countsOf(await here.importFrom(other));
  assert.deepEqual(counts, { found: 3, added: 1, not_newer: 2, refused: 0 });
  assert.deepEqual(countsOf(preview).episode_actions, counts);
  assert.deepEqual(
    (await here.actions()).map(({ position }: { position: number }) => position),
    [90],
  );
});

test("account import: where the API is → below the path, at the address of a page, over either API", async () => {
  const below = (prefix: string, paths: Paths) =>
    Object.fromEntries(Object.entries(paths).map(([path, value]) => [prefix + path, value]));
  const paths = gpodderPaths({ actions: [play(1)] });
  const kindAt = async (server: OtherServer, path: string, more = {}) => {
    const response = await importFrom({ url: server.url + path }, more, "?dryRun=true");
    return response.status === 200 ? countsOf(response).kind : outcomeOf(response);
  };
  const root = await startOther(paths);
  for (const path of ["", "/", "/api/2/", "/index.php", "/login?x#y"])
    assert.equal(await kindAt(root, path), "gpodder", path);
  assert.equal(await kindAt(root, "", { kind: "gpodder" }), "gpodder");
  assert.equal(await kindAt(root, "", { kind: "nextcloud" }), "import-no-sync-server");
  assert.equal(await kindAt(root, "/elsewhere"), "import-no-sync-server");
  const sub = await startOther(below("/apps/pods", paths));
  assert.equal(await kindAt(sub, "/apps/pods/"), "gpodder");
  const cloud = {
    "/apps/gpoddersync/subscriptions": { add: [FEED], remove: [], timestamp: 5 },
    "/apps/gpoddersync/episode_action": { actions: [play(1)], timestamp: 1_800_000_000 },
  };
  for (const prefix of ["", "/index.php", "/cloud", "/cloud/index.php"]) {
    const server = await startOther(below(prefix, cloud));
    const address = prefix.replace("/index.php", "");
    assert.equal(await kindAt(server, address), "nextcloud", prefix);
    assert.equal(await kindAt(server, `${address}/index.php/apps/dashboard/`), "nextcloud", prefix);
    assert.equal(await kindAt(server, address, { kind: "gpodder" }), "import-no-sync-server");
  }
});

test("account import: a server that knows users only by their session, as PinePods → signed in and out again", async () => {
  const bySession =
    (document: unknown) =>
    ({ cookie }: Received, response: ServerResponse) =>
      cookie === "sessionid=s-1" ? document : void response.writeHead(400).end('{"error":"Username is required"}');
  const page = PAGES.exclusive([play(1)], 10);
  const other = await startOther(
    gpodderPaths(
      {},
      {
        "GET /api/2/devices/ann.json": bySession([{ id: "phone" }]),
        "/api/2/auth/ann/login.json": ({ authorization }: Received, response: ServerResponse) =>
          void (authorization === undefined
            ? response.writeHead(401).end()
            : response.writeHead(200, { "set-cookie": "sessionid=s-1; Path=/; HttpOnly" }).end("{}")),
        "/subscriptions/ann.json": "<!doctype html>",
        "/api/2/subscriptions/ann/phone.json": bySession({ add: [FEED], remove: [], timestamp: 1 }),
        "/api/2/episodes/ann.json": (request: Received, response: ServerResponse) =>
          bySession(page(Number(new URL(request.url, "http://x").searchParams.get("since"))))(request, response),
      },
    ),
    true,
  );
  const attributes = countsOf(await importFrom(other));
  assert.deepEqual([attributes.subscriptions.found, attributes.episode_actions.found], [1, 1]);
  const last = other.requests.at(-1);
  assert.deepEqual([last?.method, last?.url, last?.cookie], ["POST", "/api/2/auth/ann/logout.json", "sessionid=s-1"]);
});

test("account import: the first request has no password, and no other host gets one", async () => {
  const other = await startOther(gpodderPaths({ actions: [play(1)] }));
  await importFrom(other);
  const passwords = other.requests.map(({ authorization }) => authorization !== undefined);
  assert.deepEqual(passwords.slice(0, 2), [false, true]);
  for (const { url, body } of other.requests) assert.ok(!url.includes("correct") && !body.includes("correct"));
  const file = /^file:(.*)/.exec(shared.databaseUrl)?.[1];
  assert.ok(file === undefined || existsSync(file), file);
  for (const each of file === undefined ? [] : [file, `${file}-wal`])
    if (existsSync(each))
      for (const secret of [ANN.password, btoa(`ann:${ANN.password}`)])
        assert.ok(!readFileSync(each).includes(secret), each);
  const elsewhere = await startOther({ "*": status(200) });
  const location = `${elsewhere.url.replace("127.0.0.1", "127.0.0.2")}/gpodder`;
  const moved = await startOther({
    "*": ({ url }: Received, response: ServerResponse) =>
      void response.writeHead(302, { location: location + url }).end(),
  });
  const response = await importFrom(moved);
  assert.equal(outcomeOf(response), "import-server-failed");
  assert.match(
    detailOf(response),
    new RegExp(`redirects to ${location.replaceAll(".", "\\.")}\\. .*enter this address`),
  );
  assert.deepEqual(elsewhere.requests, []);
  // After the sign-in, too.
  const late = await startOther(
    gpodderPaths({}, { "/api/2/episodes/ann.json": status(302, { location: `${elsewhere.url}/x` }) }),
  );
  assert.equal(outcomeOf(await importFrom(late)), "import-server-failed");
  assert.deepEqual(elsewhere.requests, []);
  assert.deepEqual(
    moved.requests.filter(({ authorization }) => authorization !== undefined),
    [],
  );
});

test("account import: a redirect on the same host → followed, and the server is there", async () => {
  const paths = gpodderPaths({ actions: [play(1)] });
  const other = await startOther({});
  for (const [path, value] of Object.entries(paths)) other.paths[`/new${path}`] = value;
  for (const path of Object.keys(paths)) other.paths[path] = undefined;
  other.paths["/api/2/devices/ann.json"] = undefined;
  const moved = await startOther(
    {
      ...Object.fromEntries(Object.entries(paths).map(([path, value]) => [`/new${path}`, value])),
      "GET /api/2/devices/ann.json": status(301, { location: "/new/api/2/devices/ann.json" }),
    },
    true,
  );
  assert.equal(countsOf(await importFrom(moved, {}, "?dryRun=true")).episode_actions.found, 1);
  assert.ok(moved.requests.slice(1).every(({ url }) => url.startsWith("/new/")));
});

test("account import: what the other server does wrong → a code for each, and nothing is written", async () => {
  const actions = "/api/2/episodes/ann.json";
  const here = await start({ responseMs: 1_500 });
  let calls = 0;
  const deep = `{"actions":[${"[".repeat(100_000)}`;
  const cases: readonly (readonly [paths: Paths, code: string, detail: RegExp])[] = [
    [{ "*": "<!doctype html><title>Hello" }, "import-no-sync-server", /address that your podcast app syncs with/],
    [{}, "import-no-sync-server", /GPodder Sync/],
    [{ "*": status(500) }, "import-server-failed", /the error 500/],
    [{ "*": status(503) }, "import-server-failed", /the error 503/],
    [{ "*": status(429) }, "import-server-failed", /the error 429/],
    [{ "*": status(401) }, "import-sign-in-failed", /user name and password/],
    [{ "*": status(403) }, "import-server-failed", /the error 403/],
    [gpodderPaths({}, { [actions]: status(500) }), "import-server-failed", /the error 500/],
    [gpodderPaths({}, { [actions]: status(404) }), "import-server-failed", /the error 404/],
    [gpodderPaths({}, { [actions]: status(401) }), "import-sign-in-failed", /user name and password/],
    [gpodderPaths({}, { [actions]: "<!doctype html>" }), "import-server-failed", /not what its API describes/],
    [gpodderPaths({}, { [actions]: [] }), "import-server-failed", /not what its API describes/],
    [gpodderPaths({}, { [actions]: { actions: {}, timestamp: 1 } }), "import-server-failed", /not what its API/],
    [gpodderPaths({}, { [actions]: { actions: [] } }), "import-server-failed", /not what its API describes/],
    [gpodderPaths({}, { [actions]: { actions: [], timestamp: -5 } }), "import-server-failed", /not what its API/],
    [gpodderPaths({}, { [actions]: { actions: [], timestamp: {} } }), "import-server-failed", /not what its API/],
    [gpodderPaths({}, { [actions]: '{"actions":[' }), "import-server-failed", /not what its API describes/],
    [gpodderPaths({}, { [actions]: deep }), "import-server-failed", /not what its API describes/],
    [gpodderPaths({}, { "/subscriptions/ann.json": { add: [] } }), "import-server-failed", /not what its API/],
    [gpodderPaths({}, { "/subscriptions/ann.json": status(500) }), "import-server-failed", /the error 500/],
    [gpodderPaths({}, { [actions]: status(302, { location: "javascript:1" }) }), "import-server-failed", /not what/],
    [
      gpodderPaths(
        {},
        {
          // Works once.
          [actions]: (_: Received, response: ServerResponse) => {
            calls += 1;
            return calls > 1 ? void response.writeHead(401).end() : { actions: [play(1)], timestamp: 1_800_000_000 };
          },
        },
      ),
      "import-sign-in-failed",
      /user name and password/,
    ],
    [
      gpodderPaths(
        {},
        {
          // A byte a second.
          [actions]: (_: Received, response: ServerResponse) => {
            response.writeHead(200).flushHeaders();
            const timer = setInterval(() => response.write(" "), 1_000);
            response.on("close", () => clearInterval(timer));
          },
        },
      ),
      "import-server-failed",
      /does not respond/,
    ],
    [gpodderPaths({}, { [actions]: () => undefined }), "import-server-failed", /does not respond/],
    [
      gpodderPaths(
        {},
        {
          [actions]: (_: Received, response: ServerResponse) =>
            void response.writeHead(200, { "content-length": 100 }).end('{"actions"'),
        },
      ),
      "import-server-failed",
      /does not respond/,
    ],
  ];
  for (const [paths, code, detail] of cases) {
    const other = await startOther(paths);
    const response = await here.importFrom(other);
    assert.deepEqual([response.status, outcomeOf(response)], [422, code], detail.source);
    assert.match(detailOf(response), detail);
    assert.deepEqual([await here.feeds(), await here.actions()], [[], []]);
  }
  for (const secret of [ANN.password, btoa(`ann:${ANN.password}`), "127.0.0.1:", FEED])
    assert.ok(
      !here
        .log()
        .replaceAll(/"url":"[^"]*"/g, "")
        .includes(secret),
      secret,
    );
});

test("account import: more than the limits → import-too-large, and nothing is written", async () => {
  const feeds = Array.from({ length: 20 }, (_, index) => `https://a.example/${index}`);
  const actions = Array.from({ length: 20 }, (_, index) => play(index));
  const blanks = (_: Received, response: ServerResponse) => {
    // 200 MB
    let left = 3_200;
    const blank = Buffer.alloc(65_536, " ");
    const write = () => {
      while (left > 0 && !response.destroyed) {
        left -= 1;
        if (!response.write(blank)) return;
      }
      response.end("[]");
    };
    response.on("drain", write);
    write();
  };
  for (const [limits, paths, detail] of [
    [{ subscriptions: 19 }, {}, /more than 50,000 subscriptions/],
    [{ actions: 19 }, {}, /more than 200,000 episode actions/],
    [{ requests: 3 }, {}, /more than 1,000 requests/],
    [{ items: 40 }, {}, /more than 1,000,000 entries/],
    [{ bytes: 1_000 }, {}, /more than 256 MiB/],
    [{ responseBytes: 500 }, {}, /longer than 64 MiB/],
    [{}, { "/subscriptions/ann.json": blanks }, /longer than 64 MiB/],
    [{ totalMs: 500 }, { "/subscriptions/ann.json": () => undefined }, /longer than 10 minutes/],
  ] as const) {
    const here = await start(limits);
    const response = await here.importFrom(await startOther(gpodderPaths({ feeds, actions }, paths)));
    assert.equal(outcomeOf(response), "import-too-large", detail.source);
    assert.match(detailOf(response), detail);
    assert.deepEqual([await here.feeds(), await here.actions()], [[], []]);
  }
});

test("account import: a private address → refused without a connection; others that fail → one text", async () => {
  const other = await startOther(gpodderPaths());
  const outside = await start({}, { EARMARK_FETCH_FEEDS: "true" });
  for (const url of [other.url, other.url.replace("127.0.0.1", "localhost"), "http://10.0.0.1", "http://[::1]:8080"]) {
    const response = await outside.importFrom({ url });
    assert.equal(outcomeOf(response), "import-address-private", url);
    assert.match(detailOf(response), /EARMARK_FETCH_NETWORKS/);
  }
  assert.deepEqual(other.requests, []);
  const here = await start({ responseMs: 500 });
  const closed = await startOther({});
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  const garbage = createServer((socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n")).listen(0, "127.0.0.1");
  after(() => [silent, garbage].map((each) => each.close()));
  await new Promise((resolve) => garbage.once("listening", resolve));
  const portOf = (server: typeof silent) => (server.address() as { port: number }).port;
  const details = [];
  for (const url of [
    // Nothing listens there.
    closed.url.replace(/127\.0\.0\.1:.*/, "127.0.0.9:59999"),
    `http://127.0.0.1:${portOf(silent)}`,
    `http://127.0.0.1:${portOf(garbage)}`,
    "http://nothing.invalid",
  ]) {
    const response = await here.importFrom({ url });
    assert.equal(outcomeOf(response), "import-server-failed", url);
    details.push(detailOf(response));
  }
  assert.equal(new Set(details).size, 1);
});

test("account import: an invalid address → import-url-invalid; an invalid document → its pointer", async () => {
  for (const url of [
    "",
    "x",
    "gpodder.net",
    "ftp://a.example",
    "https://ann:pw@a.example",
    "http://",
    "http://a.example:25",
    "//x",
  ])
    assert.equal(outcomeOf(await importFrom({ url })), "import-url-invalid", url);
  const other = await startOther(gpodderPaths());
  for (const [attributes, code, pointer] of [
    [{ url: 5 }, "invalid-attribute", "/data/attributes/url"],
    [{ kind: "earmark" }, "invalid-attribute", "/data/attributes/kind"],
    [{ kind: 1 }, "invalid-attribute", "/data/attributes/kind"],
    [{ user_name: undefined }, "attribute-missing", "/data/attributes"],
    [{ user_name: "a:b" }, "invalid-attribute", "/data/attributes/user_name"],
    [{ password: undefined }, "attribute-missing", "/data/attributes"],
    [{ password: "a\nb" }, "invalid-attribute", "/data/attributes/password"],
    [{ login: "x" }, "invalid-attribute", "/data/attributes/user_name"],
    [{ login: "x", user_name: undefined, password: undefined }, "import-login-expired", "/data/attributes/login"],
  ] as const) {
    const response = await importFrom(other, attributes);
    assert.deepEqual([response.status, outcomeOf(response)], [422, code], JSON.stringify(attributes));
    assert.equal(response.json.errors[0].source.pointer, pointer);
  }
  assert.equal(outcomeOf(await importFrom(other, {}, "?dryRun=maybe")), "invalid-query");
  assert.deepEqual(other.requests, []);
});

test("account import: http redirects to https of the host → the password is sent there only", async () => {
  const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
  const received: string[] = [];
  const paths = gpodderPaths({ feeds: [FEED] }) as Record<string, unknown>;
  const secure = createSecureServer(
    { key: readFileSync(fixture("localhost.key")), cert: readFileSync(fixture("localhost.crt")) },
    ({ url = "", headers }, response) => {
      received.push(headers.authorization === undefined ? "without" : "with");
      if (headers.authorization === undefined) response.writeHead(401).end();
      else if (url.includes("/episodes/")) response.end('{"actions":[],"timestamp":0}');
      else response.end(JSON.stringify(paths[url] ?? []));
    },
  ).listen(0);
  after(() => secure.close());
  await once(secure, "listening");
  const target = `https://localhost:${(secure.address() as AddressInfo).port}`;
  const plain = await startOther(
    {
      "*": ({ url }: Received, response: ServerResponse) =>
        void response.writeHead(301, { location: target + url }).end(),
    },
    true,
  );
  const account = { url: plain.url.replace("127.0.0.1", "localhost"), ...ANN };
  const settings = {
    DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    EARMARK_FETCH_NETWORKS: `${THIS_MACHINE},::1`,
  };
  const importWith = async (environment: Readonly<Record<string, string>>) => {
    const { port } = await startProcess({ ...settings, ...environment });
    const call: TestServer["call"] = (method, path, options) => callServer(port, method, path, options);
    return importAccount({ port, call }, account, "?dryRun=true");
  };
  const untrusted = await importWith({});
  assert.equal(outcomeOf(untrusted), "import-server-failed");
  assert.match(detailOf(untrusted), /TLS certificate is not valid, so no password was sent/);
  assert.deepEqual(received, []);
  const trusted = await importWith({
    NODE_EXTRA_CA_CERTS: fixture("localhost.crt"),
    DATABASE_URL: `${settings.DATABASE_URL}2`,
  });
  assert.equal(trusted.status, 200, trusted.text);
  assert.equal(trusted.json.data.attributes.subscriptions.found, 1);
  assert.equal(received[0], "without");
  assert.ok(received.slice(1).every((each) => each === "with"));
  assert.ok(plain.requests.every(({ authorization }) => authorization === undefined));
});
