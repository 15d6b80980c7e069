import { DATABASE_URLS, readDatabaseUrl } from "../config.ts";
import { stripFromLines } from "../control-characters.ts";
import { type Terminal, WrongUsage } from "./terminal.ts";

/** Every option there is: whether it takes a value, and what it does. */
export const OPTIONS = {
  help: ["", "how to use it"],
  version: ["", "the version"],
  quiet: ["", "no words, only data and errors"],
  json: ["", "a line of JSON for each, for programs"],
  yes: ["", "do it without asking"],
  "keep-access": ["", "keep the backup's tokens, sessions and invitations valid"],
  "end-access": ["", "end them all: users sign in again and create new tokens"],
  server: ["URL", "work on a server; its token is in EARMARK_TOKEN, or in a file named by EARMARK_TOKEN_FILE"],
  user: ["NAME", "whose list, in a database with accounts"],
  "dry-run": ["", "only say what would happen"],
  "password-stdin": ["", "read the password from standard input"],
  label: ["TEXT", "which app the token is for"],
  "read-only": ["", "the token may not change anything"],
  days: ["N", "for how many days"],
  from: ["URL", "database to copy"],
  to: ["URL", "empty database to copy it to"],
  distribute: ["", "spread the tables over a Citus cluster"],
} as const satisfies Readonly<Record<string, readonly [value: string, meaning: string]>>;

export type OptionName = keyof typeof OPTIONS;
export type Options = Readonly<Partial<Record<OptionName, string | boolean>>>;

export interface Command {
  /** What is named after the command; the last may end in `...` for one or more. */
  readonly operands: readonly string[];
  readonly options: readonly OptionName[];
  readonly summary: string;
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** Resolves to an exit code. */
  readonly run: (terminal: Terminal, options: Options, operands: readonly string[]) => Promise<number>;
}

const text = (option: string | boolean | undefined) => (typeof option === "string" ? option : undefined);
const placeOf = ({ server, user }: Options) => ({ server: text(server), user: text(user) });
const PLACE = ["server", "user"] as const;

