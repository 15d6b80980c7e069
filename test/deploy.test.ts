import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readConfig } from "../src/config/config.ts";
import {
  COMPOSE_FILES,
  IMAGE,
  IMAGE_SETTINGS,
  REPOSITORY,
  readCompose,
  readDeployed,
  type Service,
  variablesOf,
} from "./support/compose.ts";
import { cleanEnvironment, run } from "./support/process.ts";
import { startServer, temporaryFolder } from "./support/server.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");

const REQUIRED = { EARMARK_NAME: "pods.example", POSTGRES_PASSWORD: "secret", APP_DATA_DIR: "/app-data/earmark" };
const [, exposed = ""] = /^EXPOSE (\d+)$/m.exec(readDeployed("Dockerfile")) ?? [];

const servicesOf = (name: string) => Object.entries(readCompose(name, REQUIRED).services);
const isEarmark = ({ image }: Service) => image.startsWith(`${IMAGE}:`);
/** Whether the container runs the command of the image, the server. */
const isServer = (service: Service) => isEarmark(service) && service.command === undefined;

test("compose files: pasted without a clone → complete", () => {
  assert.ok(COMPOSE_FILES.length >= 7, COMPOSE_FILES.join());
  for (const name of COMPOSE_FILES) {
    const { services, volumes = {}, ...rest } = readCompose(name, REQUIRED);
    assert.deepEqual(
      Object.keys(rest).filter((key) => ["configs", "secrets", "include"].includes(key)),
      [],
      name,
    );
    assert.ok(Object.values(services).some(isServer), `${name} has no Earmark`);
    for (const [service, { image, volumes: mounted = [], ...others }] of Object.entries(services)) {
      assert.match(image, /^[\w./-]+:[\w.-]+$/, `${name}: ${service} needs an image with a tag`);
      for (const key of ["build", "env_file", "extends"]) assert.ok(!(key in others), `${name}: ${service} has ${key}`);
      for (const volume of mounted) {
        const [source = ""] = volume.split(":");
        assert.ok(source in volumes || source.startsWith("/"), `${name}: ${volume} is a file of the repository`);
      }
    }
  }
});

test("compose files: the settings of each server → accepted, with the port of the image", () => {
  assert.equal(IMAGE_SETTINGS["PORT"], exposed);
  for (const name of COMPOSE_FILES) {
    for (const [service, definition] of servicesOf(name)) {
      if (!isEarmark(definition)) continue;
      const environment = { ...IMAGE_SETTINGS, ...definition.environment };
      for (const value of Object.values(environment)) assert.equal(typeof value, "string", `${name}: quote ${value}`);
      const config = readConfig(environment, "/", {
        installation: "/",
        exists: () => false,
        read: () => assert.fail("names a file"),
      });
      assert.deepEqual(config.warnings, [], `${name}: ${service}`);
      assert.equal(String(config.port), exposed);
      for (const port of definition.ports ?? []) {
        assert.ok(port.endsWith(`:${exposed}`), `${name}: ${port}`);
        const isLocal = port.startsWith("127.0.0.1:");
        assert.ok(isLocal || config.accounts !== undefined, `${name}: ${port} is open to everyone`);
      }
      // The database of the image is in the volume.
      if (config.databaseUrl.startsWith("file:")) assert.match(definition.volumes?.join() ?? "", /:\/data$/, name);
    }
  }
});

test("compose files: containers of Earmark → read-only, without capabilities", () => {
  for (const name of COMPOSE_FILES)
    for (const [service, definition] of servicesOf(name).filter(([, each]) => isEarmark(each))) {
      const { read_only, cap_drop, security_opt, tmpfs } = definition as unknown as Record<string, unknown>;
      assert.deepEqual(
        [read_only, cap_drop, security_opt, tmpfs],
        [true, ["ALL"], ["no-new-privileges:true"], ["/tmp"]],
        `${name}: ${service}`,
      );
    }
});

