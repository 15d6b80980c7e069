import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Workplace } from "./commands/accounts.ts";
import { createProgress } from "./commands/progress.ts";
import { serve } from "./commands/serve.ts";
import { ConfigError, DATABASE_URLS, readConfig, readDatabaseUrl, SECRETS, SETTINGS } from "./config.ts";
import { StartFailure } from "./store/opening.ts";

/** Exit codes, as sysexits.h numbers them. */
const OK = 0;
const FAILED = 1;
const WRONG_USAGE = 64;
const WRONG_CONFIGURATION = 78;

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

class WrongUsage extends Error {}

type Options = Readonly<Record<string, string | boolean | undefined>>;

interface Command {
  /** What is named after the command, each by itself. */
  readonly operands?: readonly string[];
  readonly options: readonly string[];
  readonly run: (options: Options, operands: readonly string[]) => Promise<number>;
}

/** A command about accounts. It is loaded when it is used. */
function accountCommand(
  operands: readonly string[],
  options: readonly string[],
  run: (
    commands: typeof import("./commands/accounts.ts"),
    work: Workplace,
    options: Options,
    operands: readonly string[],
  ) => Promise<void>,
): Command {
  return {
    operands,
    options,
    async run(values, named) {
      const work: Workplace = {
        config: config(),
        write: (data) => process.stdout.write(data),
        say,
        password: () => newPassword(values["password-stdin"] === true),
        now: new Date(),
      };
      await run(await import("./commands/accounts.ts"), work, values, named);
      return OK;
    },
  };
}

/** What the program can do. Data goes to standard output, words to standard error. */
const COMMANDS: Readonly<Record<string, Command>> = {
  serve: {
    options: [],
    async run() {
      await serve({ config: config(), version, output: process.stdout, say, stopped: stopSignal() });
      return OK;
    },
  },
  migrate: {
    options: ["distribute"],
    async run({ distribute }) {
      const { migrate } = await import("./commands/migrate.ts");
      say(await migrate(config().databaseUrl, { distribute: distribute === true }));
      return OK;
    },
  },
  copy: {
    options: ["from", "to"],
    async run({ from, to }) {
      const { copy } = await import("./commands/copy.ts");
      const progress = createProgress(process.stderr, () => performance.now());
      say(await copy(database("from", from), database("to", to), progress));
      return OK;
    },
  },
  healthcheck: {
    options: [],
    async run() {
      const { healthcheck } = await import("./commands/healthcheck.ts");
      const { ready, words } = await healthcheck(config());
      say(words);
      return ready ? OK : FAILED;
    },
  },
  "user add": accountCommand(["NAME"], ["password-stdin"], (commands, work, _options, [name = ""]) =>
    commands.addUser(work, name),
  ),
  "user list": accountCommand([], ["json"], (commands, work, { json }) => commands.listUsers(work, json === true)),
  "user passwd": accountCommand(["NAME"], ["password-stdin"], (commands, work, _options, [name = ""]) =>
    commands.changePassword(work, name),
  ),
  "user delete": accountCommand(["NAME"], ["yes"], (commands, work, { yes }, [name = ""]) =>
    commands.deleteUser(work, name, async (question) => yes === true || confirm(question)),
  ),
  "user export": accountCommand(["NAME"], [], (commands, work, _options, [name = ""]) =>
    commands.exportUser(work, name),
  ),
  "user invite": accountCommand([], ["days"], (commands, work, { days }) => commands.invite(work, text(days))),
  "token create": accountCommand(["NAME"], ["label", "read-only", "days"], (commands, work, options, [name = ""]) => {
    const { label, days, "read-only": readOnly } = options;
    return commands.createToken(work, name, { label: text(label), readOnly: readOnly === true, days: text(days) });
  }),
  "token list": accountCommand(["NAME"], ["json"], (commands, work, { json }, [name = ""]) =>
    commands.listTokens(work, name, json === true),
  ),
  "token revoke": accountCommand(["NAME", "ID"], [], (commands, work, _options, [name = "", id = ""]) =>
    commands.revokeToken(work, name, id),
  ),
};

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      version: { type: "boolean" },
      distribute: { type: "boolean" },
      from: { type: "string" },
      to: { type: "string" },
      "password-stdin": { type: "boolean" },
      json: { type: "boolean" },
      yes: { type: "boolean", short: "y" },
      label: { type: "string" },
      "read-only": { type: "boolean" },
      days: { type: "string" },
    },
  });
  if (values.version === true) {
    process.stdout.write(`${version}\n`);
    return OK;
  }
  if (values.help === true || positionals.length === 0) {
    process.stdout.write(help());
    return OK;
  }
  const words = [2, 1].find((count) => Object.hasOwn(COMMANDS, positionals.slice(0, count).join(" "))) ?? 0;
  const name = positionals.slice(0, words).join(" ");
  const command = words === 0 ? undefined : COMMANDS[name];
  // Not all that was typed: what follows may be a secret that was meant for somewhere else.
  if (command === undefined) throw new WrongUsage(`there is no command "${positionals.slice(0, 2).join(" ")}"`);
  const named = positionals.slice(words);
  const { operands = [] } = command;
  if (named.length !== operands.length) throw new WrongUsage(`it is: earmark ${[name, ...operands].join(" ")}`);
  const foreign = Object.keys(values).find((option) => !command.options.includes(option));
  if (foreign !== undefined) throw new WrongUsage(`"${name}" has no option --${foreign}`);
  return command.run(values, named);
}

