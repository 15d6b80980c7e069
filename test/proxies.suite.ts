import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, request as requestPlain } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { delimiter, join } from "node:path";
import { after, suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readConfig } from "../src/config.ts";
import { type Answer, ATOMIC, add, callServer, newId, PLAIN, temporaryFolder } from "./harness.ts";
import { type RunningServer, start } from "./process.ts";

/**
 * The real server behind real proxies, set up by the examples in deploy/ and by the settings that these name. Run by
 * `node --test test/proxies.suite.ts`, since nginx and Caddy do not come through npm: they must be installed, and Linux
 * must be under them, where all of 127.0.0.0/8 is this machine and so has room for several clients.
 */
const PATH = [process.env["PATH"], "/usr/sbin", "/usr/bin"].join(delimiter);
for (const [program, flag] of [
  ["nginx", "-v"],
  ["caddy", "version"],
] as const) {
  if (spawnSync(program, [flag], { env: { PATH } }).status !== 0)
    throw new Error(`${program} is not installed, or does not start. On Debian: apt-get install nginx caddy`);
}

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const [CERTIFICATE, KEY] = [fixture("localhost.crt"), fixture("localhost.key")];
const ca = readFileSync(CERTIFICATE);
const PASSWORD = "correct horse battery staple";
const MAX_BODY_BYTES = 8 * 1024 * 1024;

/** Where everything is on this machine. */
interface Place {
  readonly folder: string;
  /** Port of Earmark. */
  readonly upstream: number;
  /** Ports of the proxy: for a name of its own, for a path, and without https. */
  readonly own: number;
  readonly path: number;
  readonly plain: number;
}

interface Example {
  readonly name: string;
  readonly text: string;
  /** The example for this machine; throws when something that must be changed is not there. */
  readonly adapt: (text: string, place: Place) => string;
  /** Writes what the program needs, and returns how it is started in the foreground. */
  readonly prepare: (example: string, folder: string) => readonly [string, ...string[]];
}

const readExample = (file: string) => readFileSync(new URL(`../deploy/${file}`, import.meta.url), "utf8");

function change(text: string, what: string, by: string): string {
  assert.ok(text.includes(what), `the example has no ${JSON.stringify(what)}`);
  return text.replaceAll(what, by);
}

function changeOne(text: string, what: string, by: string): string {
  assert.ok(text.includes(what), `the example has no ${JSON.stringify(what)}`);
  return text.replace(what, by);
}

const NGINX: Example = {
  name: "nginx",
  text: readExample("nginx.conf"),
  adapt(example, { upstream, own, path, plain }) {
    let text = example.replaceAll(/^ *listen \[::\]:.*\n/gm, "");
    text = change(text, "server 127.0.0.1:8080;", `server 127.0.0.1:${upstream};`);
    text = change(text, "listen 80;", `listen 127.0.0.1:${plain};`);
    text = changeOne(text, "listen 443 ", `listen 127.0.0.1:${own} `);
    text = changeOne(text, "listen 443 ", `listen 127.0.0.1:${path} `);
    for (const name of ["earmark.example", "www.example"]) {
      text = change(text, `/etc/letsencrypt/live/${name}/fullchain.pem`, CERTIFICATE);
      text = change(text, `/etc/letsencrypt/live/${name}/privkey.pem`, KEY);
    }
    text = change(text, "server_name earmark.example www.example;", "server_name localhost;");
    for (const name of ["earmark.example", "www.example"])
      text = change(text, `server_name ${name};`, "server_name localhost;");
    return text;
  },
  prepare(example, folder) {
    writeFileSync(join(folder, "earmark.conf"), example);
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => {
      mkdirSync(join(folder, kind));
      return `${kind}_temp_path ${join(folder, kind)};`;
    });
    writeFileSync(
      join(folder, "nginx.conf"),
      `${process.getuid?.() === 0 ? "user root;" : ""}
pid ${join(folder, "nginx.pid")};
events {}
http {
  access_log off;
  ${paths.join("\n  ")}
  include ${join(folder, "earmark.conf")};
}
`,
    );
    return ["nginx", "-p", folder, "-c", join(folder, "nginx.conf"), "-e", "stderr", "-g", "daemon off;"];
  },
};

