import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { json, PASSWORD } from "../support/browser-requests.ts";
import { run, start } from "../support/process.ts";
import { callServer, PLAIN, temporaryFolder } from "../support/server.ts";

/** The files in deploy/, read by the programs they are for. Not part of `npm test`: these must be installed. */
const DEPLOY = fileURLToPath(new URL("../../deploy/", import.meta.url));
const UNITS = ["earmark.service", "earmark-backup.service", "earmark-backup.timer"];
const SERVICES = UNITS.filter((name) => name.endsWith(".service"));

function call(program: string, debianPackage: string, args: readonly string[]) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  assert.equal(error, undefined, `${program} is not installed. On Debian: apt-get install ${debianPackage}`);
  return { status, output: stdout + stderr };
}

test("systemd-analyze verify: the units of the package → no complaint", () => {
  const folder = temporaryFolder();
  const program = join(folder, "earmark");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  for (const unit of UNITS) {
    const text = readFileSync(join(DEPLOY, unit), "utf8");
    writeFileSync(join(folder, unit), text.replaceAll("/usr/lib/earmark/earmark", program));
  }
  const files = UNITS.map((unit) => join(folder, unit));
  assert.deepEqual(call("systemd-analyze", "systemd", ["verify", "--man=no", ...files]), { status: 0, output: "" });
});

for (const service of SERVICES)
  test(`systemd-analyze security: ${service} → exposure below 2.0`, () => {
    const { output } = call("systemd-analyze", "systemd", ["security", "--offline=true", join(DEPLOY, service)]);
    const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(output)?.[1]);
    assert.ok(exposure < 2, output);
  });

test("promtool: the alert rules → valid", () => {
  const { status, output } = call("promtool", "prometheus", ["check", "rules", join(DEPLOY, "alerts.yml")]);
  assert.equal(status, 0, output);
});

test("promtool: a server that is down, and password guessing → alerts", () => {
  const folder = temporaryFolder();
  copyFileSync(join(DEPLOY, "alerts.yml"), join(folder, "alerts.yml"));
  const rules = join(folder, "test.yml");
  writeFileSync(
    rules,
    `rule_files: [alerts.yml]
tests:
  - interval: 1m
    input_series:
      - { series: 'up{job="earmark",instance="a"}', values: "1 0 0 0 0 0 0 0 0 0 0 0" }
      - { series: 'earmark_failed_sign_ins_total{job="earmark",instance="a"}', values: "0+100x20" }
    alert_rule_test:
      - { eval_time: 2m, alertname: EarmarkDown }
      - eval_time: 4m
        alertname: EarmarkDown
        exp_alerts:
          - exp_labels: { severity: critical, job: earmark, instance: a }
            exp_annotations:
              summary: Earmark on a is down
              description: See the log (journalctl -u earmark) and run earmark doctor.
      - eval_time: 12m
        alertname: EarmarkSignInsFail
        exp_alerts:
          - exp_labels: { severity: warning }
            exp_annotations:
              summary: More than 30 failed sign-ins per minute
              description: Somebody may be guessing passwords; the log has the address of each attempt.
`,
  );
  const { status, output } = call("promtool", "prometheus", ["test", "rules", rules]);
  assert.equal(status, 0, output);
});

test("promtool: the metrics of a server → valid", async () => {
  const DATABASE_URL = `file:${temporaryFolder()}/earmark.db`;
  const server = await start({ DATABASE_URL, EARMARK_METRICS: "true" });
  const { text } = await callServer(server.port, "GET", "/metrics");
  const { stderr } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  // Its advice on names that are Node's own.
  const complaints = stderr.split("\n").filter((line) => line !== "" && !/^(nodejs|process)_/.test(line));
  assert.deepEqual(complaints, []);
});

test("fail2ban: the log of a server → exactly the failed sign-ins, with their addresses", async () => {
  const folder = temporaryFolder();
  const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}`, EARMARK_ACCOUNTS: "true" };
  await run(["user", "add", "ann", "--password-stdin"], settings, undefined, PASSWORD);
  const server = await start({ ...settings, EARMARK_TRUSTED_PROXIES: "127.0.0.1", EARMARK_LOG_LEVEL: "debug" });
  const signIn = (name: string, password: string, client: string) =>
    callServer(server.port, "POST", "/v1/sessions", {
      headers: { "Content-Type": PLAIN, "X-Forwarded-For": client, "X-Forwarded-Proto": "https" },
      body: json("session", { name, password }),
    });
  await signIn("ann", PASSWORD, "203.0.113.1");
  await signIn("ann", "invalid password", "203.0.113.2");
  await signIn('x","client":"203.0.113.66","msg":"failed sign-in"}', "invalid password", "2001:db8::3");
  const headers = { Authorization: `Basic ${btoa("ann:invalid")}`, "X-Forwarded-For": "203.0.113.4" };
  await callServer(server.port, "GET", "/api/2/devices/ann.json", { headers });
  server.child.kill();
  await server.ended;
  const log = join(folder, "earmark.log");
  // The second half is as the journal shows it.
  const lines = server.output().trim();
  writeFileSync(log, `${lines}\n${lines.replaceAll(/^/gm, "host earmark[123]: ")}\n`);
  mkdirSync(join(folder, "filter.d"));
  const filter = join(folder, "filter.d", "earmark.conf");
  copyFileSync(join(DEPLOY, "fail2ban", "filter.conf"), filter);
  const { output } = call("fail2ban-regex", "fail2ban", ["--out", "ip", log, filter]);
  const found = output.trim().split("\n");
  const expected = ["203.0.113.2", "2001:db8::3", "203.0.113.4"];
  assert.deepEqual(found, [...expected, ...expected]);
});
