import { UserError } from "../util/user-error.ts";

/** A command, as a completion script needs it. */
interface CompletionCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly string[];
}

/** A script that makes a shell complete what is typed after `earmark`. */
export function writeCompletion(shell: string, commands: readonly CompletionCommand[]): string {
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell as keyof typeof SHELLS] : undefined;
  if (write === undefined) throw new UserError(`Unknown shell. Supported: ${Object.keys(SHELLS).join(", ")}.`);
  return write(commands);
}

const firstWords = (commands: readonly CompletionCommand[]) => [
  ...new Set(commands.map(({ name }) => name.split(" ")[0] ?? "")),
];

/** The second words of commands such as `user add`. */
function secondWords(commands: readonly CompletionCommand[], first: string): string[] {
  return commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []));
}

const isSubcommand = ({ name }: CompletionCommand) => name.includes(" ");

/** The first words that need a second one. */
const groupsOf = (commands: readonly CompletionCommand[]) => [
  ...new Set(commands.filter(isSubcommand).map(({ name }) => name.split(" ")[0] ?? "")),
];

function bash(commands: readonly CompletionCommand[]): string {
  const choose = (name: string, words: readonly string[]) => `      "${name}") words="${words.join(" ")}" ;;\n`;
  const options = (group: readonly CompletionCommand[]) =>
    group.map(({ name, options }) => choose(name, options)).join("");
  const groups = groupsOf(commands).map((first) => choose(first, secondWords(commands, first)));
  return `# To use it: source <(earmark completion bash)
_earmark() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${firstWords(commands).join(" ")} --help --version"
  else
    case "\${COMP_WORDS[1]}" in
${options(commands.filter((command) => !isSubcommand(command)))}${groups.join("")}    esac
    [ "$COMP_CWORD" -gt 2 ] && case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${options(commands.filter(isSubcommand))}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ "\${#COMPREPLY[@]}" -eq 0 ] && COMPREPLY=($(compgen -f -- "$current"))
}
complete -F _earmark earmark
`;
}

function zsh(commands: readonly CompletionCommand[]): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(":", "\\:");
  const describe = (group: readonly CompletionCommand[], skip: number) =>
    group.map(({ name, summary }) => `'${quote(name.slice(skip))}:${quote(summary)}'`).join(" ");
  const options = (group: readonly CompletionCommand[]) =>
    group.map(({ name, options }) => `    '${name}') compadd -- ${options.join(" ")} ;;\n`).join("");
  const singles = commands.filter((command) => !isSubcommand(command));
  const groups = groupsOf(commands).map((first) => {
    const group = commands.filter(({ name }) => name.startsWith(`${first} `));
    return `    '${first}') candidates=(${describe(group, first.length + 1)}) && _describe command candidates ;;\n`;
  });
  return `#compdef earmark
# To use it: earmark completion zsh > "\${fpath[1]}/_earmark"
_earmark() {
  local -a candidates
  if (( CURRENT == 2 )); then
    candidates=(${describe(singles, 0)} ${groupsOf(commands).join(" ")})
    _describe command candidates
    return
  fi
  (( CURRENT == 3 )) && case "\${words[2]}" in
${groups.join("")}  esac
  case "\${words[2]} \${words[3]}" in
${options(commands.filter(isSubcommand))}  esac
  case "\${words[2]}" in
${options(singles)}  esac
  _files
}
_earmark "$@"
`;
}

function fish(commands: readonly CompletionCommand[]): string {
  const quote = (text: string) => text.replaceAll("'", "\\'");
  const lines = commands.flatMap(({ name, summary, options }) => {
    const [first = "", second] = name.split(" ");
    const seen = `__fish_seen_subcommand_from ${first}`;
    const offer =
      second === undefined
        ? `complete -c earmark -n __fish_use_subcommand -a ${first} -d '${quote(summary)}'`
        : `complete -c earmark -n '${seen}; and not __fish_seen_subcommand_from ${secondWords(commands, first).join(" ")}' -a ${second} -d '${quote(summary)}'`;
    const condition = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`;
    return [offer, ...options.map((option) => `complete -c earmark -n '${condition}' -l ${option.replace(/^--/, "")}`)];
  });
  const groups = groupsOf(commands).map((first) => `complete -c earmark -n __fish_use_subcommand -a ${first}`);
  return `# To use it: earmark completion fish | source\n${[...groups, ...lines].join("\n")}\n`;
}

const SHELLS = { bash, zsh, fish } as const;
