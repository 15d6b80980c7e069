import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { parse } from "smol-toml";
import { readConfig } from "../src/config/config.ts";
import { DEPLOY, IMAGE, IMAGE_SETTINGS, REPOSITORY, readCompose, readDeployed } from "./support/compose.ts";
import { cleanEnvironment, EARMARK } from "./support/process.ts";
import { temporaryFolder } from "./support/server.ts";
import { readStrictXml } from "./support/strict-xml.ts";

/** The packages for YunoHost, Unraid, CasaOS and Runtipi. None of these programs runs here. */
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const configOf = (environment: Readonly<Record<string, string>>) =>
  readConfig(environment, "/", { installation: "/", exists: () => false, read: () => assert.fail("names a file") });

interface Manifest {
  readonly version: string;
  readonly resources: {
    readonly sources: {
      readonly main: {
        readonly autoupdate: { readonly asset: Readonly<Record<string, string>> };
        readonly amd64: { readonly url: string };
        readonly arm64: { readonly url: string };
      };
    };
    readonly permissions: { readonly main: { readonly auth_header: boolean } };
  };
}

test("YunoHost: the manifest → this version, and the tarballs of its release", () => {
  const manifest = parse(readDeployed("yunohost/manifest.toml")) as unknown as Manifest;
  assert.equal(manifest.version, `${version}~ynh1`);
  const { main } = manifest.resources.sources;
  for (const [debian, node] of [
    ["amd64", "x64"],
    ["arm64", "arm64"],
  ] as const) {
    // As packaging/tarball.ts names it.
    const file = `earmark-${version}-linux-${node}.tar.gz`;
    assert.equal(main[debian].url, `https://github.com/${REPOSITORY}/releases/download/v${version}/${file}`);
    assert.match(file, new RegExp(main.autoupdate.asset[debian] ?? assert.fail()));
  }
  assert.equal(manifest.resources.permissions.main.auth_header, false);
  parse(readDeployed("yunohost/tests.toml"));
});

test("YunoHost: the settings, at a path and at the root of a domain → accepted", () => {
  for (const base of ["/earmark", ""]) {
    const values = { PORT: "8095", DATA_DIR: "/home/yunohost.app/earmark", DOMAIN: "pods.example", BASE_PATH: base };
    const text = readDeployed("yunohost/conf/earmark.env").replaceAll(
      /__([A-Z]+(?:_[A-Z]+)*)__/g,
      (_, name: keyof typeof values) => values[name] ?? assert.fail(name),
    );
    const config = configOf(parseEnv(text) as Record<string, string>);
    assert.deepEqual([config.basePath, config.publicUrl], [base, `https://pods.example${base}`]);
    assert.deepEqual([config.host, config.port, config.trustedProxies], ["127.0.0.1", 8095, ["127.0.0.1"]]);
    assert.notEqual(config.accounts, undefined);
    assert.deepEqual(config.warnings, []);
  }
});

test("YunoHost: nginx and systemd → the lines of deploy/nginx.conf and deploy/earmark.service", () => {
  const plain = (text: string) =>
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"));
  const [, location = ""] = /location \/earmark\/ \{\n([\s\S]*?)\n {2}\}/.exec(readDeployed("nginx.conf")) ?? [];
  const own = plain(readDeployed("yunohost/conf/nginx.conf")).slice(1, -1);
  assert.deepEqual(own, plain(location.replace("http://earmark", "http://127.0.0.1:__PORT__")));
  const unit = new Set(plain(readDeployed("earmark.service")));
  const others = plain(readDeployed("yunohost/conf/systemd.service")).filter((line) => !unit.has(line));
  for (const line of others) assert.match(line, /__[A-Z_]+__/);
});

/** YunoHost's helpers, as far as the scripts need them to run as this user and without systemd and nginx. */
const HELPERS = `
set -eu
for name in ynh_script_progression ynh_print_info ynh_setup_source ynh_config_add_nginx ynh_config_add_systemd ynh_backup \\
  ynh_restore ynh_systemctl ynh_config_change_url_nginx yunohost systemctl chown; do eval "$name() { :; }"; done
ynh_exec_as_app() { "$@"; }
ynh_safe_rm() { rm -rf "$1"; }
install() { cp "\${@: -2:1}" "\${@: -1}"; }
ynh_config_add() {
  sed "s@__PORT__@$port@; s@__DATA_DIR__@$data_dir@; s@__DOMAIN__@$domain@; s@__BASE_PATH__@$base_path@" \\
    "$CONF/\${1#*=}" > "\${2#*=}"
}
`;

