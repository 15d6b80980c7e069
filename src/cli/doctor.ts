import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import { readBounded } from "../http/wire/read-bounded.ts";
import { inspectDatabase } from "../store/open.ts";
import type { Finding } from "../store/shared/options.ts";
import { findBackups } from "./backup-folder.ts";
import { healthcheck, reasonOf } from "./healthcheck.ts";
import { pluralize, type Terminal } from "./terminal.ts";

const EARLIEST_PLAUSIBLE = Date.UTC(2026, 0, 1);

/** Checks everything that a server needs and prints what to do. Returns whether there were no errors. */
export async function doctor(terminal: Terminal, server: string | undefined, asJson: boolean): Promise<boolean> {
  const config = terminal.context.config();
  const findings: Finding[] = [
    { state: "ok", what: `Earmark ${terminal.context.version} on Node ${process.versions.node}` },
    { state: "ok", what: "The settings are valid" },
    checkClock(terminal.context.now()),
    ...(await inspectDatabase(config.databaseUrl)),
    ...checkBackups(config.databaseUrl, terminal.context.now()),
    ...(await checkServer(config)),
    ...checkSettings(config),
    ...(await checkSignIn(config)),
    ...checkFetching(config),
    ...(server === undefined ? [] : await checkProxy(server)),
  ];
  for (const { state, what, advice } of findings) {
    if (asJson) await terminal.writeRecord({ state, what, advice: advice ?? null }, true);
    else await terminal.write(`${MARKS[state]} ${what}${advice === undefined ? "" : `\n    ${advice}`}\n`);
  }
  const errors = findings.filter(({ state }) => state === "error").length;
  const warnings = findings.filter(({ state }) => state === "warning").length;
  terminal.say(`${findings.length} checks: ${pluralize(errors, "error")}, ${pluralize(warnings, "warning")}.`);
  return errors === 0;
}

const MARKS = { ok: "ok     ", warning: "warning", error: "error  " } as const;

function checkClock(now: Date): Finding {
  if (now.getTime() >= EARLIEST_PLAUSIBLE) return { state: "ok", what: `The clock reads ${now.toISOString()}` };
  return {
    state: "error",
    what: `The clock reads ${now.toISOString()}`,
    advice: "Set the clock: timestamps and the expiry of sessions depend on it.",
  };
}

const HOUR_MS = 60 * 60 * 1_000;
/** Long enough that one failed nightly backup is not reported, but two in a row are. */
const OLD_HOURS = 48;
/** Where the timer of the Debian package puts backups. */
const PACKAGE_FOLDER = "/var/lib/earmark/backups";

/** Checks the folder `backups` next to the database, where the timer puts backups. */
function checkBackups(databaseUrl: string, now: Date): Finding[] {
  const path = /^file:(.*)$/s.exec(databaseUrl)?.[1];
  const folder = path === undefined ? PACKAGE_FOLDER : join(dirname(path), "backups");
  if (!existsSync(folder)) return [];
  const advice = `Run \`earmark backup --keep 14 ${folder}\` every day, for example with a timer.`;
  try {
    const [newest] = findBackups(folder);
    if (newest === undefined) return [{ state: "warning", what: `No backup in ${folder}`, advice }];
    const hours = Math.floor((now.getTime() - newest.at.getTime()) / HOUR_MS);
    const age = hours < OLD_HOURS ? pluralize(hours, "hour") : pluralize(Math.floor(hours / 24), "day");
    const what = `The newest backup in ${folder} is ${age} old`;
    return [hours < OLD_HOURS ? { state: "ok", what } : { state: "warning", what, advice }];
  } catch (error) {
    return [{ state: "warning", what: `Backups in ${folder} cannot be checked (${reasonOf(error)})` }];
  }
}

async function checkServer(config: Config): Promise<Finding[]> {
  const { ready, message } = await healthcheck(config);
  if (ready) return [{ state: "ok", what: `A server is ready on ${config.host}, port ${config.port}` }];
  return [
    {
      state: "warning",
      what: `The server on ${config.host}, port ${config.port} is ${message}`,
      advice: "Start it: earmark serve",
    },
  ];
}

