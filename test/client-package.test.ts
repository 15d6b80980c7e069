import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { guid } from "../client/src/index.ts";
import "../bin/compile-cache.js";
import { newPerson, serverUrl } from "./support/client.ts";
import { cleanEnvironment } from "./support/process.ts";
import { temporaryFolder } from "./support/server.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

/** Every Node ≥ 20 on this machine: the one that runs this test, and others on the path. */
async function everyNode(): Promise<string[]> {
  const places = [
    process.execPath,
    ...(process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "node")),
  ];
  const found = new Set(places.filter(existsSync).map((place) => realpathSync(place)));
  const usable: string[] = [];
  for (const node of found) {
    const { stdout } = await run(node, ["--version"]);
    if (Number(/^v(\d+)/.exec(stdout)?.[1]) >= 20) usable.push(node);
  }
  return usable;
}

const CONSUMER = `import { createClient, EarmarkError, guid, NetworkError, openReplica } from "earmark-client";
import type { Client, Me, Replica, ReplicaStorage, Subscription, SubscribeResult } from "earmark-client";
import { indexedDbStorage } from "earmark-client/browser";
import { fileStorage } from "earmark-client/node";

const [url = "", token = ""] = process.argv.slice(2);
const client: Client = createClient({ url, token, fetch, retries: 2, onRetry: ({ attempt, delayMs, error }) => {
  console.error(attempt + delayMs, error.message);
} });
const results: SubscribeResult[] = await client.subscribe(
  ["https://podnews.net/rss", { url: "https://feeds.example/daily", id: guid("feeds.example/daily") }, "nothing"],
  { onProgress: ({ done, total, added, alreadySubscribed, refused }) => {
    console.log([done, total, added, alreadySubscribed, refused].join());
  }, signal: AbortSignal.timeout(10_000) },
);
for (const result of results) {
  if (result.outcome === "added") console.log(result.subscription.feedUrl);
  else console.log(result.outcome, result.error.status, result.error.code);
}
const listed: Subscription[] = [];
for await (const subscription of client.subscriptions({ pageSize: 1 })) listed.push(subscription);
console.log(listed.map(({ id, subscribedAt }) => id + (subscribedAt.getTime() > 0)).join());
console.log(await client.remove(guid("https://podnews.net/rss")));
const one: Subscription | undefined = await client.get(guid("https://podnews.net/rss"));
console.log(one?.feedUrl, (await client.page({ number: 1, size: 10 })).total);
const newStorage: (name: string) => ReplicaStorage = typeof process === "object" ? fileStorage : indexedDbStorage;
const replica: Replica = await openReplica({ client, storage: newStorage("list-" + process.version) });
await replica.sync();
await replica.add([{ url: "https://feeds.example/weekly", title: "Weekly", folders: ["News/Tech"] }]);
await replica.remove([guid("https://feeds.example/daily")]);
await replica.sync();
for (const { feedUrl, title, folders } of replica.list()) console.log(feedUrl, title, folders?.join());
const me: Me = await client.me();
console.log(me.name, me.limits.operationsPerMinute ?? 0);
try {
  await createClient({ url }).me();
} catch (error) {
  if (error instanceof EarmarkError) console.log(error.message, error.code, error.errors.length, error.retryAfter);
  else if (error instanceof NetworkError) console.log(error.cause);
}
`;

const TSC = join(ROOT, "node_modules", "typescript", "bin", "tsc");

/** Packs a copy of the client, as it would be published. */
async function packClient(): Promise<string> {
  const folder = join(temporaryFolder(), "client");
  cpSync(join(ROOT, "client"), folder, { recursive: true, filter: (path) => !/[/\\](dist|node_modules)$/.test(path) });
  const { stdout } = await npm(folder, ["pack", "--json"]);
  return join(folder, JSON.parse(stdout.slice(stdout.indexOf("[\n")))[0].filename);
}

