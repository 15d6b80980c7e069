import type { Config } from "../config.ts";
import { inspectDatabase } from "../store/engines.ts";
import type { Finding } from "../store/store-options.ts";
import { healthcheck } from "./healthcheck.ts";
import { count, type Terminal } from "./terminal.ts";

const EARLIEST = Date.UTC(2026, 0, 1);

/** Checks everything that a server needs and prints what to do. Returns whether there were no errors. */
export async function doctor(terminal: Terminal, server: string | undefined, asJson: boolean): Promise<boolean> {
  const config = terminal.context.config();
  const findings: Finding[] = [
    { state: "ok", what: `Earmark ${terminal.context.version} on Node ${process.versions.node}` },
    { state: "ok", what: "The settings are valid" },
    clock(terminal.context.now()),
    ...(await inspectDatabase(config.databaseUrl)),
    ...(await running(config)),
    ...settings(config),
    ...fetching(config),
    ...(server === undefined ? [] : await proxy(server)),
  ];
  for (const { state, what, advice } of findings) {
    if (asJson) await terminal.line({ state, what, advice: advice ?? null }, true);
    else await terminal.write(`${MARKS[state]} ${what}${advice === undefined ? "" : `\n    ${advice}`}\n`);
  }
  const errors = findings.filter(({ state }) => state === "error").length;
  const warnings = findings.filter(({ state }) => state === "warning").length;
  terminal.say(`${findings.length} checks: ${count(errors, "error")}, ${count(warnings, "warning")}.`);
  return errors === 0;
}

const MARKS = { ok: "ok     ", warning: "warning", error: "error  " } as const;

function clock(now: Date): Finding {
  if (now.getTime() >= EARLIEST) return { state: "ok", what: `The clock is at ${now.toISOString()}` };
  return {
    state: "error",
    what: `The clock is at ${now.toISOString()}`,
    advice: "Set the clock: timestamps and the expiry of sessions depend on it.",
  };
}

async function running(config: Config): Promise<Finding[]> {
  const { ready, message } = await healthcheck(config);
  if (ready) return [{ state: "ok", what: `A server is ready on ${config.host}, port ${config.port}` }];
  return [
    {
      state: "warning",
      what: `The server with these settings is ${message}`,
      advice: "Start it: earmark serve",
    },
  ];
}

function settings({ accounts, trustedProxies, host, allowedHosts }: Config): Finding[] {
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
        "Behind a reverse proxy, set EARMARK_TRUSTED_PROXIES to its address; otherwise all clients share one limit on failed sign-ins.",
    },
  ];
}

function fetching({ fetch }: Config): Finding[] {
  if (fetch === undefined) return [{ state: "ok", what: "Feeds are not fetched (EARMARK_FETCH_FEEDS=false)" }];
  if (!fetch.artwork) return [{ state: "ok", what: "Feeds are fetched without artwork (EARMARK_ARTWORK=false)" }];
  if (isInstalled("sharp")) return [{ state: "ok", what: "Feeds are fetched, with artwork" }];
  return [
    {
      state: "warning",
      what: "Feeds are fetched without artwork, because the package sharp is not installed",
      advice: "Run `npm install`, or set EARMARK_ARTWORK=false.",
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
async function proxy(url: string): Promise<Finding[]> {
  const where = `${url.replace(/\/$/, "")}/healthz`;
  try {
    const response = await fetch(where, { signal: AbortSignal.timeout(5_000), redirect: "manual" });
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
        advice: "Use https.",
      });
    return findings;
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = (cause as Error | undefined)?.message ?? message;
    return [
      {
        state: "error",
        what: `${where} is unreachable (${reason})`,
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
