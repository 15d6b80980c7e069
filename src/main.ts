import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { serve } from "./commands/serve.ts";
import { ConfigError, readConfig, SETTINGS } from "./config.ts";
import { StartFailure } from "./store/start-failure.ts";

/** Exit codes, as sysexits.h numbers them. */
const OK = 0;
const FAILED = 1;
const WRONG_USAGE = 64;
const WRONG_CONFIGURATION = 78;

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: { help: { type: "boolean", short: "h" }, version: { type: "boolean" } },
  });
  if (values.version === true) {
    process.stdout.write(`${version}\n`);
    return OK;
  }
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) {
    process.stdout.write(help());
    return OK;
  }
  if (command !== "serve" || rest.length > 0) throw new WrongUsage(`there is no command "${positionals.join(" ")}"`);
  const config = readConfig(process.env, process.cwd());
  await serve({ config, version, output: process.stdout, stopped: stopSignal() });
  return OK;
}

class WrongUsage extends Error {}

/** The first signal asks to stop; a second one, of either kind, ends the process at once, as it would without us. */
function stopSignal(): Promise<string> {
  const signals = ["SIGTERM", "SIGINT"] as const;
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      for (const each of signals) process.off(each, stop);
      resolve(signal);
    };
    for (const each of signals) process.on(each, stop);
  });
}

function help(): string {
  const lines = Object.entries(SETTINGS).map(
    ([name, [standard, meaning]]) => `  ${name}${standard === "" ? "" : ` (${standard})`}\n      ${meaning}\n`,
  );
  return `Earmark keeps podcast subscriptions on a server of your own.

Examples
  earmark serve                                   serve on http://127.0.0.1:8080
  PORT=9000 earmark serve                         on another port
  DATABASE_URL=file:/var/lib/earmark.db earmark serve

Usage
  earmark serve       run the server until it is told to stop (SIGTERM, Ctrl-C)
  earmark --help      this text
  earmark --version   the version

Exit codes
  0 done    1 cannot start or go on    64 wrong usage    78 wrong settings

Settings, from the environment, with their defaults
${lines.join("")}`;
}

function explain(error: unknown): { code: number; words: string } {
  if (error instanceof ConfigError)
    return {
      code: WRONG_CONFIGURATION,
      words: `earmark: these settings are wrong:\n${error.message}\nAll settings: earmark --help`,
    };
  if (error instanceof StartFailure) return { code: FAILED, words: `earmark: ${error.message}` };
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof WrongUsage || code?.startsWith("ERR_PARSE_ARGS") === true)
    return { code: WRONG_USAGE, words: `earmark: ${message}. What there is: earmark --help` };
  return { code: FAILED, words: `earmark: ${(error as Error).stack ?? String(error)}` };
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { code, words } = explain(error);
  process.stderr.write(`${words}\n`);
  process.exitCode = code;
}