function checkSettings({ accounts, trustedProxies, host, allowedHosts }: Config): Finding[] {
  if (accounts === undefined) {
    if (host === "127.0.0.1" || host === "localhost" || host === "::1" || allowedHosts.length > 0) return [];
    return [
      {
        state: "warning",
        what: `Anyone who can reach ${host} can read and change the list`,
        advice: "Set EARMARK_ACCOUNTS=true unless this is intended.",
      },
    ];
  }
  if (trustedProxies.length > 0) return [{ state: "ok", what: `Trusted proxies: ${trustedProxies.join(", ")}` }];
  return [
    {
      state: "warning",
      what: "Accounts are on, but no proxy is trusted",
      advice:
        "If the server is behind a reverse proxy, set EARMARK_TRUSTED_PROXIES to its address; if you don't, all clients share one limit on failed sign-ins.",
    },
  ];
}

/** How people sign in other than with a password. */
async function checkSignIn({ accounts, trustedProxies }: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  if (accounts?.oidc !== undefined) findings.push(await checkIdentityProvider(accounts.oidc.issuer));
  if (accounts?.authHeader !== undefined)
    findings.push({
      state: "ok",
      what: `The header ${accounts.authHeader} from ${trustedProxies.join(", ")} signs users in`,
      advice: "The proxy must remove this header from client requests.",
    });
  return findings;
}

const MAX_DISCOVERY_BYTES = 256 * 1024;

async function checkIdentityProvider(issuer: string): Promise<Finding> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const advice = "Check EARMARK_OIDC_ISSUER, and that this machine can reach the provider.";
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.status !== 200) return { state: "error", what: `${url} returns ${response.status}`, advice };
    const found = JSON.parse((await readBounded(response, MAX_DISCOVERY_BYTES)).toString());
    if (found?.issuer === issuer) return { state: "ok", what: `The identity provider ${issuer} is reachable` };
    return { state: "error", what: `${url} names an issuer other than EARMARK_OIDC_ISSUER`, advice };
  } catch (error) {
    return { state: "error", what: `The identity provider is unreachable: ${url} (${reasonOf(error)})`, advice };
  }
}

const TIMEOUT_MS = 5_000;

function checkFetching({ fetch }: Config): Finding[] {
  if (fetch === undefined) return [{ state: "ok", what: "Feeds are not fetched (EARMARK_FETCH_FEEDS=false)" }];
  if (isInstalled("sharp")) return [{ state: "ok", what: "Feeds are fetched, with artwork" }];
  return [
    {
      state: "warning",
      what: "Feeds are fetched without artwork, because the package sharp is not installed",
      advice: "Run `npm install`.",
    },
  ];
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Checks that a proxy passes responses on unchanged. */
async function checkProxy(url: string): Promise<Finding[]> {
  const where = `${url.replace(/\/$/, "")}/healthz`;
  try {
    const response = await fetch(where, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: "manual" });
    await response.body?.cancel();
    if (response.status !== 200)
      return [
        {
          state: "error",
          what: `${where} returns ${response.status}`,
          advice: "Check the proxy and EARMARK_ALLOWED_HOSTS.",
        },
      ];
    const changed = Object.entries(EXPECTED).filter(([name, value]) => response.headers.get(name) !== value);
    const findings: Finding[] = [{ state: "ok", what: `${url} reaches Earmark` }];
    for (const [name] of changed)
      findings.push({
        state: "warning",
        what: `The proxy changes the header ${name}`,
        advice: "Configure it to pass headers on unchanged.",
      });
    if (!url.startsWith("https:"))
      findings.push({
        state: "warning",
        what: "Passwords and tokens are sent unencrypted",
        advice: "Use https. Passkeys work only with it, except on localhost.",
      });
    return findings;
  } catch (error) {
    return [
      {
        state: "error",
        what: `${where} is unreachable (${reasonOf(error)})`,
        advice: "Check the host name, the proxy and its certificate.",
      },
    ];
  }
}

const EXPECTED = {
  "content-type": "application/vnd.api+json",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};
