import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { boot, createRoot } from "../support/clean-root.ts";
import { temporaryFolder } from "../support/server.ts";

/**
 * The Debian package in a new Debian system, under a real systemd. Needs root, debootstrap, dpkg-deb, ip, nsenter and
 * unshare, and the mirror of this machine's apt.
 */
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { version, author } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  version: string;
  author: string;
};
const architecture = execFileSync("dpkg", ["--print-architecture"], { encoding: "utf8" }).trim();
const folder = temporaryFolder();

execFileSync("npm", ["run", "package:deb"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
const root = createRoot(folder, ["adduser", "libatomic1", "libstdc++6"]);
cpSync(join(ROOT, "packages", `earmark_${version}_${architecture}.deb`), join(root, "root", "first.deb"));
makeNextVersion(join(root, "root", "first.deb"), join(root, "root", "next.deb"));
const system = await boot(root);
after(() => system.stop());

/** The same package with a higher version. */
function makeNextVersion(from: string, to: string): void {
  const content = join(folder, "next");
  execFileSync("dpkg-deb", ["-R", from, content]);
  const replace = (path: string, old: string, next: string) => {
    const text = readFileSync(join(content, path), "utf8");
    assert.ok(text.includes(old));
    writeFileSync(join(content, path), text.replace(old, next));
  };
  replace("DEBIAN/control", `Version: ${version}`, `Version: ${version}+next`);
  replace("usr/lib/earmark/package.json", `"version": "${version}"`, `"version": "${version}-next"`);
  execFileSync("dpkg-deb", ["-Znone", "--root-owner-group", "-b", content, to], { stdio: "ignore" });
}

const RETRY = "for i in $(seq 100); do earmark healthcheck --quiet && exit 0; sleep 0.1; done; exit 1";

test("debian: the package is installed → the service runs with its hardening, as its own user", () => {
  system.run("dpkg -i /root/first.deb");
  system.run(RETRY);
  assert.equal(system.run("systemctl is-active earmark earmark-backup.timer"), "active\nactive\n");
  assert.equal(system.run("systemctl is-enabled earmark earmark-backup.timer"), "enabled\nenabled\n");
  assert.equal(system.run("systemctl show -p OOMPolicy --value earmark"), "continue\n");
  assert.equal(system.run("stat -c %U /proc/$(systemctl show -p MainPID --value earmark)"), "earmark\n");
  assert.match(
    system.run("grep -E 'Seccomp:|NoNewPrivs' /proc/$(systemctl show -p MainPID --value earmark)/status"),
    /NoNewPrivs:\s1\nSeccomp:\s2/,
  );
  assert.equal(
    system.run("stat -c '%a %U:%G' /etc/earmark/earmark.env /var/lib/earmark"),
    "640 root:earmark\n700 earmark:earmark\n",
  );
  assert.match(system.run("journalctl -t earmark --no-pager"), /\/join\?first#emi_/);
  assert.ok(system.run("dpkg --status earmark").includes(`\nMaintainer: ${author}\n`));
});

test("debian: commands as root → the service's database and user", () => {
  system.run("echo 'correct horse battery' | earmark user add ann --password-stdin");
  assert.match(system.run("earmark user list"), /^ann\t/m);
  assert.match(system.run("earmark doctor"), /A server is ready on 127\.0\.0\.1, port 8080/);
  assert.equal(system.run("find /var/lib/earmark /var/cache/earmark ! -user earmark"), "");
  assert.match(system.run("ls /var/cache/earmark"), /^v\d+/);
  assert.equal(system.run("find /usr/lib/earmark -name .cache -o ! -user root"), "");
});

test("debian: the backup service → a verified backup in its folder", () => {
  system.run("systemctl start earmark-backup");
  assert.match(system.run("ls /var/lib/earmark/backups"), /^earmark-[\dTZ.-]+\.db\n$/);
  assert.match(system.run("journalctl -t earmark --no-pager"), /Backed up .* verified/);
});

test("debian: an upgrade → restarts the service, keeps data and changed settings", () => {
  const pid = system.run("systemctl show -p MainPID --value earmark");
  system.run("echo PORT=8090 >> /etc/earmark/earmark.env");
  system.run("dpkg -i /root/next.deb");
  system.run(RETRY);
  assert.notEqual(system.run("systemctl show -p MainPID --value earmark"), pid);
  assert.equal(system.run("earmark --version"), `${version}-next\n`);
  assert.match(system.run("earmark doctor"), /port 8090/);
  assert.match(system.run("earmark user list"), /^ann\t/m);
});

test("debian: a disabled service → stays disabled and stopped after an upgrade", () => {
  system.run("systemctl disable --now earmark && dpkg -i /root/next.deb");
  assert.match(system.run("systemctl is-enabled earmark || true"), /disabled/);
  assert.match(system.run("systemctl is-active earmark || true"), /inactive/);
  system.run("systemctl enable --now earmark");
});

test("debian: invalid settings → the service says so once and stays down", () => {
  system.run("echo PORT=x >> /etc/earmark/earmark.env && systemctl restart earmark || true");
  system.run("for i in $(seq 100); do systemctl is-failed --quiet earmark && exit 0; sleep 0.1; done; exit 1");
  assert.match(system.run("systemctl show -p ExecMainStatus -p NRestarts earmark"), /NRestarts=0\nExecMainStatus=78/);
  system.run("sed -i '$d' /etc/earmark/earmark.env && systemctl restart earmark");
});

test("debian: removed and purged → program and settings are gone, the data stays", () => {
  system.run("dpkg -r earmark");
  assert.match(system.run("systemctl is-active earmark || true"), /inactive/);
  assert.match(system.run("dpkg -P earmark"), /still in \/var\/lib\/earmark/);
  assert.equal(
    system.run("ls -d /usr/lib/earmark /usr/bin/earmark /etc/earmark /var/cache/earmark 2>/dev/null || true"),
    "",
  );
  assert.match(system.run("ls /var/lib/earmark"), /earmark\.db/);
  assert.equal(system.run("systemctl list-unit-files | grep earmark || true"), "");
  // Installed again, it finds its data.
  system.run("dpkg -i /root/first.deb");
  system.run(RETRY);
  assert.match(system.run("earmark user list"), /^ann\t/m);
});