test("YunoHost: install, backup, restore on a new system → the account is there again", () => {
  const folder = temporaryFolder();
  const scripts = fileURLToPath(new URL("yunohost/scripts/", DEPLOY));
  writeFileSync(join(folder, "helpers"), HELPERS);
  const runScript = (name: string, system: string) => {
    const [program, data, work] = ["program", "data", "work/settings/scripts"].map((part) =>
      join(folder, system, part),
    );
    for (const each of [program, data, work]) mkdirSync(each ?? "", { recursive: true });
    writeFileSync(join(program ?? "", "earmark"), `#!/bin/sh\nexec "${process.execPath}" "${EARMARK}" "$@"\n`, {
      mode: 0o755,
    });
    // Backups and restores run beside the settings, the others in the folder of the scripts.
    const cwd = join(folder, system, "work", /backup|restore/.test(name) ? "backup" : "settings/scripts");
    mkdirSync(cwd, { recursive: true });
    for (const script of readdirSync(scripts)) {
      const text = readFileSync(join(scripts, script), "utf8").replace("/usr/share/yunohost/", `${folder}/`);
      writeFileSync(join(work ?? "", script), text);
    }
    const variables = { app: "earmark", domain: "pods.example", path: "/", port: "8095", admin: "ann" };
    const { status, stdout, stderr } = spawnSync("bash", [join(work ?? "", name)], {
      cwd,
      encoding: "utf8",
      env: cleanEnvironment({
        ...variables,
        password: "correct horse battery",
        install_dir: program ?? "",
        data_dir: data ?? "",
        CONF: fileURLToPath(new URL("yunohost/conf", DEPLOY)),
      }),
    });
    assert.equal(status, 0, `${name}: ${stdout}${stderr}`);
    return cwd;
  };
  runScript("install", "old");
  const backup = join(runScript("backup", "old"), "earmark.db");
  mkdirSync(join(folder, "new/work/backup"), { recursive: true });
  copyFileSync(backup, join(folder, "new/work/backup/earmark.db"));
  // YunoHost restores the program with its settings.
  mkdirSync(join(folder, "new/program"), { recursive: true });
  const settings = readFileSync(join(folder, "old/program/earmark.env"), "utf8");
  writeFileSync(join(folder, "new/program/earmark.env"), settings.replace("/old/data/", "/new/data/"));
  runScript("restore", "new");
  for (const name of ["change_url", "upgrade"]) runScript(name, "new");
  assert.deepEqual(
    readdirSync(join(folder, "new/data")).filter((name) => name.includes("backup")),
    [],
  );
  const users = spawnSync(process.execPath, [EARMARK, "user", "list"], {
    encoding: "utf8",
    env: cleanEnvironment({ DATABASE_URL: `file:${join(folder, "new/data/earmark.db")}` }),
  });
  assert.match(users.stdout, /^ann\b/m, users.stderr);
});

test("Unraid: the template → settings and port of the image", () => {
  const container = readStrictXml(readDeployed("unraid/earmark.xml"));
  const textOf = (name: string) => container.children.find((each) => each.name === name)?.text ?? assert.fail(name);
  assert.equal(textOf("Repository"), `${IMAGE}:0`);
  assert.match(textOf("ExtraParams"), /--user 99:100 --read-only --tmpfs \/tmp /);
  const configs = container.children.filter(({ name }) => name === "Config").map(({ attributes }) => attributes);
  const byType = (type: string) => configs.filter(({ Type }) => Type === type);
  assert.deepEqual(
    byType("Port").map(({ Target }) => Target),
    [IMAGE_SETTINGS["PORT"]],
  );
  assert.ok(textOf("WebUI").includes(`[PORT:${IMAGE_SETTINGS["PORT"]}]`));
  assert.deepEqual(
    byType("Path").map(({ Target }) => Target),
    ["/data"],
  );
  const variables = byType("Variable").map(({ Target = "", Default = "" }) => [Target, Default]);
  const config = configOf({ ...IMAGE_SETTINGS, ...Object.fromEntries(variables) });
  assert.notEqual(config.accounts, undefined);
});

test("CasaOS, Runtipi: compose files and metadata → the same service, port and version", () => {
  const { services, "x-casaos": casa } = readCompose("casaos/docker-compose.yml") as ReturnType<typeof readCompose> & {
    readonly "x-casaos": Readonly<Record<string, string>>;
  };
  const main = services[casa["main"] ?? ""];
  assert.equal(main?.image, `${IMAGE}:${version}`);
  assert.deepEqual(main?.ports, [`${casa["port_map"]}:${IMAGE_SETTINGS["PORT"]}`]);
  assert.equal(casa["version"], version);

  const tipi = JSON.parse(readDeployed("runtipi/config.json"));
  const app = readCompose("runtipi/docker-compose.yml", { APP_DATA_DIR: "/data/earmark" }).services["earmark"];
  assert.equal(app?.image, `${IMAGE}:${version}`);
  assert.equal(tipi.version, version);
  const { "x-runtipi": port } = app as unknown as { "x-runtipi": { internal_port: number } };
  assert.equal(String(port.internal_port), IMAGE_SETTINGS["PORT"]);
  assert.deepEqual([tipi.uid, tipi.gid], [1000, 1000], "the user of the image");
});
