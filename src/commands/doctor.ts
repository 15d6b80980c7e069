import { existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../config.ts";
import { examine } from "../store/examine.ts";
import type { Finding } from "../store/store-options.ts";
import { healthcheck } from "./healthcheck.ts";
import type { Terminal } from "./terminal.ts";

const MIN_FREE_BYTES = 512 * 1024 * 1024;
const EARLIEST = Date.UTC(2026, 0, 1);
/** File systems over a network, by the numbers that Linux gives them: their locks and syncs cannot be relied on. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "CIFS",
  4266872130: "SMB2",
  1702057286: "FUSE",
  16914839: "9P",
};

/** Looks at everything that a server needs, and says what to do. Returns whether all is well enough to serve. */
export async function doctor(terminal: Terminal, server: string | undefined, asJson: boolean): Promise<boolean> {
  const config = terminal.world.config();
  const findings: Finding[] = [
    { state: "ok", what: `Earmark ${terminal.world.version} on Node ${process.versions.node}` },
    { state: "ok", what: "The settings are valid" },
    clock(terminal.world.now()),
    ...(config.databaseUrl.startsWith("file:") ? disk(config.databaseUrl.slice("file:".length)) : []),
    ...(await examine(config.databaseUrl)),
    ...(await running(config)),
    ...settings(config),
    ...(server === undefined ? [] : await proxy(server)),
  ];
  for (const { state, what, advice } of findings) {
    if (asJson) await terminal.line({ state, what, advice: advice ?? null }, true);
    else await terminal.write(`${MARKS[state]} ${what}${advice === undefined ? "" : `\n    ${advice}`}\n`);
  }
  const bad = findings.filter(({ state }) => state === "wrong").length;
  const doubtful = findings.filter(({ state }) => state === "warning").length;
  terminal.say(`${findings.length} things looked at: ${bad} wrong, ${doubtful} to think about.`);
  return bad === 0;
}

const MARKS = { ok: "ok     ", warning: "warning", wrong: "wrong  " } as const;

function clock(now: Date): Finding {
  if (now.getTime() >= EARLIEST) return { state: "ok", what: `The clock says ${now.toISOString()}` };
  return {
    state: "wrong",
    what: `The clock says ${now.toISOString()}`,
    advice: "Set it: moments of subscribing and the end of sessions follow it.",
  };
}

function disk(path: string): Finding[] {
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  const { type, bavail, bsize } = statfsSync(folder);
  const network = NETWORK_FILE_SYSTEMS[type];
  const free = bavail * bsize;
  const gib = `${(free / 2 ** 30).toFixed(1)} GiB`;
  const findings: Finding[] = [
    network === undefined
      ? { state: "ok", what: "The database is on a local file system" }
      : {
          state: "warning",
          what: `The database is on ${network}`,
          advice: "Locks and syncs may not hold over a network: use a local disk, or PostgreSQL.",
        },
    free >= MIN_FREE_BYTES
      ? { state: "ok", what: `${gib} are free` }
      : { state: "warning", what: `Only ${gib} are free`, advice: "Make room: a full disk is answered 503." },
  ];
  if (existsSync(path) && (statSync(path).mode & 0o077) !== 0) {
    findings.push({
      state: "warning",
      what: "Others on this machine may read the database",
      advice: `Addresses of private feeds hold passwords: chmod 600 ${path}`,
    });
  }
  return findings;
}

async function running(config: Config): Promise<Finding[]> {
  const { ready, words } = await healthcheck(config);
  if (ready) return [{ state: "ok", what: `A server is ready at ${config.host}, port ${config.port}` }];
  return [{ state: "warning", what: `No server with these settings: ${words}`, advice: "Start it: earmark serve" }];
}

function settings({ accounts, trustedProxies, host, allowedHosts }: Config): Finding[] {
  if (accounts === undefined) {
    if (host === "127.0.0.1" || host === "localhost" || host === "::1" || allowedHosts.length > 0) return [];
    return [
      {
        state: "warning",
        what: `Whoever can reach ${host} can read and change the list`,
        advice: "Set EARMARK_ACCOUNTS=on, unless you mean it.",
      },
    ];
  }
  if (trustedProxies.length > 0)
    return [{ state: "ok", what: `Proxies that are trusted: ${trustedProxies.join(", ")}` }];
  return [
    {
      state: "warning",
      what: "There are accounts, and no proxy is trusted",
      advice:
        "Behind a reverse proxy set EARMARK_TRUSTED_PROXIES to its address, or all people share one limit on wrong passwords.",
    },
  ];
}

/** Whether what we say arrives through the proxy as we say it. */
async function proxy(url: string): Promise<Finding[]> {
  const where = `${url.replace(/\/$/, "")}/healthz`;
  try {
    const answer = await fetch(where, { signal: AbortSignal.timeout(5_000), redirect: "manual" });
    await answer.body?.cancel();
    if (answer.status !== 200)
      return [
        {
          state: "wrong",
          what: `${where} answers ${answer.status}`,
          advice: "Check the proxy, and EARMARK_ALLOWED_HOSTS.",
        },
      ];
    const changed = Object.entries(EXPECTED).filter(([name, value]) => answer.headers.get(name) !== value);
    const findings: Finding[] = [{ state: "ok", what: `${url} leads to Earmark` }];
    for (const [name] of changed)
      findings.push({
        state: "warning",
        what: `The proxy changes ${name}`,
        advice: "Let it pass headers on as they are.",
      });
    if (!url.startsWith("https:"))
      findings.push({
        state: "warning",
        what: "Passwords and tokens go over the network in clear",
        advice: "Use https.",
      });
    return findings;
  } catch (error) {
    const { message, cause } = error as Error;
    const why = (cause as Error | undefined)?.message ?? message;
    return [
      {
        state: "wrong",
        what: `${where} cannot be reached (${why})`,
        advice: "Check the name, the proxy and its certificate.",
      },
    ];
  }
}

const EXPECTED = {
  "content-type": "application/vnd.api+json",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};
