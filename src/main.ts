import { readFileSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { parseArgs } from "node:util";
import { COMMANDS, OPTIONS, type Options } from "./commands/commands.ts";
import { Terminal, type World, WrongUsage } from "./commands/terminal.ts";
import { ConfigError, readConfig } from "./config.ts";
import { stripControlCharacters, stripFromLines } from "./control-characters.ts";
import { StoreUnavailable } from "./subscriptions.ts";
import { UserError } from "./user-error.ts";

/** Exit codes, as sysexits.h numbers them. */
const OK = 0;
const FAILED = 1;
const WRONG_USAGE = 64;
const WRONG_CONFIGURATION = 78;

/** Two signals within this time are one: a supervisor may send it to all processes, and a launcher pass it on as well. */
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
  if (command === undefined) throw await noSuchCommand(positionals);
  if (options.help === true) {
    process.stdout.write((await import("./commands/help.ts")).writeCommandHelp(name, command));
    return OK;
  }
  const operands = positionals.slice(words);
  const isOpen = command.operands.at(-1)?.endsWith("...") === true;
  if (isOpen ? operands.length < command.operands.length : operands.length !== command.operands.length)
    throw new WrongUsage(`it is: earmark ${[name, ...command.operands].join(" ")}`);
  const foreign = Object.keys(options).find(
    (option) => option !== "quiet" && !command.options.some((known) => known === option),
  );
  if (foreign !== undefined) throw new WrongUsage(`"${name}" has no option --${foreign}`);
  return command.run(new Terminal(world, { quiet: options.quiet === true }), options, operands);
}

const SHORT: Readonly<Record<string, { readonly short: string }>> = {
  help: { short: "h" },
  quiet: { short: "q" },
  yes: { short: "y" },
};

/** Not all that was typed is repeated: what follows may be a secret that was meant for somewhere else. */
async function noSuchCommand(positionals: readonly string[]): Promise<WrongUsage> {
  const { suggest } = await import("./commands/help.ts");
  const [first = "", second = ""] = positionals;
  const below = Object.keys(COMMANDS).flatMap((name) =>
    name.startsWith(`${first} `) ? name.slice(first.length + 1) : [],
  );
  if (below.length > 0) return new WrongUsage(`"${first}" needs one of these after it: ${below.join(", ")}`);
  const meant = suggest(`${first} ${second}`.trim()) ?? suggest(first);
  return new WrongUsage(`there is no command "${first}"${meant === undefined ? "" : `. Did you mean "${meant}"?`}`);
}

const world: World = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  folder: process.cwd(),
  version,
  config: () => readConfig(process.env, process.cwd(), (path) => readFileSync(path, "utf8")),
  readFile: (path) => readFileSync(resolvePath(process.cwd(), path)),
  now: () => new Date(),
  stopped: stopSignal,
};

function say(words: string): void {
  process.stderr.write(`${stripFromLines(words)}\n`);
}

/** The first signal asks to stop; a later one, of any kind, ends the process at once, as it would without us. */
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
    // The shell that npm runs us in does not pass signals on; but when it is gone, nobody wants us any more.
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

function explain(error: unknown): { code: number; words: string } {
  if (error instanceof ConfigError) {
    const words = `earmark: these settings are wrong:\n${error.message}\nAll settings: bin/earmark --help`;
    return { code: WRONG_CONFIGURATION, words };
  }
  // One line, also when a server's text is in it.
  if (error instanceof UserError) return { code: FAILED, words: `earmark: ${stripControlCharacters(error.message)}` };
  if (error instanceof StoreUnavailable) {
    const cause = error.cause instanceof Error ? `: ${stripControlCharacters(error.cause.message)}` : "";
    return { code: FAILED, words: `earmark: The database cannot be used at this moment${cause}. Try again.` };
  }
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof WrongUsage || code?.startsWith("ERR_PARSE_ARGS") === true) {
    return {
      code: WRONG_USAGE,
      words: `earmark: ${message.replace(/[.?]$/, (end) => (end === "?" ? end : ""))}${message.endsWith("?") ? "" : "."} What there is: bin/earmark --help`,
    };
  }
  return { code: FAILED, words: `earmark: ${(error as Error).stack ?? String(error)}` };
}

// Addresses may hold passwords, so what we make is for this user alone.
process.umask(0o077);
// Whoever read our output has gone: that is no reason to stop serving.
for (const output of [process.stdout, process.stderr]) output.on("error", () => undefined);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { code, words } = explain(error);
  say(words);
  process.exitCode = code;
}
