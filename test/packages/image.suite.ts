import assert from "node:assert/strict";
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createRoot } from "../support/clean-root.ts";
import { freePort } from "../support/postgres-cluster.ts";
import { start } from "../support/process.ts";
import { callServer, temporaryFolder } from "../support/server.ts";

/**
 * The image of deploy/Dockerfile, built by buildah without a daemon. Needs root and the npm registry. If no image registry
 * is reachable, a Debian with Node and npm stands in for the base image; that needs debootstrap.
 */
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BASE = /^FROM (\S+)/m.exec(readFileSync(join(ROOT, "deploy", "Dockerfile"), "utf8"))?.[1] ?? "";
const folder = temporaryFolder();
const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];

function buildah(...args: readonly string[]): string {
  const { status, stdout, stderr, error } = tryBuildah(...args);
  assert.equal(error, undefined, "buildah is not installed. On Debian: apt-get install buildah");
  assert.equal(status, 0, `buildah ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout.trim();
}

function tryBuildah(...args: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync("buildah", [...storage, ...args], { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 26 });
}

/** Debian with this Node, this npm and its settings, and the user that the official image has. */
function buildStandIn(): void {
  const root = createRoot(folder, ["ca-certificates", "libatomic1", "libstdc++6"]);
  const npm = dirname(dirname(process.env["npm_execpath"] ?? assert.fail("run it with npm run test:packages")));
  cpSync(process.execPath, join(root, "usr/local/bin/node"));
  mkdirSync(join(root, "usr/local/lib/node_modules"), { recursive: true });
  cpSync(npm, join(root, "usr/local/lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm"));
  appendFileSync(join(root, "etc/passwd"), "node:x:1000:1000::/home/node:/bin/sh\n");
  appendFileSync(join(root, "etc/group"), "node:x:1000:\n");
  const { stdout: registry } = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8" });
  writeFileSync(join(root, "root/.npmrc"), `registry=${registry}`);
  const container = buildah("from", "scratch");
  buildah("add", container, root, "/");
  const certificates = process.env["NODE_EXTRA_CA_CERTS"];
  if (certificates !== undefined) {
    buildah("add", container, certificates, "/etc/ca.pem");
    buildah("config", "--env", "NODE_EXTRA_CA_CERTS=/etc/ca.pem", container);
  }
  buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container);
  buildah("commit", container, `docker.io/library/${BASE}`);
}

if (tryBuildah("pull", `docker.io/library/${BASE}`).status !== 0) buildStandIn();
buildah("build", "--isolation", "chroot", "--pull-never", "-f", "deploy/Dockerfile", "-t", "earmark", ".");
const container = buildah("from", "--pull-never", "earmark");
// The vfs driver mounts nothing: this is a folder, deleted with the others.
const root = buildah("mount", container);

/** The configuration of an OCI image. */
interface ImageConfig {
  readonly User: string;
  readonly WorkingDir: string;
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly Volumes: object;
  readonly StopSignal: string;
}
const config: ImageConfig = JSON.parse(buildah("inspect", "--type", "image", "earmark")).OCIv1.config;

test("image: its configuration → not root, data in a volume, stopped by a signal that the server handles", () => {
  assert.equal(config.User, "node");
  assert.deepEqual(Object.keys(config.Volumes), ["/data"]);
  assert.equal(config.StopSignal, "SIGTERM");
});

test("image: the folder of the data → any user may write to a new volume", () => {
  assert.equal(statSync(join(root, "data")).mode & 0o7777, 0o1777);
});

// The user of the image, and the one that Unraid gives to containers.
for (const [uid, gid] of [
  [1000, 1000],
  [99, 100],
] as const)
  test(`image: its command as user ${uid}, with a read-only root → serves, and the health check passes`, async () => {
    const data = join(folder, `data-${uid}`);
    mkdirSync(data);
    chownSync(data, uid, gid);
    // What a container engine does with a volume and `read_only: true`.
    const enter = `
    mount --make-rprivate / && mount --bind "${root}" "${root}" && mount --rbind /dev "${root}/dev" &&
    mount -t proc proc "${root}/proc" && mount --bind "${data}" "${root}/data" &&
    mount -o remount,bind,ro "${root}" &&
    exec chroot --userspec=${uid}:${gid} "${root}" env --chdir="${config.WorkingDir}" "$@"`;
    const command = (...args: readonly string[]) => ["unshare", "--mount", "sh", "-c", enter, "sh", ...args];
    const environment = Object.fromEntries(config.Env.map((line) => line.split(/=(.*)/s, 2)));
    const port = await freePort();
    const PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    const settings = { ...environment, PATH, HOST: "127.0.0.1", PORT: String(port) };
    const server = await start(settings, command(...config.Cmd));
    assert.equal((await callServer(port, "GET", "/")).status, 200);
    const healthcheck = command("node", "bin/earmark", "healthcheck");
    assert.equal(spawnSync(healthcheck[0] ?? "", healthcheck.slice(1), { env: settings }).status, 0);
    server.child.kill();
    assert.equal(await server.ended, 0, server.output());
    assert.equal(statSync(join(data, "earmark.db")).uid, uid);
  });
