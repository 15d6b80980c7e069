import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type Agent, request } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { delimiter, join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type RunningServer, start } from "./process.ts";
import { type HttpResponse, PLAIN, temporaryFolder } from "./server.ts";

/** nginx and Caddy, configured by the examples in deploy/. */
export const PATH = [process.env["PATH"], "/usr/sbin", "/usr/bin"].join(delimiter);

for (const [program, flag] of [
  ["nginx", "-v"],
  ["caddy", "version"],
] as const) {
  if (spawnSync(program, [flag], { env: { PATH } }).status !== 0)
    throw new Error(`${program} is not installed or does not start. On Debian: apt-get install nginx caddy`);
}

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));
const [CERTIFICATE, KEY] = [fixture("localhost.crt"), fixture("localhost.key")];
export const ca = readFileSync(CERTIFICATE);

/** The ports and the folder of one proxy. */
export interface RunningProxy {
  readonly folder: string;
  /** Port of Earmark. */
  readonly upstream: number;
  /** Ports of the proxy: for the separate host name, for the path, and for http. */
  readonly host: number;
  readonly path: number;
  readonly http: number;
}

export interface Example {
  readonly name: string;
  readonly text: string;
  /** The example with the ports and certificates of this machine; throws if the text to replace is missing. */
  readonly adapt: (text: string, proxy: RunningProxy) => string;
  /** Writes the configuration files and returns the command that runs the proxy in the foreground. */
  readonly prepare: (example: string, folder: string) => readonly [string, ...string[]];
}

export const readExample = (file: string) => readFileSync(new URL(`../../deploy/${file}`, import.meta.url), "utf8");

function replace(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), `the example has no ${JSON.stringify(from)}`);
  return text.replaceAll(from, to);
}

function replaceFirst(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), `the example has no ${JSON.stringify(from)}`);
  return text.replace(from, to);
}

export const NGINX: Example = {
  name: "nginx",
  text: readExample("nginx.conf"),
  adapt(example, { upstream, host, path, http }) {
    let text = example.replaceAll(/^ *listen \[::\]:.*\n/gm, "");
    text = replace(text, "server 127.0.0.1:8080;", `server 127.0.0.1:${upstream};`);
    text = replace(text, "listen 80;", `listen 127.0.0.1:${http};`);
    text = replaceFirst(text, "listen 443 ", `listen 127.0.0.1:${host} `);
    text = replaceFirst(text, "listen 443 ", `listen 127.0.0.1:${path} `);
    for (const name of ["earmark.example", "www.example"]) {
      text = replace(text, `/etc/letsencrypt/live/${name}/fullchain.pem`, CERTIFICATE);
      text = replace(text, `/etc/letsencrypt/live/${name}/privkey.pem`, KEY);
    }
    text = replace(text, "server_name earmark.example www.example;", "server_name localhost;");
    for (const name of ["earmark.example", "www.example"])
      text = replace(text, `server_name ${name};`, "server_name localhost;");
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

export const CADDY: Example = {
  name: "Caddy",
  text: readExample("Caddyfile"),
  adapt(example, { upstream, host, path }) {
    // Listens only on the ports that the test has chosen.
    const settings = "\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n";
    let text = replaceFirst(example, "{\n\tservers {", `{\n${settings}\tservers {`);
    text = replace(text, "reverse_proxy 127.0.0.1:8080 ", `reverse_proxy 127.0.0.1:${upstream} `);
    for (const [name, port] of [
      ["earmark.example", host],
      ["www.example", path],
    ] as const) {
      text = replace(text, `# tls /etc/ssl/${name}.crt /etc/ssl/${name}.key`, `tls ${CERTIFICATE} ${KEY}`);
      text = replace(text, `\n${name} {`, `\nhttps://localhost:${port} {`);
    }
    return text;
  },
  prepare(example, folder) {
    writeFileSync(join(folder, "Caddyfile"), example);
    return ["caddy", "run", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"];
  },
};

export const HOST = { name: "separate host", base: "", cookie: "__Host-earmark", heading: "# Option 1:" };
export const PATH_ON_HOST = { name: "path", base: "/earmark", cookie: "__Secure-earmark", heading: "# Option 2:" };
export type Variant = typeof HOST;

/** The settings for Earmark that the example lists: at its top and above the chosen option. */
export function settingsOf({ text }: Example, { heading }: Variant): Record<string, string> {
  const starts = [HOST, PATH_ON_HOST].map((variant) => text.indexOf(variant.heading));
  const at = text.indexOf(heading);
  assert.ok(starts.every((start) => start !== -1));
  const end = starts.find((start) => start > at) ?? text.length;
  const part = text.slice(0, Math.min(...starts)) + text.slice(at, end);
  const settings = [...part.matchAll(/^# {3}([A-Z_]+)=(\S+)$/gm)].map(([, name = "", value = ""]) => [name, value]);
  return JSON.parse(JSON.stringify(Object.fromEntries(settings)).replaceAll(/(earmark|www)\.example/g, "localhost"));
}

const taken = new Set<number>();

export async function freePort(): Promise<number> {
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

/** Starts a proxy in the foreground and waits until it listens; stopped after the tests of the file. */
export async function startProxy(example: Example, upstream: number): Promise<RunningProxy> {
  const folder = temporaryFolder();
  const [host, path, http] = [await freePort(), await freePort(), await freePort()];
  const proxy: RunningProxy = { folder, upstream, host, path, http };
  const [program, ...args] = example.prepare(example.adapt(example.text, proxy), folder);
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
  for (let tries = 0; !((await isListening(host)) && (await isListening(path))); tries += 1) {
    if (child.exitCode !== null || tries === 100) throw new Error(`${example.name} does not listen:\n${output}`);
    await sleep(100);
  }
  return proxy;
}

export interface Options {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Local address of the client. */
  readonly from?: string;
  readonly agent?: Agent;
  /** Sends the body in chunks, without Content-Length. */
  readonly isChunked?: boolean;
}

/** Sends one request to the proxy over https. */
export function call(port: number, method: string, path: string, options: Options = {}): Promise<HttpResponse> {
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
    // Has no effect after a response.
    outgoing.on("error", reject);
    if (isChunked && body !== undefined) {
      for (let start = 0; start < body.length; start += 65_536) outgoing.write(body.slice(start, start + 65_536));
      outgoing.end();
    } else outgoing.end(body);
  });
}

/** The link that Earmark prints while there is no account. */
export async function setUpLink({ output }: RunningServer): Promise<URL> {
  for (let tries = 0; tries < 50; tries += 1) {
    const [link] = /http:\/\/\S+\/join\?first#emi_[\w-]+/.exec(output()) ?? [];
    if (link !== undefined) return new URL(link);
    await sleep(100);
  }
  throw new Error(`Earmark printed no link: ${output()}`);
}

/** A proxy in front of a server that records every request instead of Earmark. */
export async function startRecorder(example: Example) {
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
  return { example, record, proxy: await startProxy(example, (server.address() as AddressInfo).port) };
}

/** A proxy in front of Earmark, with the settings that the example lists. */
export async function startBoth(example: Example, variant: Variant) {
  const settings = settingsOf(example, variant);
  assert.equal(settings["EARMARK_BASE_PATH"] ?? "", variant.base);
  const upstream = await freePort();
  const environment = {
    ...settings,
    PORT: String(upstream),
    DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    // This suite sends more requests than the default limit allows.
    EARMARK_REQUESTS_PER_MINUTE: "100000",
  };
  const earmark = await start(environment);
  const { host, path } = await startProxy(example, upstream);
  return { example, variant, environment, upstream, earmark, port: variant === HOST ? host : path };
}
