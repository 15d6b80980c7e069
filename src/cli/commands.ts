import { DATABASE_URL_FORMS, readDatabaseUrl } from "../config/config.ts";
import { replaceControlCharactersInLines } from "../util/control-characters.ts";
import { COMMON_OPTIONS, type Command, type Options, stringOption } from "./command.ts";
import { type Terminal, UsageError } from "./terminal.ts";
import { USER_COMMANDS } from "./user-commands.ts";

const locationOf = ({ server, user }: Options) => ({ server: stringOption(server), user: stringOption(user) });
const LOCATION = ["server", "user"] as const;

/** All commands. The code of each is loaded when it is used: the server needs little of it. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  serve: {
    operands: [],
    options: [],
    summary: "Run the server until it receives a signal to stop",
    examples: [
      ["earmark serve", "Listen on http://127.0.0.1:8080"],
      ["PORT=9000 earmark serve", "Listen on another port"],
      ["EARMARK_ACCOUNTS=true earmark serve", "Serve several people, each with their own list"],
    ],
    async run({ context }) {
      const { serve } = await import("./serve.ts");
      const say = (message: string) => context.stderr.write(`${replaceControlCharactersInLines(message)}\n`);
      await serve({
        config: context.config(),
        version: context.version,
        output: context.stdout,
        say,
        stopRequested: context.stopRequested(),
      });
    },
  },
  add: {
    operands: ["URL..."],
    options: ["find", "json", ...LOCATION],
    summary: "Subscribe to feeds; with - as the URL, read feed URLs from standard input, one per line",
    examples: [
      ["earmark add https://podnews.net/rss", "Subscribe to one feed"],
      ["earmark add - < feeds.txt", "Subscribe to all feeds in a file"],
      ["earmark add URL --server https://pods.example", "Subscribe on a remote server"],
      ["earmark add --find https://podnews.net --server https://pods.example", "Subscribe to the feed of a website"],
    ],
    run: async (terminal, options, urls) =>
      (await import("./subscriptions.ts")).add(terminal, locationOf(options), urls, {
        find: options.find === true,
        asJson: options.json === true,
      }),
  },
  list: {
    operands: [],
    options: ["attention", "removed", "ids", "json", ...LOCATION],
    summary: "List subscriptions with name, folders, status of the feed and feed URL, oldest first",
    examples: [
      ["earmark list", "List subscriptions in the local database"],
      [
        "earmark list --attention",
        "List feeds that have a problem: name, status, since when, reason, feed URL, new URL",
      ],
      ["earmark list --removed", "List what was removed recently, newest first: id, time of removal, feed URL, title"],
      [
        "earmark list --json | jq .feed_url",
        "Process the list in a script; the JSON output also has folders and podcast details",
      ],
    ],
    run: async (terminal, options) => {
      const { list, listRemoved } = await import("./subscriptions.ts");
      const asJson = options.json === true;
      if (options.removed === true) return listRemoved(terminal, locationOf(options), asJson);
      const ids = options.ids === true;
      return list(terminal, locationOf(options), { attention: options.attention === true, ids, asJson });
    },
  },
  refresh: {
    operands: ["[URL|ID...]"],
    options: ["failing", ...LOCATION],
    summary: "Have the server fetch feeds again soon; without a URL or id, all of them",
    examples: [
      ["earmark refresh https://podnews.net/rss", "Refresh one feed"],
      ["earmark refresh --server https://pods.example", "Refresh all feeds in the list"],
      ["earmark refresh --failing", "Try the feeds again that cannot be read"],
    ],
    async run(terminal, options, urlsOrIds) {
      const { refresh, refreshFailing } = await import("./subscriptions.ts");
      if (options.failing !== true) return refresh(terminal, locationOf(options), urlsOrIds);
      if (urlsOrIds.length > 0) throw new UsageError("--failing cannot be combined with a URL or id");
      return refreshFailing(terminal, locationOf(options));
    },
  },
  remove: {
    operands: ["URL|ID..."],
    options: ["yes", ...LOCATION],
    summary: "Unsubscribe from feeds, by feed URL or id",
    examples: [
      [
        "earmark remove https://podnews.net/rss",
        "Remove one subscription; prompts for confirmation unless --yes is given",
      ],
    ],
    run: async (terminal, options, urlsOrIds) =>
      (await import("./subscriptions.ts")).remove(terminal, locationOf(options), urlsOrIds, options.yes === true),
  },
  history: {
    operands: ["[ID...]"],
    options: ["json", ...LOCATION],
    summary:
      "List who changed the list, newest first: id, time, numbers of added, updated and removed subscriptions, author; with ids, what was changed",
    examples: [
      ["earmark history", 'Find the change set to undo; "large" marks an app that changed more than half of the list'],
      ["earmark history 57", "List what change set 57 changed: action, id, feed URL, title"],
    ],
    run: async (terminal, options, ids) =>
      (await import("./history.ts")).showHistory(terminal, locationOf(options), ids, options.json === true),
  },
  undo: {
    operands: ["ID"],
    options: ["since", "dry-run", "yes", ...LOCATION],
    summary: "Undo a change set; with --since, take the list back to before it",
    examples: [
      ["earmark undo 57 --dry-run", "Show what would be restored, removed and changed back"],
      [
        "earmark undo 57 --since",
        "Undo this change set and all later ones; prompts for confirmation unless --yes is given",
      ],
    ],
    run: async (terminal, options, [id = ""]) =>
      (await import("./history.ts")).undo(terminal, locationOf(options), id, {
        since: options.since === true,
        dryRun: options["dry-run"] === true,
        isConfirmed: options.yes === true,
      }),
  },
  rename: {
    operands: ["URL|ID", "TITLE"],
    options: [...LOCATION],
    summary: "Set the title of a subscription; an empty TITLE restores the podcast's own title",
    examples: [['earmark rename https://podnews.net/rss "The news"', "Set the title"]],
    run: async (terminal, options, [urlOrId = "", title = ""]) =>
      (await import("./subscriptions.ts")).rename(terminal, locationOf(options), urlOrId, title),
  },
  move: {
    operands: ["URL|ID..."],
    options: ["folder", ...LOCATION],
    summary: "Move subscriptions to a folder; without --folder, take them out of all folders",
    examples: [
      ["earmark move https://podnews.net/rss --folder News/Daily", "Move a subscription to the folder Daily in News"],
    ],
    run: async (terminal, options, urlsOrIds) =>
      (await import("./subscriptions.ts")).move(terminal, locationOf(options), urlsOrIds, stringOption(options.folder)),
  },
  import: {
    operands: ["[FILE|-]"],
    options: ["from", "password-stdin", "account", "dry-run", "json", ...LOCATION],
    meanings: {
      from: "Import the account on this server instead of a file: subscriptions and episode actions",
      user: "With --from: name on the other server; without it, sign in to a Nextcloud server in the browser. Otherwise: account to use, if the database has accounts",
    },
    summary:
      "Subscribe to every feed in an OPML file or a list of URLs (if FILE is -, on standard input), or bring an account in from another server. Existing subscriptions are kept",
    examples: [
      ["earmark import podcasts.opml --dry-run", "Preview the outcome for each feed"],
      ["earmark import podcasts.opml", "Import the file"],
      [
        "earmark import --from https://gpodder.net --user ann",
        "Move here from another server; prompts for the password",
      ],
      ["earmark import --from https://cloud.example", "Move here from Nextcloud; prints a link to sign in there"],
    ],
    run: importFileOrAccount,
  },
  export: {
    operands: [],
    options: [...LOCATION],
    summary: "Write the list to standard output as OPML",
    examples: [["earmark export > podcasts.opml", "Save the list to a file"]],
    run: async (terminal, options) => (await import("./subscriptions.ts")).exportFile(terminal, locationOf(options)),
  },
  watch: {
    operands: [],
    options: ["json", ...LOCATION],
    summary: "Print each change to the list as it happens: action (added, updated or removed), id, feed URL, title",
    examples: [
      ["earmark watch --server https://pods.example", "Watch the list on a server"],
      ["earmark watch --json | jq .feed_url", "Process the changes in a script; the JSON output also has folders"],
    ],
    run: async (terminal, options) =>
      (await import("./watch.ts")).watch(terminal, locationOf(options), options.json === true),
  },
  "link list": {
    operands: [],
    options: ["json", ...LOCATION],
    summary: "List secret links: id, kind, creation time, URL, folder, title",
    examples: [["earmark link list", "List all secret links"]],
    run: async (terminal, options) =>
      (await import("./links.ts")).listLinks(terminal, locationOf(options), options.json === true),
  },
  "link create": {
    operands: ["KIND"],
    options: ["folder", "title", "language", "own-titles", ...LOCATION],
    meanings: { folder: "Share only this folder and the folders below it, such as News/Tech" },
    summary:
      "Create a secret link, which anyone who has its URL can open; KIND is list (a page and an OPML file) or alerts (an Atom feed)",
    examples: [
      ["earmark link create list --folder News", "Share the podcasts in a folder"],
      ["earmark link create alerts", "Create a feed of alerts for your feed reader"],
    ],
    run: async (terminal, options, [kind = ""]) =>
      (await import("./links.ts")).createLink(terminal, locationOf(options), kind, {
        folder: stringOption(options.folder),
        title: stringOption(options.title),
        language: stringOption(options.language),
        ownTitles: options["own-titles"] === true,
      }),
  },
  "link revoke": {
    operands: ["ID"],
    options: [...LOCATION],
    summary: "Revoke a secret link immediately",
    examples: [["earmark link revoke 5a2e7c1b-…", "Revoke the link with this id"]],
    run: async (terminal, options, [id = ""]) =>
      (await import("./links.ts")).revokeLink(terminal, locationOf(options), id),
  },
  ...USER_COMMANDS,
  backup: {
    operands: ["FILE|FOLDER"],
    options: ["keep"],
    summary: "Back up the database to FILE or, with --keep, to a new file in FOLDER; works while the server is running",
    examples: [
      ["earmark backup earmark-$(date +%F).db", "Name the file after the date"],
      ["earmark backup --keep 14 /var/backups/earmark", "Keep the newest 14 backups in a folder"],
    ],
    async run(terminal, options, [path = ""]) {
      const keep = stringOption(options.keep);
      if (keep === undefined) await (await import("./backup.ts")).backUp(terminal, path);
      else await (await import("./backup-folder.ts")).backUpToFolder(terminal, path, keep);
    },
  },
  restore: {
    operands: ["FILE"],
    options: ["yes", "keep-access", "end-access"],
    summary:
      "Restore a backup; an existing SQLite database is renamed and kept, and a PostgreSQL database must be empty",
    examples: [["earmark restore earmark-2026-11-15.db", "Restore this backup; the server must be stopped"]],
    async run(terminal, options, [path = ""]) {
      const [keep, end] = [options["keep-access"] === true, options["end-access"] === true];
      if (keep && end) throw new UsageError("--keep-access and --end-access cannot be combined");
      const access = keep ? "keep" : end ? "end" : undefined;
      await (await import("./backup.ts")).restore(terminal, path, { isConfirmed: options.yes === true, access });
    },
  },
  copy: {
    operands: [],
    options: ["from", "to"],
    summary: "Copy a database to another, empty one (SQLite or PostgreSQL)",
    examples: [["earmark copy --from file:./data/earmark.db --to postgres://me@db/earmark", "Copy to PostgreSQL"]],
    async run(terminal, options) {
      const { copy } = await import("./copy.ts");
      const url = (name: "from" | "to") => {
        const given = stringOption(options[name]);
        const read = given === undefined ? undefined : readDatabaseUrl(given, terminal.context.workingDirectory);
        if (read === undefined) throw new UsageError(`--${name} must be ${DATABASE_URL_FORMS}`);
        return read;
      };
      terminal.say(await copy(url("from"), url("to"), terminal.progress()));
    },
  },
  migrate: {
    operands: [],
    options: ["distribute", "new-epoch"],
    summary: "Create the database or upgrade its schema, without starting the server",
    examples: [
      ["earmark migrate --distribute", "Also distribute the tables over a Citus cluster"],
      [
        "earmark migrate --new-epoch",
        "After a failover that lost changes: make all clients download their lists again",
      ],
    ],
    async run(terminal, options) {
      const { migrate } = await import("./migrate.ts");
      const { databaseUrl } = terminal.context.config();
      const { distribute, "new-epoch": newEpoch } = options;
      terminal.say(await migrate(databaseUrl, { distribute: distribute === true, newEpoch: newEpoch === true }));
    },
  },
  doctor: {
    operands: [],
    options: ["json", "server"],
    meanings: { server: "Also check the server at this URL, and the reverse proxy in front of it" },
    summary: "Check the installation and suggest fixes",
    examples: [["earmark doctor --server https://pods.example", "Also check this server and its reverse proxy"]],
    run: async (terminal, options) =>
      (await (await import("./doctor.ts")).doctor(terminal, stringOption(options.server), options.json === true))
        ? 0
        : 1,
  },
  config: {
    operands: [],
    options: ["json"],
    summary: "Show the value and source of every setting; secrets are hidden",
    examples: [["earmark config", "Show all settings"]],
    run: async (terminal, options) => (await import("./settings.ts")).showSettings(terminal, options.json === true),
  },
  healthcheck: {
    operands: [],
    options: [],
    summary: "Check whether the server at the configured address is ready (exit code 0: yes, 1: no)",
    examples: [["earmark healthcheck", "Check the local server"]],
    async run(terminal) {
      const { healthcheck } = await import("./healthcheck.ts");
      const { ready, message } = await healthcheck(terminal.context.config());
      terminal.say(message);
      return ready ? 0 : 1;
    },
  },
  completion: {
    operands: ["bash|zsh|fish"],
    options: [],
    summary: "Print a shell completion script",
    examples: [["source <(earmark completion bash)", "Enable completion in bash"]],
    async run(terminal, _options, [shell = ""]) {
      const { writeCompletion } = await import("./completion.ts");
      const commands = Object.entries(COMMANDS).map(([name, { summary, options }]) => ({
        name,
        summary,
        options: [...options, ...COMMON_OPTIONS].map((option) => `--${option}`),
      }));
      await terminal.write(writeCompletion(shell, commands));
    },
  },
};

async function importFileOrAccount(terminal: Terminal, options: Options, [path]: readonly string[]): Promise<number> {
  const from = stringOption(options.from);
  const choices = { dryRun: options["dry-run"] === true, asJson: options.json === true };
  if ((from === undefined) === (path === undefined)) throw new UsageError("import needs either FILE or --from URL");
  if (path !== undefined) {
    for (const name of ["account", "password-stdin"] as const)
      if (options[name] !== undefined) throw new UsageError(`--${name} needs --from`);
    return (await import("./subscriptions.ts")).importFile(terminal, locationOf(options), path, choices);
  }
  const location = { server: stringOption(options.server), user: stringOption(options.account) };
  const source = { url: from ?? "", user: stringOption(options.user), fromStdin: options["password-stdin"] === true };
  return (await import("./account-imports.ts")).importAccount(terminal, location, source, choices);
}
