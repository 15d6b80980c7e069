import { existsSync, readFileSync } from "node:fs";
import { resolve as resolvePath } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, parseEnv } from "node:util";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import { replaceControlCharacters, replaceControlCharactersInLines } from "../util/control-characters.ts";
import { StoreUnavailable } from "../util/store-unavailable.ts";
import { suggest } from "../util/suggest.ts";
import { UserError } from "../util/user-error.ts";
import { COMMON_OPTIONS, OPTIONS, type Options } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { type CommandContext, Terminal, UsageError } from "./terminal.ts";

/** Exit codes, as sysexits.h numbers them. */
const OK = 0;
const FAILED = 1;
const INVALID_USAGE = 64;
const INVALID_SETTINGS = 78;

const INSTALLATION = resolvePath(fileURLToPath(new URL("../..", import.meta.url)));
const { version } = JSON.parse(readFileSync(`${INSTALLATION}/package.json`, "utf8")) as { version: string };

/** The process in which a command line runs. */
export type HostProcess = Pick<
  CommandContext,
  "stdin" | "stdout" | "stderr" | "environment" | "workingDirectory" | "stopRequested" | "lowerPriority"
>;

/** Runs a command line; resolves to its exit code. */
export async function runCommandLine(args: readonly string[], host: HostProcess): Promise<number> {
  try {
    return await dispatch(args, host);
  } catch (error) {
    const { code, message } = describeError(error);
    host.stderr.write(`${replaceControlCharactersInLines(message)}\n`);
    return code;
  }
}

async function dispatch(args: readonly string[], host: HostProcess): Promise<number> {
  const kinds = Object.entries(OPTIONS).map(
    ([name, [value]]) => [name, { type: value === "" ? "boolean" : "string", ...SHORT[name] }] as const,
  );
  const { values, positionals } = parseArgs({
    args: args[0] === "help" ? [...args.slice(1), "--help"] : [...args],
    allowPositionals: true,
    options: Object.fromEntries(kinds) as Record<string, { type: "boolean" | "string" }>,
  });
  const options = values as Options;
  if (options.version === true) {
    host.stdout.write(`${version}\n`);
    return OK;
  }
  const nameLength = [2, 1].find((count) => Object.hasOwn(COMMANDS, positionals.slice(0, count).join(" "))) ?? 0;
  const name = positionals.slice(0, nameLength).join(" ");
  const command = nameLength === 0 ? undefined : COMMANDS[name];
  if (positionals.length === 0 || (options.help === true && command === undefined)) {
    const { writeHelp, writeGroupHelp } = await import("./help.ts");
    host.stdout.write(writeGroupHelp(positionals[0] ?? "") ?? writeHelp());
    return OK;
  }
  if (command === undefined) throw unknownCommand(positionals);
  if (options.help === true) {
    host.stdout.write((await import("./help.ts")).writeCommandHelp(name, command));
    return OK;
  }
  const operands = positionals.slice(nameLength);
  const last = command.operands.at(-1) ?? "";
  const minOperands = command.operands.length - (last.startsWith("[") ? 1 : 0);
  const maxOperands = /\.\.\.\]?$/.test(last) ? Number.POSITIVE_INFINITY : command.operands.length;
  if (operands.length < minOperands || operands.length > maxOperands)
    throw new UsageError(`usage: earmark ${[name, ...command.operands].join(" ")}`);
  const unknown = Object.keys(options).find(
    (option) => ![...COMMON_OPTIONS, ...command.options].some((known) => known === option),
  );
  if (unknown !== undefined) throw new UsageError(`unknown option for "${name}": --${unknown}`);
  const terminal = new Terminal(createContext(host, options["env-file"]), { quiet: options.quiet === true });
  return (await command.run(terminal, options, operands)) ?? OK;
}

const SHORT: Readonly<Record<string, { readonly short: string }>> = {
  help: { short: "h" },
  quiet: { short: "q" },
  yes: { short: "y" },
};

/** Prints only the first word: the others may be secrets. */
function unknownCommand(positionals: readonly string[]): UsageError {
  const names = Object.keys(COMMANDS);
  const [first = "", second = ""] = positionals;
  const subcommands = names.flatMap((name) => (name.startsWith(`${first} `) ? name.slice(first.length + 1) : []));
  if (subcommands.length > 0) return new UsageError(`"${first}" needs a subcommand: ${subcommands.join(", ")}`);
  const meant = suggest(`${first} ${second}`.trim(), names) ?? suggest(first, names);
  return new UsageError(`unknown command "${first}"${meant === undefined ? "" : `. Did you mean "${meant}"?`}`);
}

/** Node's message also explains how to pass an argument that begins with a dash, which no command of ours needs. */
function describeUnknownOption(message: string): string {
  const [, option = ""] = /^Unknown option '(--?[^']{1,100})'/.exec(message) ?? [];
  const meant = suggest(
    option,
    [...Object.keys(OPTIONS)].map((name) => `--${name}`),
  );
  return `unknown option ${option}${meant === undefined ? "" : `. Did you mean ${meant}?`}`;
}

function createContext(host: HostProcess, envFile: string | boolean | undefined): CommandContext {
  const { environment: own, workingDirectory, stderr } = host;
  const environment =
    typeof envFile === "string" ? { ...readEnvFile(resolvePath(workingDirectory, envFile)), ...own } : own;
  const files = {
    installation: INSTALLATION,
    read: (path: string) => readFileSync(path, "utf8"),
    exists: existsSync,
  };
  let config: Config | undefined;
  return {
    ...host,
    environment,
    version,
    config() {
      if (config === undefined) {
        config = readConfig(environment, workingDirectory, files);
        for (const warning of config.warnings) stderr.write(`Warning: ${replaceControlCharactersInLines(warning)}\n`);
      }
      return config;
    },
    readFile: (path) => readFileSync(resolvePath(workingDirectory, path)),
    now: () => new Date(),
  };
}

function readEnvFile(path: string): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (error) {
    throw new UserError(`Cannot read ${path}: ${(error as Error).message}.`);
  }
}

function describeError(error: unknown): { code: number; message: string } {
  if (error instanceof ConfigError) {
    const message = `earmark: invalid settings:\n${error.message}\nSee: bin/earmark --help`;
    return { code: INVALID_SETTINGS, message };
  }
  if (error instanceof UserError)
    return { code: FAILED, message: `earmark: ${replaceControlCharacters(error.message)}` };
  if (error instanceof StoreUnavailable) {
    const cause = error.cause instanceof Error ? `: ${replaceControlCharacters(error.cause.message)}` : "";
    return { code: FAILED, message: `earmark: The database is unavailable${cause}. Try again.` };
  }
  const { code, message } = error as NodeJS.ErrnoException;
  const text = code === "ERR_PARSE_ARGS_UNKNOWN_OPTION" ? describeUnknownOption(message) : message;
  if (error instanceof UsageError || code?.startsWith("ERR_PARSE_ARGS") === true) {
    return {
      code: INVALID_USAGE,
      message: `earmark: ${text}\nSee: bin/earmark --help`,
    };
  }
  return { code: FAILED, message: `earmark: ${(error as Error).stack ?? String(error)}` };
}