const CADDY: Example = {
  name: "Caddy",
  text: readExample("Caddyfile"),
  adapt(example, { upstream, own, path }) {
    // No port of this machine but those that the test has chosen.
    const settings = "\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n";
    let text = changeOne(example, "{\n\tservers {", `{\n${settings}\tservers {`);
    text = change(text, "reverse_proxy 127.0.0.1:8080 ", `reverse_proxy 127.0.0.1:${upstream} `);
    for (const [name, port] of [
      ["earmark.example", own],
      ["www.example", path],
    ] as const) {
      text = change(text, `# tls /etc/ssl/${name}.crt /etc/ssl/${name}.key`, `tls ${CERTIFICATE} ${KEY}`);
      text = change(text, `\n${name} {`, `\nhttps://localhost:${port} {`);
    }
    return text;
  },
  prepare(example, folder) {
    writeFileSync(join(folder, "Caddyfile"), example);
    return ["caddy", "run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"];
  },
};

const OWN = { name: "a name of its own", base: "", cookie: "__Host-earmark", heading: "# A host of its own:" };
const BELOW = { name: "a path", base: "/earmark", cookie: "__Secure-earmark", heading: "# Or a path on a host" };
type Variant = typeof OWN;

/** The settings that the example names for Earmark: at its top, and above the part that is used. */
function settingsOf({ text }: Example, { heading }: Variant): Record<string, string> {
  const starts = [OWN, BELOW].map((variant) => text.indexOf(variant.heading));
  const at = text.indexOf(heading);
  assert.ok(starts.every((start) => start !== -1));
  const end = starts.find((start) => start > at) ?? text.length;
  const part = text.slice(0, Math.min(...starts)) + text.slice(at, end);
  const settings = [...part.matchAll(/^# {3}([A-Z_]+)=(\S+)$/gm)].map(([, name = "", value = ""]) => [name, value]);
  return JSON.parse(JSON.stringify(Object.fromEntries(settings)).replaceAll(/(earmark|www)\.example/g, "localhost"));
}

const taken = new Set<number>();

async function freePort(): Promise<number> {
  const probe = createTcpServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  if (taken.has(port)) return freePort();
  taken.add(port);
  return port;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Starts a proxy in the foreground and waits until it listens; ended when the tests have run. */
async function startProxy(example: Example, upstream: number): Promise<Place> {
  const folder = temporaryFolder();
  const [own, path, plain] = [await freePort(), await freePort(), await freePort()];
  const place: Place = { folder, upstream, own, path, plain };
  const [program, ...args] = example.prepare(example.adapt(example.text, place), folder);
  const env = { PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program, args, { env, cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  const ended = once(child, "exit");
  after(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  for (let tries = 0; !((await isListening(own)) && (await isListening(path))); tries += 1) {
    if (child.exitCode !== null || tries === 100) throw new Error(`${example.name} does not listen:\n${output}`);
    await sleep(100);
  }
  return place;
}

interface Options {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The address from which this client comes. */
  readonly from?: string;
  readonly agent?: Agent;
  /** Sends the body in pieces, without saying how long it will be. */
  readonly isChunked?: boolean;
}

/** One request over https, as a client of the proxy makes it. */
function call(port: number, method: string, path: string, options: Options = {}): Promise<Answer> {
  const { headers, body, from = "127.0.0.1", agent = false, isChunked = false } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        servername: "localhost",
        localAddress: from,
        ca,
        port,
        method,
        path,
        agent,
        headers: { Host: `localhost:${port}`, ...headers },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = String(incoming.headers["content-type"]).startsWith(PLAIN);
          const json = isJson && text !== "" ? JSON.parse(text) : undefined;
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json });
        });
      },
    );
    // After an answer this comes too late to matter.
    outgoing.on("error", reject);
    if (isChunked && body !== undefined) {
      for (let start = 0; start < body.length; start += 65_536) outgoing.write(body.slice(start, start + 65_536));
      outgoing.end();
    } else outgoing.end(body);
  });
}

