import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const BOOT = fileURLToPath(new URL("../packages/boot.sh", import.meta.url));

/** A Debian system with nothing but its base, systemd and the given packages, as apt of this machine gets them. */
export function createRoot(folder: string, packages: readonly string[]): string {
  const root = join(folder, "root");
  const codename = /^VERSION_CODENAME=(.+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "";
  const targets = execFileSync("apt-get", ["indextargets", "--format", "$(RELEASE) $(SITE)"], { encoding: "utf8" });
  const mirror = targets
    .split("\n")
    .find((line) => line.startsWith(`${codename} `))
    ?.slice(codename.length + 1);
  assert.ok(mirror, `apt has no mirror of ${codename}`);
  const include = `--include=${["systemd", "systemd-sysv", ...packages].join(",")}`;
  const { status, stdout } = spawnSync("debootstrap", ["--variant=minbase", include, codename, root, mirror], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout.slice(-2_000));
  return root;
}

export interface BootedSystem {
  /** Runs a shell command in it; fails unless its exit code is 0. Returns its output. */
  readonly run: (command: string) => string;
  readonly stop: () => Promise<void>;
}

/** Boots it with systemd as process 1. */
export async function boot(root: string): Promise<BootedSystem> {
  const child = spawn("sh", [BOOT, root], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const ended = once(child, "exit");
  const ask = (command: string) => {
    const enter = ["-t", onlyChildOf(onlyChildOf(String(child.pid))), "-m", "-p", "-u", "-i", "-n", "-C"];
    const environment = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "sh", "-c", command];
    return spawnSync("nsenter", [...enter, ...environment], { encoding: "utf8" });
  };
  for (let tries = 0; ; tries += 1) {
    if (/running|degraded/.test(ask("systemctl is-system-running").stdout)) break;
    assert.ok(tries < 300 && child.exitCode === null, `systemd did not start: ${output}`);
    await sleep(100);
  }
  return {
    run(command) {
      const { status, stdout, stderr } = ask(command);
      assert.equal(status, 0, `${command}: ${stdout}${stderr}`);
      return stdout + stderr;
    },
    async stop() {
      child.kill();
      await ended;
    },
  };
}

function onlyChildOf(pid: string): string {
  return spawnSync("pgrep", ["-P", pid], { encoding: "utf8" }).stdout.trim();
}
