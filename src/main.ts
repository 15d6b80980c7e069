import { existsSync, readFileSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, parseEnv } from "node:util";
import { COMMANDS, COMMON_OPTIONS, OPTIONS, type Options } from "./commands/commands.ts";
import { type CommandContext, Terminal, UsageError } from "./commands/terminal.ts";
import { type Config, ConfigError, readConfig } from "./config.ts";
import { stripControlCharacters, stripFromLines } from "./control-characters.ts";
import { StoreUnavailable } from "./subscriptions.ts";
import { suggest } from "./suggest.ts";
import { UserError } from "./user-error.ts";

/** Exit codes, as sysexits.h numbers them. */
const OK = 0;
const FAILED = 1;
const INVALID_USAGE = 64;
const INVALID_SETTINGS = 78;

/** Signals within this time count as one: a supervisor may signal all processes and a launcher forward it as well. */
const SAME_SIGNAL_MS = 300;
const ORPHANED_MS = 500;

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

async function main(argv: readonly string[]): Promise<number> {
  const kinds = Object.entries(OPTIONS).map(
    ([name, [value]]) => [name, { type: value === "" ? "boolean" : "string", ...SHORT[name] }] as const,
  );
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: Object.fromEntries(kinds) as Record<string, { type: "boolean" | "string" }>,
  });
  const options = values as Options;
  if (options.version === true) {
    process.stdout.write(`${version}\n`);
    return OK;
  }
  const words = [2, 1].find((count) => Object.hasOwn(COMMANDS, positionals.slice(0, count).join(" "))) ?? 0;
  const name = positionals.slice(0, words).join(" ");
  const command = words === 0 ? undefined : COMMANDS[name];
  if (positionals.length === 0 || (options.help === true && command === undefined)) {
    process.stdout.write((await import("./commands/help.ts")).writeHelp());
    return OK;
  }
  if (command === undefined) throw unknownCommand(positionals);
  if (options.help === true) {
    process.stdout.write((await import("./commands/help.ts")).writeCommandHelp(name, command));
    return OK;
  }
  const operands = positionals.slice(words);
  const isVariadic = command.operands.at(-1)?.endsWith("...") === true;
  if (isVariadic ? operands.length < command.operands.length : operands.length !== command.operands.length)
    throw new UsageError(`usage: earmark ${[name, ...command.operands].join(" ")}`);
  const unknown = Object.keys(options).find(
    (option) => ![...COMMON_OPTIONS, ...command.options].some((known) => known === option),
  );
  if (unknown !== undefined) throw new UsageError(`unknown option for "${name}": --${unknown}`);
  return command.run(
    new Terminal(createWorld(options["env-file"]), { quiet: options.quiet === true }),
    options,
    operands,
  );
}

const SHORT: Readonly<Record<string, { readonly short: string }>> = {
  help: { short: "h" },
  quiet: { short: "q" },
  yes: { short: "y" },
};

/** Repeats only the first word: others may be secrets. */
function unknownCommand(positionals: readonly string[]): UsageError {
  const names = Object.keys(COMMANDS);
  const [first = "", second = ""] = positionals;
  const subcommands = names.flatMap((name) => (name.startsWith(`${first} `) ? name.slice(first.length + 1) : []));
  if (subcommands.length > 0) return new UsageError(`"${first}" needs a subcommand: ${subcommands.join(", ")}`);
  const meant = suggest(`${first} ${second}`.trim(), names) ?? suggest(first, names);
  return new UsageError(`unknown command "${first}"${meant === undefined ? "" : `. Did you mean "${meant}"?`}`);
}

const INSTALLATION = fileURLToPath(new URL("..", import.meta.url));

function createWorld(envFile: string | boolean | undefined): CommandContext {
  const environment = typeof envFile === "string" ? { ...readEnvFile(envFile), ...process.env } : process.env;
  const files = {
    installation: resolvePath(INSTALLATION),
    read: (path: string) => readFileSync(path, "utf8"),
    exists: existsSync,
  };
  let config: Config | undefined;
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    environment,
    folder: process.cwd(),
    version,
    config() {
      if (config === undefined) {
        config = readConfig(environment, process.cwd(), files);
        for (const warning of config.warnings) say(`Warning: ${warning}`);
      }
      return config;
    },
    readFile: (path) => readFileSync(resolvePath(process.cwd(), path)),
    now: () => new Date(),
    stopped: stopSignal,
  };
}

function readEnvFile(path: string): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (error) {
    throw new UserError(`Cannot read ${path}: ${(error as Error).message}.`);
  }
}

function say(message: string): void {
  process.stderr.write(`${stripFromLines(message)}\n`);
}

/** The first signal asks to stop; a later one ends the process at once. */
function stopSignal(): Promise<string> {
  const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  return new Promise((resolve) => {
    const ignore = () => undefined;
    const stop = (signal: string) => {
      for (const each of signals) process.off(each, stop).on(each, ignore);
      setTimeout(() => {
        for (const each of signals) process.off(each, ignore);
      }, SAME_SIGNAL_MS).unref();
      resolve(signal);
    };
    for (const each of signals) process.on(each, stop);
    // The shell between npm and this process does not forward signals, so stop when it is gone.
    const parent = process.ppid;
    if (process.env["npm_lifecycle_event"] !== undefined) {
      const watch = setInterval(() => {
        if (process.ppid === parent) return;
        clearInterval(watch);
        stop("end of npm");
      }, ORPHANED_MS);
      watch.unref();
    }
  });
}

function describeError(error: unknown): { code: number; message: string } {
  if (error instanceof ConfigError) {
    const message = `earmark: invalid settings:\n${error.message}\nSee: bin/earmark --help`;
    return { code: INVALID_SETTINGS, message };
  }
  if (error instanceof UserError) return { code: FAILED, message: `earmark: ${stripControlCharacters(error.message)}` };
  if (error instanceof StoreUnavailable) {
    const cause = error.cause instanceof Error ? `: ${stripControlCharacters(error.cause.message)}` : "";
    return { code: FAILED, message: `earmark: The database is unavailable${cause}. Try again.` };
  }
  const { code, message: text } = error as NodeJS.ErrnoException;
  if (error instanceof UsageError || code?.startsWith("ERR_PARSE_ARGS") === true) {
    return {
      code: INVALID_USAGE,
      message: `earmark: ${text}${/[.?]$/.test(text) ? "" : "."} See: bin/earmark --help`,
    };
  }
  return { code: FAILED, message: `earmark: ${(error as Error).stack ?? String(error)}` };
}

// Feed URLs may contain passwords, so new files are readable by this user only.
process.umask(0o077);
// A closed output is no reason to stop serving.
for (const output of [process.stdout, process.stderr]) output.on("error", () => undefined);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { code, message } = describeError(error);
  say(message);
  process.exitCode = code;
}