const json = (type: string, attributes: object) => JSON.stringify({ data: { type, attributes } });
const subscription = (id: string) =>
  JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url: `https://feeds.example/${id}` } } });
const setCookie = ({ headers }: Answer) => String(headers["set-cookie"]);
const cookieOf = (answer: Answer) => setCookie(answer).replace(/;.*/, "");

/** The path and the secret of the link that Earmark prints when there is no account. */
async function setUpLink({ output }: RunningServer): Promise<URL> {
  for (let tries = 0; tries < 50; tries += 1) {
    const [link] = /http:\/\/\S+\/join#emi_[\w-]+/.exec(output()) ?? [];
    if (link !== undefined) return new URL(link);
    await sleep(100);
  }
  throw new Error(`no link: ${output()}`);
}

/** A proxy, and in the place of Earmark what remembers all that it gets. */
async function startRecorder(example: Example) {
  const record = { seen: [] as { readonly url: string; readonly headers: IncomingHttpHeaders }[], connections: 0 };
  const server = createServer((incoming, response) => {
    record.seen.push({ url: incoming.url ?? "", headers: incoming.headers });
    incoming.resume().on("end", () => response.end("{}"));
  }).listen(0, "127.0.0.1");
  server.on("connection", () => {
    record.connections += 1;
  });
  await once(server, "listening");
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { example, record, place: await startProxy(example, (server.address() as AddressInfo).port) };
}

/** A proxy, and Earmark with the settings that the example names. */
async function startBoth(example: Example, variant: Variant) {
  const settings = settingsOf(example, variant);
  assert.equal(settings["EARMARK_BASE_PATH"] ?? "", variant.base);
  const upstream = await freePort();
  const environment = {
    ...settings,
    PORT: String(upstream),
    DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    // So often as this suite asks, nobody does.
    EARMARK_REQUESTS_PER_MINUTE: "100000",
  };
  const earmark = await start(environment);
  const { own, path } = await startProxy(example, upstream);
  return { example, variant, environment, upstream, earmark, port: variant === OWN ? own : path };
}

// All of it before the first test is named: the runner ends, and stops everything, when it has no more to run.
const recorders = [await startRecorder(NGINX), await startRecorder(CADDY)];
const redirecting = await startProxy(NGINX, await freePort());
const stages = [
  await startBoth(NGINX, OWN),
  await startBoth(NGINX, BELOW),
  await startBoth(CADDY, OWN),
  await startBoth(CADDY, BELOW),
];

for (const { example, record, place } of recorders) {
  suite(`${example.name}, what it passes on`, () => {
    for (const [variant, port] of [
      [OWN, place.own],
      [BELOW, place.path],
    ] as const) {
      test(`${variant.name}: the target as it was sent, and the truth about where it came from`, async () => {
        const target = `${variant.base}/v1/%73ubscriptions//a%2Fb?page[size]=1&a=%2F%20b//c`;
        await call(port, "GET", target, {
          from: "127.0.0.7",
          headers: {
            "X-Forwarded-For": "203.0.113.9",
            "X-Forwarded-Proto": "http",
            "X-Forwarded-Host": "evil.example",
            Cookie: "a=1",
            Authorization: "Bearer x",
            Origin: `https://localhost:${port}`,
            "Sec-Fetch-Site": "same-origin",
          },
        });
        const [{ url, headers } = { url: "", headers: {} as IncomingHttpHeaders }] = record.seen.slice(-1);
        assert.equal(url, target);
        const { host, cookie, authorization, origin } = headers;
        assert.equal(host, `localhost:${port}`);
        assert.deepEqual(
          ["for", "proto", "host"].map((what) => headers[`x-forwarded-${what}`]),
          ["127.0.0.7", "https", `localhost:${port}`],
        );
        assert.deepEqual([cookie, authorization, origin], ["a=1", "Bearer x", `https://localhost:${port}`]);
        assert.equal(headers["sec-fetch-site"], "same-origin");
      });
    }

    test("the connections to Earmark are kept and used again, also after a body", async () => {
      const before = record.connections;
      for (let count = 0; count < 30; count += 1)
        await call(place.own, "POST", "/", { body: "x".repeat(10_000), isChunked: count % 2 === 1 });
      const opened = record.connections - before;
      assert.ok(opened <= 2, `${opened} connections for 30 requests`);
    });

    test("the rest of a name that serves other things is not Earmark's", async () => {
      const before = record.seen.length;
      for (const path of ["/", "/v1/subscriptions", "/earmarks/v1/subscriptions"])
        assert.equal((await call(place.path, "GET", path)).status, 404);
      assert.equal(record.seen.length, before);
    });
  });
}