function config() {
  return readConfig(process.env, process.cwd(), (path) => readFileSync(path, "utf8"));
}

function text(option: Options[string]): string | undefined {
  return typeof option === "string" ? option : undefined;
}

/** From standard input where that is asked for, else from the person at the terminal. */
async function newPassword(fromInput: boolean): Promise<string> {
  const { askPassword, readPassword } = await import("./commands/ask.ts");
  if (fromInput) return readPassword(process.stdin);
  if (!process.stdin.isTTY)
    throw new WrongUsage("there is no terminal to ask for the password: pipe it in, with --password-stdin");
  return askPassword(process.stdin, process.stderr);
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new WrongUsage(`${question} Say so with --yes`);
  const { askYesOrNo } = await import("./commands/ask.ts");
  return askYesOrNo(question, process.stdin, process.stderr);
}

function database(option: string, url: Options[string]): string {
  const read = typeof url === "string" ? readDatabaseUrl(url, process.cwd()) : undefined;
  if (read === undefined) throw new WrongUsage(`--${option} must be ${DATABASE_URLS}`);
  return read;
}

function say(words: string): void {
  process.stderr.write(`${words}\n`);
}

/** Two signals within this time are one: a supervisor may send it to all processes, and a launcher pass it on as well. */
const SAME_SIGNAL_MS = 300;
const ORPHANED_MS = 500;

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

function help(): string {
  const lines = Object.entries(SETTINGS).map(
    ([name, [standard, meaning]]) => `  ${name}${standard === "" ? "" : ` (${standard})`}\n      ${meaning}\n`,
  );
  return `Earmark keeps podcast subscriptions on a server of your own.

Examples
  earmark serve                                   serve on http://127.0.0.1:8080
  PORT=9000 earmark serve                         on another port
  DATABASE_URL=postgres://me@db/earmark earmark serve
  earmark copy --from file:./data/earmark.db --to postgres://me@db/earmark
  EARMARK_ACCOUNTS=on earmark serve               for many people, each with a list of their own
  earmark user add ann                            an account; asks for the password
  earmark token create ann --label phone          a token for an app of hers

Usage
  earmark serve                      run the server until it is told to stop (SIGTERM, Ctrl-C)
  earmark migrate [--distribute]     bring the database up to date, without serving it;
                                     spread its tables over a Citus cluster
  earmark copy --from URL --to URL   copy everything to an empty database, of any engine
  earmark healthcheck                whether the server with these settings is ready; exit code 0 or 1
  earmark user add NAME              make an account; --password-stdin reads the password from standard input
  earmark user list                  name, day and subscriptions of each; --json for programs
  earmark user passwd NAME           set a new password; ends all sessions
  earmark user delete NAME           delete an account with everything; --yes without asking
  earmark user export NAME           everything about an account, as JSON
  earmark user invite                a link that makes one account; --days N
  earmark token create NAME --label TEXT   a token for an app; --read-only, --days N
  earmark token list NAME            id, scope, state and last use of each; --json for programs
  earmark token revoke NAME ID       it stops working at once
  earmark --help                     this text
  earmark --version                  the version

Exit codes
  0 done    1 cannot start or go on    64 wrong usage    78 wrong settings

Settings, from the environment, with their defaults. ${SECRETS.join(", ")}
may be given as files: the path in the same name with _FILE
${lines.join("")}`;
}

function explain(error: unknown): { code: number; words: string } {
  if (error instanceof ConfigError) {
    const words = `earmark: these settings are wrong:\n${error.message}\nAll settings: bin/earmark --help`;
    return { code: WRONG_CONFIGURATION, words };
  }
  if (error instanceof StartFailure) return { code: FAILED, words: `earmark: ${error.message}` };
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof WrongUsage || code?.startsWith("ERR_PARSE_ARGS") === true) {
    return { code: WRONG_USAGE, words: `earmark: ${message}. What there is: bin/earmark --help` };
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