/** What the program can do. Everything is loaded when it is used: most of it is not needed to serve. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  serve: {
    operands: [],
    options: [],
    summary: "run the server until it is told to stop",
    examples: [
      ["earmark serve", "on http://127.0.0.1:8080"],
      ["PORT=9000 earmark serve", "on another port"],
      ["EARMARK_ACCOUNTS=on earmark serve", "for many people, each with a list of their own"],
    ],
    async run({ world }) {
      const { serve } = await import("./serve.ts");
      const say = (words: string) => world.stderr.write(`${stripFromLines(words)}\n`);
      await serve({
        config: world.config(),
        version: world.version,
        output: world.stdout,
        say,
        stopped: world.stopped(),
      });
      return 0;
    },
  },
  add: {
    operands: ["URL..."],
    options: ["json", ...PLACE],
    summary: "subscribe to feeds; - reads addresses from standard input, one a line",
    examples: [
      ["earmark add https://podnews.net/rss", "to one"],
      ["earmark add - < feeds.txt", "to all in a file"],
      ["earmark add URL --server https://pods.example", "on a server"],
    ],
    run: async (terminal, options, urls) =>
      (await import("./subscriptions.ts")).add(terminal, placeOf(options), urls, options.json === true),
  },
  list: {
    operands: [],
    options: ["json", ...PLACE],
    summary: "id, moment and address of each subscription, oldest first",
    examples: [
      ["earmark list", "in this machine's database"],
      ["earmark list --json | jq .feed_url", "for programs"],
    ],
    run: async (terminal, options) =>
      (await import("./subscriptions.ts")).list(terminal, placeOf(options), options.json === true),
  },
  remove: {
    operands: ["URL|ID..."],
    options: ["yes", ...PLACE],
    summary: "unsubscribe, by address or id",
    examples: [["earmark remove https://podnews.net/rss", "asks first; --yes does not"]],
    run: async (terminal, options, wanted) =>
      (await import("./subscriptions.ts")).remove(terminal, placeOf(options), wanted, options.yes === true),
  },
  import: {
    operands: ["FILE|-"],
    options: ["dry-run", "json", ...PLACE],
    summary: "subscribe to every feed of an OPML file; it only adds, and can be repeated",
    examples: [
      ["earmark import podcasts.opml --dry-run", "what would happen to each"],
      ["earmark import podcasts.opml", "do it"],
    ],
    run: async (terminal, options, [path = ""]) =>
      (await import("./subscriptions.ts")).importFile(terminal, placeOf(options), path, {
        dryRun: options["dry-run"] === true,
        asJson: options.json === true,
      }),
  },
  export: {
    operands: [],
    options: [...PLACE],
    summary: "the list as an OPML file, on standard output",
    examples: [["earmark export > podcasts.opml", "keep it in a file"]],
    run: async (terminal, options) => (await import("./subscriptions.ts")).exportFile(terminal, placeOf(options)),
  },
  "user add": {
    operands: ["NAME"],
    options: ["password-stdin"],
    summary: "make an account",
    examples: [["earmark user add ann", "asks for the password"]],
    run: (terminal, options, [name = ""]) =>
      accounts(({ addUser }) => addUser(terminal, name, options["password-stdin"] === true)),
  },
  "user list": {
    operands: [],
    options: ["json"],
    summary: "name, moment of making and number of subscriptions of each account",
    examples: [["earmark user list", ""]],
    run: (terminal, options) => accounts(({ listUsers }) => listUsers(terminal, options.json === true)),
  },
  "user passwd": {
    operands: ["NAME"],
    options: ["password-stdin"],
    summary: "set a new password; all sessions end",
    examples: [["earmark user passwd ann", "asks for the password"]],
    run: (terminal, options, [name = ""]) =>
      accounts(({ changePassword }) => changePassword(terminal, name, options["password-stdin"] === true)),
  },
  "user delete": {
    operands: ["NAME"],
    options: ["yes"],
    summary: "delete an account with everything",
    examples: [["earmark user delete ann", "asks first; --yes does not"]],
    run: (terminal, options, [name = ""]) =>
      accounts(({ deleteUser }) => deleteUser(terminal, name, options.yes === true)),
  },
  "user export": {
    operands: ["NAME"],
    options: [],
    summary: "everything about an account, as JSON",
    examples: [["earmark user export ann > ann.json", ""]],
    run: (terminal, _options, [name = ""]) => accounts(({ exportUser }) => exportUser(terminal, name)),
  },
  "user invite": {
    operands: [],
    options: ["days"],
    summary: "a link that makes one account",
    examples: [["earmark user invite --days 2", ""]],
    run: (terminal, options) => accounts(({ invite }) => invite(terminal, text(options.days))),
  },
  "token create": {
    operands: ["NAME"],
    options: ["label", "read-only", "days"],
    summary: "a token for an app of an account",
    examples: [["earmark token create ann --label phone", "it is shown once"]],
    run: (terminal, options, [name = ""]) =>
      accounts(({ createToken }) =>
        createToken(terminal, name, {
          label: text(options.label),
          readOnly: options["read-only"] === true,
          days: text(options.days),
        }),
      ),
  },
  "token list": {
    operands: ["NAME"],
    options: ["json"],
    summary: "id, scope, state, last use, end and label of each token",
    examples: [["earmark token list ann", ""]],
    run: (terminal, options, [name = ""]) =>
      accounts(({ listTokens }) => listTokens(terminal, name, options.json === true)),
  },
  "token revoke": {
    operands: ["NAME", "ID"],
    options: [],
    summary: "it stops working at once",
    examples: [["earmark token revoke ann 5a2e7c1b-…", ""]],
    run: (terminal, _options, [name = "", id = ""]) => accounts(({ revokeToken }) => revokeToken(terminal, name, id)),
  },
  backup: {
    operands: ["FILE"],
    options: [],
    summary: "copy everything to a file, also while the server runs",
    examples: [["earmark backup earmark-$(date +%F).db", "every night, say"]],
    async run(terminal, _options, [path = ""]) {
      await (await import("./backup.ts")).backUp(terminal, path);
      return 0;
    },
  },
  restore: {
    operands: ["FILE"],
    options: ["yes", "keep-access", "end-access"],
    summary: "put a backup in the place of the database; what was there is kept beside it",
    examples: [["earmark restore earmark-2026-11-15.db", "with the server stopped"]],
    async run(terminal, options, [path = ""]) {
      const [keep, end] = [options["keep-access"] === true, options["end-access"] === true];
      if (keep && end) throw new WrongUsage("--keep-access and --end-access exclude each other");
      const access = keep ? "keep" : end ? "end" : undefined;
      await (await import("./backup.ts")).restore(terminal, path, { isSaid: options.yes === true, access });
      return 0;
    },
  },
  copy: {
    operands: [],
    options: ["from", "to"],
    summary: "copy everything to an empty database, of any engine",
    examples: [["earmark copy --from file:./data/earmark.db --to postgres://me@db/earmark", ""]],
    async run(terminal, options) {
      const { copy } = await import("./copy.ts");
      const url = (name: "from" | "to") => {
        const given = text(options[name]);
        const read = given === undefined ? undefined : readDatabaseUrl(given, terminal.world.folder);
        if (read === undefined) throw new WrongUsage(`--${name} must be ${DATABASE_URLS}`);
        return read;
      };
      terminal.say(await copy(url("from"), url("to"), terminal.progress()));
      return 0;
    },
  },
  migrate: {
    operands: [],
    options: ["distribute"],
    summary: "bring the database up to date, without serving it",
    examples: [["earmark migrate --distribute", "also spread it over a Citus cluster"]],
    async run(terminal, options) {
      const { migrate } = await import("./migrate.ts");
      terminal.say(await migrate(terminal.world.config().databaseUrl, { distribute: options.distribute === true }));
      return 0;
    },
  },
  doctor: {
    operands: [],
    options: ["json", "server"],
    summary: "look at everything that a server needs, and say what to do",
    examples: [["earmark doctor --server https://pods.example", "through the reverse proxy as well"]],
    run: async (terminal, options) =>
      (await (await import("./doctor.ts")).doctor(terminal, text(options.server), options.json === true)) ? 0 : 1,
  },
  config: {
    operands: [],
    options: ["json"],
    summary: "every setting as it is in force here; secrets stay secret",
    examples: [["earmark config", ""]],
    async run(terminal, options) {
      await (await import("./settings.ts")).showSettings(terminal, options.json === true);
      return 0;
    },
  },
  healthcheck: {
    operands: [],
    options: [],
    summary: "whether the server with these settings is ready; exit code 0 or 1",
    examples: [["earmark healthcheck", ""]],
    async run(terminal) {
      const { healthcheck } = await import("./healthcheck.ts");
      const { ready, words } = await healthcheck(terminal.world.config());
      terminal.say(words);
      return ready ? 0 : 1;
    },
  },
  completion: {
    operands: ["bash|zsh|fish"],
    options: [],
    summary: "a script that completes what is typed in a shell",
    examples: [["source <(earmark completion bash)", ""]],
    async run(terminal, _options, [shell = ""]) {
      const { writeCompletion } = await import("./completion.ts");
      const commands = Object.entries(COMMANDS).map(([name, { summary, options }]) => ({
        name,
        summary,
        options: [...options, "help", "quiet"].map((option) => `--${option}`),
      }));
      await terminal.write(writeCompletion(shell, commands));
      return 0;
    },
  },
};

async function accounts(work: (commands: typeof import("./accounts.ts")) => Promise<void>): Promise<number> {
  await work(await import("./accounts.ts"));
  return 0;
}
