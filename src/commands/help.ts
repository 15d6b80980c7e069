import { SECRETS, SETTINGS } from "../config.ts";
import { COMMANDS, type Command, OPTIONS, type OptionName } from "./commands.ts";

/** Everything, with examples first. */
export function writeHelp(): string {
  const examples: readonly (readonly [string, string])[] = [
    ["earmark serve", "serve on http://127.0.0.1:8080"],
    ["earmark import podcasts.opml", "subscribe to all feeds of a file"],
    ["earmark list", "see the list"],
    ["earmark backup earmark.db", "keep a copy, while the server runs"],
    ["EARMARK_ACCOUNTS=on earmark serve", "for many people, each with a list of their own"],
  ];
  const commands = Object.entries(COMMANDS).map(
    ([name, { operands, summary }]) => [[name, ...operands].join(" "), summary] as const,
  );
  const settings = Object.entries(SETTINGS).map(
    ([name, [standard, meaning]]) => `  ${name}${standard === "" ? "" : ` (${standard})`}\n      ${meaning}\n`,
  );
  return `Earmark keeps podcast subscriptions on a server of your own.

Examples
${columns(examples)}
Commands (earmark COMMAND --help tells more)
${columns(commands)}
Everywhere
${columns([describe("quiet"), describe("help"), describe("version")])}
Exit codes
  0 done    1 not done, or not all of it    64 wrong usage    78 wrong settings

Settings, from the environment, with their defaults. ${SECRETS.join(", ")}
may be given as files: the path in the same name with _FILE
${settings.join("")}`;
}

export function writeCommandHelp(name: string, { operands, options, summary, examples }: Command): string {
  return `earmark ${[name, ...operands].join(" ")}: ${summary}

Examples
${columns(examples)}
Options
${columns([...options, "quiet" as const, "help" as const].map(describe))}`;
}

function describe(option: OptionName): readonly [string, string] {
  const [value, meaning] = OPTIONS[option];
  return [`--${option}${value === "" ? "" : ` ${value}`}`, meaning];
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows
    .map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd())
    .join("\n")
    .concat("\n");
}

/** The command that was probably meant: one that can be reached with few strokes. */
export function suggest(typed: string): string | undefined {
  const [best] = Object.keys(COMMANDS)
    .map((name) => ({ name, distance: distance(typed, name) }))
    .sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.max(1, Math.floor(typed.length / 3)) ? best.name : undefined;
}

/** How many letters must be put in, taken out or changed (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [index, target] of [...other].entries()) {
      const change = (row[index] ?? 0) + (letter === target ? 0 : 1);
      next.push(Math.min(change, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