test("compose files: variables → explained in the comments", () => {
  for (const name of COMPOSE_FILES) {
    const text = readDeployed(name);
    const comments = text.replaceAll(/^(?!\s*#).*$/gm, "");
    // What the image is, compose.yml and hosting.md explain.
    for (const variable of variablesOf(text).filter((each) => each !== "EARMARK_IMAGE"))
      assert.ok(comments.includes(variable), `${name}: ${variable}`);
  }
  assert.ok(read("docs/hosting.md").includes("EARMARK_IMAGE=earmark"));
});

test("compose.accounts.yml: names and addresses → only the proxy is reachable and trusted", () => {
  const { proxy, earmark } = readCompose("compose.accounts.yml", REQUIRED).services;
  assert.ok(proxy !== undefined && earmark !== undefined);
  const config = readConfig({ ...IMAGE_SETTINGS, ...earmark.environment }, "/");
  assert.equal(config.publicUrl, "https://pods.example");
  assert.deepEqual(config.allowedHosts, ["pods.example"]);
  assert.equal(proxy.networks?.["inside"]?.ipv4_address, config.trustedProxies.join());
  assert.equal(earmark.ports, undefined);
  assert.equal(proxy.read_only, true);
  // Identical to deploy/Caddyfile except for the addresses; `npm run test:proxies` has Caddy read it.
  const [, site = ""] = /\nearmark\.example (\{\n[\s\S]*?\n\})\n/.exec(readDeployed("Caddyfile")) ?? [];
  const plain = (lines: string) => lines.replaceAll(/#.*/g, "").replaceAll(/\s+/g, " ").trim();
  const caddyfile = proxy.environment?.["CADDYFILE"] ?? "";
  assert.equal(plain(caddyfile), `pods.example ${plain(site).replace("127.0.0.1:8080", "earmark:8080")}`);
  const command = (proxy.command?.at(-1) ?? "").replace(/exec caddy .*\/tmp\/Caddyfile$/, "cat /tmp/Caddyfile");
  const folder = temporaryFolder();
  const { stdout } = spawnSync("sh", ["-c", command.replaceAll("/tmp/", `${folder}/`)], {
    env: cleanEnvironment({ CADDYFILE: caddyfile }),
    encoding: "utf8",
  });
  assert.equal(stdout, caddyfile);
});

test("compose.lan.yml: port, folder and user of a NAS → those of both containers", () => {
  const variables = {
    EARMARK_PORT: "127.0.0.1:8080",
    EARMARK_DATA: "/mnt/cache/appdata/earmark",
    EARMARK_USER: "99:100",
  };
  const { earmark, backup } = readCompose("compose.lan.yml", variables).services;
  assert.deepEqual(earmark?.ports, ["127.0.0.1:8080:8080"]);
  for (const service of [earmark, backup]) {
    assert.equal(service?.user, "99:100");
    assert.deepEqual(service?.volumes, ["/mnt/cache/appdata/earmark:/data"]);
  }
});

test("compose.lan.yml: the backup container → a backup of the running server at once, and the shell goes on", async () => {
  const { backup, earmark } = readCompose("compose.lan.yml", REQUIRED).services;
  const folder = temporaryFolder();
  const DATABASE_URL = `file:${join(folder, "earmark.db")}`;
  const settings = { ...IMAGE_SETTINGS, ...backup?.environment, DATABASE_URL };
  const server = await startServer({ ...earmark?.environment, DATABASE_URL });
  await run(["user", "add", "ann", "--password-stdin"], settings, undefined, "correct horse battery");
  const [shell = "", ...args] = backup?.command ?? [];
  const child = spawn(
    shell,
    args.map((arg) => arg.replaceAll("/data/", `${folder}/`)),
    {
      cwd: ROOT,
      env: cleanEnvironment(settings),
      detached: true,
      stdio: "ignore",
    },
  );
  const ended = once(child, "exit");
  try {
    const backups = join(folder, "backups");
    mkdirSync(backups, { recursive: true });
    for (let tries = 0; readdirSync(backups).filter((name) => name.endsWith(".db")).length === 0; tries += 1) {
      assert.ok(tries < 200 && child.exitCode === null, "no backup");
      await sleep(100);
    }
    const [file = ""] = readdirSync(backups);
    const restored = { DATABASE_URL: `file:${join(folder, "restored.db")}`, EARMARK_ACCOUNTS: "true" };
    const { code, stderr } = await run(["restore", "--keep-access", "--yes", join(backups, file)], restored);
    assert.equal(code, 0, stderr);
    const { stdout } = await run(["user", "list"], restored);
    assert.match(stdout, /^ann\b/m);
    assert.equal(child.exitCode, null, "it sleeps until the next one");
  } finally {
    process.kill(-(child.pid ?? assert.fail()), "SIGTERM");
    await ended;
    await server.call("GET", "/readyz");
  }
});

test("docs/hosting.md: commands in containers → they work with the settings of the image", async () => {
  const [, part = ""] = /^## Containers\n([\s\S]*?)^## /m.exec(read("docs/hosting.md")) ?? [];
  const lines = [...part.matchAll(/^docker (exec|run) .*$/gm)].map(([line, kind]) => ({ line, kind }));
  const folder = temporaryFolder();
  const settings = { ...IMAGE_SETTINGS, DATABASE_URL: `file:${join(folder, "earmark.db")}`, EARMARK_ACCOUNTS: "true" };
  await run(["user", "add", "ann", "--password-stdin"], settings, undefined, "correct horse battery");
  let commands = 0;
  for (const { line, kind } of lines) {
    const [, inside] = /^docker \w+ (?:.*ghcr\.io\S+|earmark) ?(.*)$/.exec(line) ?? assert.fail(line);
    if (inside === undefined || inside === "") {
      assert.match(line, / -p 8080:8080 .* -e EARMARK_ACCOUNTS=true /);
      continue;
    }
    const [backup] = inside.includes(" restore ") ? readdirSync(join(folder, "backups")) : [];
    const command = inside.replaceAll("/data", folder).replace(/earmark-\d{4}\S+\.db$/, (name) => {
      assert.equal(name.replaceAll(/\d/g, "0"), backup?.replaceAll(/\d/g, "0"), "the name of a backup");
      return `${backup} --yes --keep-access`;
    });
    // `docker run` sets only what it names.
    const given =
      kind === "exec" ? settings : Object.fromEntries([...line.matchAll(/ -e (\w+)=(\w+)/g)].map((e) => e.slice(1)));
    const env = cleanEnvironment({ ...IMAGE_SETTINGS, ...given, DATABASE_URL: settings.DATABASE_URL });
    const { status, stdout, stderr } = spawnSync("sh", ["-c", command], { cwd: ROOT, env, encoding: "utf8" });
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    commands += 1;
  }
  assert.ok(commands >= 5, `only ${commands} commands`);
});

test("release workflow: the image → the tags that the compose files and the documentation use", () => {
  const workflow = read(".github/workflows/release.yml");
  assert.match(workflow, /image=ghcr\.io\/\$\{GITHUB_REPOSITORY@L\}/);
  for (const tag of ["version", "minor", "major"])
    assert.ok(workflow.includes(`\${{ steps.name.outputs.image }}:\${{ steps.name.outputs.${tag} }}`), tag);
  assert.match(workflow, /^ +\$\{\{ steps\.name\.outputs\.image \}\}:latest$/m);
  const [, script = ""] = /- id: name\n\s+run: \|\n((?: {10}.*\n)+)/.exec(workflow) ?? [];
  const output = join(temporaryFolder(), "output");
  const env = { ...cleanEnvironment({}), GITHUB_REPOSITORY: "Earmark/Earmark", GITHUB_REF_NAME: "v0.3.1" };
  const { status, stderr } = spawnSync("bash", ["-euc", script], { env: { ...env, GITHUB_OUTPUT: output } });
  assert.equal(status, 0, String(stderr));
  assert.deepEqual(readFileSync(output, "utf8").trim().split("\n"), [
    `image=ghcr.io/${REPOSITORY}`,
    "version=0.3.1",
    "minor=0.3",
    "major=0",
  ]);
});

test("documentation and examples: image and repository → the same names everywhere", () => {
  const pages = ["README.md", "RELEASING.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)];
  const deployed = readdirSync(join(ROOT, "deploy"), { recursive: true }).map((name) => `deploy/${name}`);
  let names = 0;
  for (const name of [...pages, ...deployed].filter((each) => /\.(md|yml|toml|xml|json)$/.test(each))) {
    for (const [found, path] of read(name).matchAll(/(?:ghcr\.io|github\.com)\/(earmark[\w-]*\/\w+)/gi)) {
      assert.equal(path, REPOSITORY, `${name}: ${found}`);
      names += 1;
    }
  }
  assert.ok(names > 20, `only ${names} were found`);
  const commandOf = (page: string) => /^docker run -d .*$/m.exec(read(page))?.[0];
  assert.notEqual(commandOf("README.md"), undefined);
  assert.equal(commandOf("README.md"), commandOf("docs/hosting.md"));
});
