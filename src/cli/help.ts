import { SECRETS, SETTINGS } from "../config/settings.ts";
import { COMMON_OPTIONS, type Command, OPTIONS, type OptionName } from "./command.ts";
import { COMMANDS } from "./commands.ts";

export function writeHelp(): string {
  const examples: readonly (readonly [string, string])[] = [
    ["earmark serve", "Start the server on http://127.0.0.1:8080"],
    ["earmark import podcasts.opml", "Subscribe to all feeds in a file"],
    ["earmark list", "List subscriptions"],
    ["earmark backup earmark-backup.db", "Back up while the server is running"],
    ["EARMARK_ACCOUNTS=true earmark serve", "Serve several people, each with their own list"],
  ];
  const settings = Object.entries(SETTINGS).map(
    ([name, [defaultValue, meaning]]) =>
      `  ${name}${defaultValue === "" ? "" : ` (default: ${defaultValue})`}\n      ${meaning}\n`,
  );
  return `Usage: earmark COMMAND [OPTION...]

Earmark is a self-hosted server for podcast subscriptions.

Examples:
${columns(examples)}
Commands (see earmark COMMAND --help):
${columns(listCommands(""))}
Global options:
${columns([...COMMON_OPTIONS, "version" as const].map((option) => describe(option)))}
Exit codes:
  0 success    1 failure, or partial failure    64 invalid usage    69 no suitable Node.js found    78 invalid settings

Settings are environment variables. To read ${SECRETS.slice(0, -1).join(", ")} or ${SECRETS.at(-1)}
from a file, append _FILE to the name and set that variable to the path, such as DATABASE_URL_FILE=/run/secrets/url.
${settings.join("")}`;
}

/** Help for a word that several commands start with, such as `user`; undefined if there are none. */
export function writeGroupHelp(group: string): string | undefined {
  const commands = listCommands(`${group} `);
  if (commands.length === 0) return undefined;
  return `Usage: earmark ${group} COMMAND [OPTION...]

Commands (see earmark ${group} COMMAND --help):
${columns(commands)}`;
}

function listCommands(prefix: string): (readonly [usage: string, summary: string])[] {
  return Object.entries(COMMANDS).flatMap(([name, { operands, summary }]) =>
    name.startsWith(prefix) ? [[[name, ...operands].join(" "), summary] as const] : [],
  );
}

export function writeCommandHelp(name: string, command: Command): string {
  const { operands, options, meanings, summary, examples } = command;
  return `Usage: earmark ${[name, ...operands].join(" ")} [OPTION...]

${summary}.

Examples:
${columns(examples)}
Options:
${columns([...options, ...COMMON_OPTIONS].map((option) => describe(option, meanings?.[option])))}`;
}

function describe(option: OptionName, ownMeaning?: string): readonly [string, string] {
  const [value, meaning] = OPTIONS[option];
  return [`--${option}${value === "" ? "" : ` ${value}`}`, ownMeaning ?? meaning];
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows
    .map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd())
    .join("\n")
    .concat("\n");
}