/** Runs npm offline, with this project's TypeScript. */
function npm(cwd: string, args: readonly string[]) {
  const path = [join(ROOT, "node_modules", ".bin"), process.env["PATH"]].join(delimiter);
  const NODE_COMPILE_CACHE = process.env["NODE_COMPILE_CACHE"] ?? "";
  const settings = { npm_config_cache: join(cwd, ".npm"), npm_config_offline: "true", NODE_COMPILE_CACHE };
  return run("npm", args, { cwd, env: { ...cleanEnvironment(settings), PATH: path } });
}

/** A new project that has the packed client installed. */
async function installClient(): Promise<string> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
  await npm(folder, ["install", "--no-audit", "--no-fund", await packClient()]);
  mkdirSync(join(folder, "node_modules", "@types"));
  symlinkSync(join(ROOT, "node_modules", "@types", "node"), join(folder, "node_modules", "@types", "node"));
  return folder;
}

const installed = installClient();

test("package: built files → no other imports, at most 12 kB compressed", async () => {
  const folder = join(await installed, "node_modules", "earmark-client");
  assert.deepEqual(readdirSync(folder).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
  const code = readdirSync(join(folder, "dist"))
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(join(folder, "dist", name), "utf8"));
  const imports = code.flatMap((text) => [...text.matchAll(/\bfrom "([^"]*)"/g)].map(([, path = ""]) => path));
  assert.ok(imports.length > 5);
  const others = imports.filter((path) => !/^\.\/[\w-]+\.js$/.test(path));
  assert.deepEqual(others, ["node:fs/promises"]);
  assert.doesNotMatch(code.join(), /\bimport\(|\brequire\(/);
  // Separate entries, which most programs do not load.
  const separate = ["admin.js", "feed-search.js"].map((name) => readFileSync(join(folder, "dist", name), "utf8"));
  const bytes = gzipSync(code.filter((text) => !separate.includes(text)).join()).length;
  assert.ok(bytes <= 12_000, `${bytes} bytes`);
});

test("package: installed in a strict project → compiles, and runs on every Node ≥ 20", async () => {
  const folder = await installed;
  writeFileSync(join(folder, "main.ts"), CONSUMER);
  const readme = readFileSync(join(ROOT, "client", "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text]) => text);
  assert.ok(blocks.length >= 5);
  writeFileSync(join(folder, "readme.ts"), blocks.join(""));
  const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, "tsconfig.json"), "utf8"));
  const { allowImportingTsExtensions, lib, module, noEmit, target, types, ...strict } = compilerOptions;
  assert.equal(strict.strict, true);
  for (const options of [
    { module: "nodenext", lib: ["es2022"], types: ["node"], outDir: "out", skipLibCheck: false },
    { module: "esnext", moduleResolution: "bundler", lib: ["es2022", "dom"], types: ["node"], noEmit },
  ]) {
    const config = {
      compilerOptions: { ...strict, target: "es2022", skipLibCheck: true, ...options },
      files: ["main.ts", "readme.ts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    await run(process.execPath, [TSC], { cwd: folder }).catch(({ stdout }) => assert.fail(stdout));
  }
  const nodes = await everyNode();
  assert.ok(nodes.length > 0);
  for (const node of nodes) {
    const { name, token } = await newPerson();
    const { stdout } = await run(node, [join(folder, "out", "main.js"), serverUrl, token], { cwd: folder });
    assert.deepEqual(stdout.split("\n"), [
      "3,3,2,0,1",
      "https://podnews.net/rss",
      "https://feeds.example/daily",
      "refused 422 feed-url-not-http",
      `${guid("podnews.net/rss")}true,${guid("feeds.example/daily")}true`,
      "true",
      "undefined 1",
      "https://feeds.example/weekly Weekly News/Tech",
      `${name} 1000000`,
      "401 Unauthorized: Authentication required: send a token as `Authorization: Bearer <token>`. unauthenticated 1 undefined",
      "",
    ]);
  }
});