test("nginx sends whoever comes without https there, with the whole target", async () => {
  const answer = await callServer(redirecting.plain, "GET", "/earmark/v1/subscriptions?page[size]=1", {
    headers: { Host: "localhost" },
  });
  assert.equal(answer.status, 308);
  assert.equal(answer.headers["location"], "https://localhost/earmark/v1/subscriptions?page[size]=1");
});

test("the containers of compose.accounts.yml fit together: names, addresses, secrets and what Caddy is told", () => {
  const text = readExample("compose.accounts.yml").replaceAll(/\$\{EARMARK_NAME:\?[^}]*\}/g, "localhost");
  const environment = [...text.matchAll(/^ {6}([A-Z_]+): "?([^"\n]+)"?$/gm)].map(([, name = "", value = ""]) => [
    name,
    value.replace(/^\$\{\w+:-(.*)\}$/, "$1"),
  ]);
  const files: string[] = [];
  const config = readConfig({ HOST: "0.0.0.0", ...Object.fromEntries(environment) }, "/", {
    installation: "/",
    exists: () => false,
    read(path) {
      files.push(path);
      return PASSWORD;
    },
  });
  assert.deepEqual(config.accounts?.admin, { name: "admin", password: PASSWORD });
  assert.deepEqual(files, ["/run/secrets/first_password"]);
  assert.deepEqual(config.allowedHosts, ["localhost"]);
  const proxy = /^ {2}proxy:\n(?: {4}.*\n)+/m.exec(text)?.[0] ?? "";
  assert.equal(/ipv4_address: (\S+)/.exec(proxy)?.[1], config.trustedProxies.join());
  assert.equal(text.match(/read_only: true/g)?.length, text.match(/^ {4}(image|build):/gm)?.length);

  const told = (/content: \|\n((?: {6}.*\n)+)/.exec(text)?.[1] ?? "").replaceAll(/^ {6}/gm, "");
  const folder = temporaryFolder();
  writeFileSync(join(folder, "Caddyfile"), told);
  const env = { PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const args = ["validate", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"];
  const { status, stderr } = spawnSync("caddy", args, { env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  // The same as for a server without containers, but for where it is.
  const [, site = ""] = /\nearmark\.example (\{\n[\s\S]*?\n\})\n/.exec(CADDY.text) ?? [];
  const plain = (lines: string) => lines.replaceAll(/#.*/g, "").replaceAll(/\s+/g, " ").trim();
  assert.equal(plain(told), `localhost ${plain(site).replace("127.0.0.1:8080", "earmark:8080")}`);
});

for (const { example, variant, environment, upstream, earmark: first, port } of stages) {
  suite(`${example.name}, ${variant.name}`, () => {
    const { base } = variant;
    const origin = `https://localhost:${port}`;
    let earmark = first;
    const ask = (method: string, path: string, options?: Options) => call(port, method, path, options);
    /**
     * Caddy closes a connection as soon as it has passed on an early answer. Whoever is still sending may then find the
     * door closed before the answer is read, and has to ask again.
     */
    const askPatiently = async (method: string, path: string, options: Options) => {
      for (let tries = 1; ; tries += 1) {
        try {
          return await ask(method, path, options);
        } catch (error) {
          if (example !== CADDY || tries === 10) throw error;
        }
      }
    };
    const signIn = (password: string, options: Options = {}) =>
      ask("POST", `${base}/v1/sessions`, {
        ...options,
        headers: { "Content-Type": PLAIN, ...options.headers },
        body: json("session", { name: "ann", password }),
      });
    const isSecure = (cookie: string) =>
      assert.match(
        cookie,
        new RegExp(`^${variant.cookie}=[\\w-]{43}; Path=${base}/; Max-Age=\\d+; HttpOnly; SameSite=Lax; Secure$`),
      );
    let Cookie = "";

    test("the link that Earmark prints leads to an account, by its public name", async () => {
      const link = await setUpLink(earmark);
      assert.equal(link.pathname, `${base}/join`);
      const page = await ask("GET", link.pathname);
      assert.equal(page.status, 200);
      assert.match(String(page.headers["content-security-policy"]), /script-src 'self'/);
      for (const [, file = ""] of page.text.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]+)"/g))
        assert.equal((await ask("GET", new URL(file, `${origin}${link.pathname}`).pathname)).status, 200);
      const there = new URL("v1/accounts", `${origin}${link.pathname}`).pathname;
      const answer = await ask("POST", there, {
        headers: { "Content-Type": PLAIN, Origin: origin, "Sec-Fetch-Site": "same-origin" },
        body: json("account", { name: "ann", password: PASSWORD, invitation: link.hash.slice(1) }),
      });
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.headers["location"], `${base}/v1/me`);
      isSecure(setCookie(answer));
      assert.equal((await ask("GET", `${base}/v1/me`, { headers: { Cookie: cookieOf(answer) } })).status, 200);
    });

    test("signing in gives a cookie for https alone, whatever the client says", async () => {
      const answer = await signIn(PASSWORD, { headers: { Origin: origin, "X-Forwarded-Proto": "http" } });
      assert.equal(answer.status, 201);
      isSecure(setCookie(answer));
      Cookie = cookieOf(answer);
      const self = String(answer.headers["location"]);
      assert.ok(self.startsWith(`${base}/v1/sessions/`), self);
      assert.equal((await ask("GET", self, { headers: { Cookie } })).json.data.attributes.current, true);
      // The same secret in the cookie that is for http is not taken.
      const plain = Cookie.replace(variant.cookie, "earmark");
      assert.equal((await ask("GET", `${base}/v1/me`, { headers: { Cookie: plain } })).status, 401);
    });

    test("our own page may write, and no other", async () => {
      const post = (headers: Readonly<Record<string, string>>) => {
        const options = { headers: { Cookie, "Content-Type": PLAIN, ...headers }, body: subscription(newId()) };
        return ask("POST", `${base}/v1/subscriptions`, options);
      };
      const added = await post({ Origin: origin });
      assert.equal(added.status, 201, added.text);
      const self = String(added.headers["location"]);
      assert.equal((await ask("GET", self, { headers: { Cookie } })).status, 200);
      assert.equal((await ask("DELETE", self, { headers: { Cookie, Origin: origin } })).status, 204);
      for (const headers of [
        { Origin: "https://evil.example" },
        { Origin: "https://evil.example", "X-Forwarded-Host": "evil.example" },
        { Origin: "null" },
        { "Sec-Fetch-Site": "cross-site" },
      ]) {
        const refused = await post(headers as Record<string, string>);
        assert.deepEqual([refused.status, refused.json.errors[0].title], [403, "Cross-Site Request Refused"]);
      }
    });

    test("10,000 operations in one request, and the whole list by its links", async () => {
      const operations = Array.from({ length: 10_000 }, () => {
        const id = newId();
        return add(id, `https://feeds.example/${id}`);
      });
      const body = JSON.stringify({ "atomic:operations": operations });
      const headers = { Cookie, "Content-Type": ATOMIC };
      const answer = await ask("POST", `${base}/v1/operations`, { headers, body });
      assert.equal(answer.status, 200, answer.text.slice(0, 500));
      const ids = answer.json["atomic:results"].map(({ data }: { data: { id: string } }) => data.id);
      assert.equal(new Set(ids).size, 10_000);

      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const found: string[] = [];
      let next: string | null = `${base}/v1/subscriptions?page[size]=100`;
      while (next !== null) {
        assert.ok(next.startsWith(`${base}/v1/`), next);
        const page: Answer = await ask("GET", next, { headers: { Cookie }, agent });
        assert.equal(page.status, 200, next);
        found.push(...page.json.data.map(({ id }: { id: string }) => id));
        next = page.json.links.next;
      }
      agent.destroy();
      assert.deepEqual(found, ids);

      const everything = await ask("GET", `${base}/v1/me/export`, { headers: { Cookie } });
      const exported = everything.json.data.filter(({ type }: { type: string }) => type === "subscription");
      assert.equal(exported.length, 10_000);
    });

    test("HTTP/2 is the same", async () => {
      const session = connectHttp2(origin, { ca });
      const stream = session.request({ ":path": `${base}/v1/me`, cookie: Cookie });
      const [headers] = await once(stream, "response");
      let text = "";
      for await (const chunk of stream) text += chunk;
      session.close();
      assert.equal(headers[":status"], 200);
      assert.equal(JSON.parse(text).data.links.self, `${base}/v1/me`);
    });

    test("a client keeps its connection, and every answer is protected", async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      let sockets = 0;
      const create = agent.createConnection.bind(agent);
      agent.createConnection = (...args: Parameters<typeof create>) => {
        sockets += 1;
        return create(...args);
      };
      for (const [path, status] of [
        ["/v1/me", 200],
        ["/v1/subscriptions/x", 400],
        ["/nowhere", 404],
        ["/v1/me", 200],
      ] as const) {
        const { status: found, headers } = await ask("GET", `${base}${path}`, { headers: { Cookie }, agent });
        assert.equal(found, status);
        assert.equal(headers["strict-transport-security"], "max-age=31536000");
        assert.equal(headers["x-content-type-options"], "nosniff");
        assert.equal(headers["cache-control"], "no-store");
        assert.equal(headers["content-type"], PLAIN);
      }
      agent.destroy();
      assert.equal(sockets, 1);
    });

    test("a body that is too long is answered by Earmark, with its document", async () => {
      const headers = { Cookie, "Content-Type": ATOMIC };
      for (const [length, isChunked] of [
        [MAX_BODY_BYTES + 1, false],
        [MAX_BODY_BYTES + 1, true],
        [3 * MAX_BODY_BYTES, false],
        [3 * MAX_BODY_BYTES, true],
      ] as const) {
        const body = Buffer.alloc(length, " ");
        const answer = await askPatiently("POST", `${base}/v1/operations`, { headers, body, isChunked });
        assert.equal(answer.status, 413, `${length} ${isChunked}`);
        assert.equal(answer.headers["content-type"], ATOMIC);
        assert.deepEqual(answer.json.errors[0].meta, { max: MAX_BODY_BYTES });
      }
      // One of just that length is read.
      const body = '{"atomic:operations":[]}'.padEnd(MAX_BODY_BYTES);
      assert.equal((await ask("POST", `${base}/v1/operations`, { headers, body })).status, 200);
      // And whoever is not signed in is told so before it has sent anything to be kept.
      const stranger = { headers: { "Content-Type": ATOMIC }, body };
      assert.equal((await askPatiently("POST", `${base}/v1/operations`, stranger)).status, 401);
    });

    test("guesses are counted for the address that the proxy sees, not for the one that a client claims", async () => {
      const claim = (number: number) => ({ "X-Forwarded-For": `203.0.113.${number}` });
      const [guesser, neighbour] = ["127.0.0.2", "127.0.0.3"];
      const guesses = Array.from({ length: 10 }, (_, number) =>
        signIn("wrong", { from: guesser, headers: claim(number) }),
      );
      for (const { status } of await Promise.all(guesses)) assert.equal(status, 401);
      for (const headers of [
        {},
        claim(99),
        { "X-Forwarded-For": `127.0.0.1, ${neighbour}` },
        { Forwarded: "for=9.9.9.9" },
      ]) {
        const refused = await signIn(PASSWORD, { from: guesser, headers: headers as Record<string, string> });
        assert.equal(refused.status, 429);
        assert.match(String(refused.headers["retry-after"]), /^\d+$/);
      }
      assert.equal((await signIn("wrong", { from: neighbour })).status, 401);
      assert.equal((await signIn(PASSWORD, { from: neighbour })).status, 201);
    });

    test("whoever gets around the proxy is not believed", async () => {
      const direct = (password: string, number: number) =>
        new Promise<{ status: number | undefined; cookie: string }>((resolve, reject) => {
          const headers = {
            "Content-Type": PLAIN,
            "X-Forwarded-For": `203.0.113.${number}`,
            "X-Forwarded-Proto": "https",
          };
          const options = { host: "127.0.0.1", localAddress: "127.0.0.4", port: upstream, method: "POST", headers };
          const outgoing = requestPlain({ ...options, path: "/v1/sessions", agent: false }, (incoming) => {
            incoming.resume();
            resolve({ status: incoming.statusCode, cookie: String(incoming.headers["set-cookie"]) });
          });
          outgoing.on("error", reject).end(json("session", { name: "ann", password }));
        });
      assert.match((await direct(PASSWORD, 0)).cookie, /^earmark=[\w-]{43};.*SameSite=Lax$/);
      const guesses = await Promise.all(Array.from({ length: 9 }, (_, number) => direct("wrong", number)));
      for (const { status } of guesses) assert.equal(status, 401);
      assert.equal((await direct(PASSWORD, 99)).status, 429);
    });

    test("Earmark starts again behind the proxy, and nothing that was answered is lost", async () => {
      const [answered, failed]: [string[], string[]] = [[], []];
      const statuses = { POST: new Set<number>(), GET: new Set<number>() };
      let isOver = false;
      const agent = new Agent({ keepAlive: true });
      const headers = { Cookie, "Content-Type": PLAIN };
      const post = (id: string) => ask("POST", `${base}/v1/subscriptions`, { headers, body: subscription(id), agent });
      const worker = async () => {
        while (!isOver) {
          const id = newId();
          const added = await post(id);
          if (added.status === 201) answered.push(id);
          else failed.push(id);
          statuses.POST.add(added.status);
          statuses.GET.add((await ask("GET", `${base}/v1/me`, { headers: { Cookie }, agent })).status);
        }
      };
      const workers = Promise.all([worker(), worker(), worker(), worker()]);
      await sleep(500);
      earmark.child.kill("SIGTERM");
      assert.equal(await earmark.ended, 0);
      const before = answered.length;
      earmark = await start(environment);
      for (let tries = 0; answered.length < before + 50 && tries < 200; tries += 1) await sleep(50);
      isOver = true;
      await workers;

      assert.ok(answered.length >= before + 50, "after the start nothing went on");
      // Caddy waits until Earmark is back, and asks again where that cannot do harm. nginx says that there is nobody.
      const [writes, reads] = [[201, 502], example === CADDY ? [200] : [200, 502]];
      for (const status of statuses.POST) assert.ok(writes.includes(status), `POST ${status}`);
      for (const status of statuses.GET) assert.ok(reads.includes(status), `GET ${status}`);
      const everything = await ask("GET", `${base}/v1/me/export`, { headers: { Cookie } });
      const kept = new Set(everything.json.data.map(({ id }: { id: string }) => id));
      assert.equal(
        answered.find((id) => !kept.has(id)),
        undefined,
      );
      // What failed can be sent again: it is in the list after that, once.
      for (const id of failed.slice(0, 20)) assert.equal((await post(id)).status, kept.has(id) ? 409 : 201);
      agent.destroy();
    });
  });
}
