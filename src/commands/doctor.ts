import type { Config } from "../config.ts";
import { inspectDatabase } from "../store/engines.ts";
import type { Finding } from "../store/store-options.ts";
import { healthcheck } from "./healthcheck.ts";
import type { Terminal } from "./terminal.ts";

const EARLIEST = Date.UTC(2026, 0, 1);

/** Looks at everything that a server needs, and says what to do. Returns whether all is well enough to serve. */
export async function doctor(terminal: Terminal, server: string | undefined, asJson: boolean): Promise<boolean> {
  const config = terminal.world.config();
  const findings: Finding[] = [
    { state: "ok", what: `Earmark ${terminal.world.version} on Node ${process.versions.node}` },
    { state: "ok", what: "The settings are valid" },
    clock(terminal.world.now()),
    ...(await inspectDatabase(config.databaseUrl)),
    ...(await running(config)),
    ...settings(config),
    ...(server === undefined ? [] : await proxy(server)),
  ];
  for (const { state, what, advice } of findings) {
    if (asJson) await terminal.line({ state, what, advice: advice ?? null }, true);
    else await terminal.write(`${MARKS[state]} ${what}${advice === undefined ? "" : `\n    ${advice}`}\n`);
  }
  const bad = findings.filter(({ state }) => state === "error").length;
  const doubtful = findings.filter(({ state }) => state === "warning").length;
  terminal.say(`${findings.length} things looked at: ${bad} wrong, ${doubtful} to think about.`);
  return bad === 0;
}

const MARKS = { ok: "ok     ", warning: "warning", error: "error  " } as const;

function clock(now: Date): Finding {
  if (now.getTime() >= EARLIEST) return { state: "ok", what: `The clock says ${now.toISOString()}` };
  return {
    state: "error",
    what: `The clock says ${now.toISOString()}`,
    advice: "Set it: moments of subscribing and the end of sessions follow it.",
  };
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
          state: "error",
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
        state: "error",
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
