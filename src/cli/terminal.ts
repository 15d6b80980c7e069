import type { Readable, Writable } from "node:stream";
import type { Config } from "../config/config.ts";
import { drained } from "../http/wire/respond.ts";
import {
  escapeControlCharacters,
  replaceControlCharacters,
  replaceControlCharactersInLines,
} from "../util/control-characters.ts";
import { UserError } from "../util/user-error.ts";
import { askPassword, askWithoutEcho, askYesOrNo, readPassword } from "./ask.ts";
import { createProgress, type StagedProgress } from "./progress.ts";

/** A command's environment. Data goes to standard output, messages to standard error. */
export interface CommandContext {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly version: string;
  readonly config: () => Config;
  readonly readFile: (path: string) => Buffer;
  readonly now: () => Date;
  /** Resolves to the name of the signal that asks to stop. */
  readonly stopRequested: () => Promise<string>;
  /** Lets other processes go first. */
  readonly lowerPriority: () => void;
}

/** Cells by the names of their columns. */
export type TableRow = Readonly<Record<string, string>>;

/** `1 subscription`, `2 subscriptions`. */
export function pluralize(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}

/** A file-system error without its code, system call and path: `no such file or directory`. */
function reasonOf(error: unknown): string {
  const { message, syscall } = error as NodeJS.ErrnoException;
  const end = message.indexOf(`, ${syscall}`);
  return (end === -1 ? message : message.slice(0, end)).replace(/^[A-Z]+: /, "");
}

function requireTerminal({ isTTY }: CommandContext["stdin"]): void {
  if (isTTY !== true)
    throw new UsageError("cannot ask for a password without a terminal; pipe it in with --password-stdin");
}

/** An invalid command line. */
export class UsageError extends Error {}

/**
 * Input and output of a command. Text may come from a server, a file or a database, so every method strips or escapes
 * control characters; only `writeContent` keeps them, unless it writes to a terminal.
 */
export class Terminal {
  readonly context: CommandContext;
  readonly #isQuiet: boolean;
  readonly #said = new Set<string>();

  constructor(context: CommandContext, { quiet }: { readonly quiet: boolean }) {
    this.context = context;
    this.#isQuiet = quiet;
  }

  /** Writes lines to standard output. */
  async write(text: string): Promise<void> {
    await this.#write(replaceControlCharactersInLines(text));
  }

  /** Writes the content of a file to standard output; unchanged, unless standard output is a terminal. */
  async writeContent(content: string): Promise<void> {
    await this.#write(this.context.stdout.isTTY === true ? replaceControlCharactersInLines(content) : content);
  }

  /** Writes JSON to standard output. Control characters are escaped, which keeps the value. */
  async writeJson(json: string): Promise<void> {
    await this.#write(escapeControlCharacters(json));
  }

  /** Waits until the reader can take more. */
  async #write(data: string): Promise<void> {
    const { stdout } = this.context;
    if (!stdout.write(data) && !stdout.destroyed) await drained(stdout);
  }

  /** Writes a record as one line: JSON, or columns separated by tabs. */
  async writeRecord(
    value: Readonly<Record<string, string | number | readonly string[] | null>>,
    asJson: boolean,
  ): Promise<void> {
    if (asJson) return this.writeJson(`${JSON.stringify(value)}\n`);
    const columns = Object.values(value).map((cell) => replaceControlCharacters(String(cell ?? "")));
    await this.write(`${columns.join("\t").trimEnd()}\n`);
  }

  /** Rows with the same columns, after a header: separated by tabs, or aligned on a terminal. Nothing without rows. */
  table(): { readonly add: (row: TableRow) => Promise<void>; readonly end: () => Promise<void> } {
    const isAligned = this.context.stdout.isTTY === true;
    const lines: string[][] = [];
    let hasHeader = false;
    const add = async (cells: readonly string[]) => {
      const clean = cells.map((cell) => replaceControlCharacters(cell));
      if (isAligned) lines.push(clean);
      else await this.write(`${clean.join("\t").trimEnd()}\n`);
    };
    return {
      add: async (row) => {
        if (!hasHeader) await add(Object.keys(row));
        hasHeader = true;
        await add(Object.values(row));
      },
      end: async () => {
        const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
        for (const line of lines)
          await this.write(
            `${line
              .map((cell, column) => cell.padEnd(widths[column] ?? 0))
              .join("  ")
              .trimEnd()}\n`,
          );
      },
    };
  }

  say(message: string): void {
    if (!this.#isQuiet) this.context.stderr.write(`${replaceControlCharacters(message)}\n`);
  }

  sayOnce(message: string): void {
    if (!this.#said.has(message)) this.say(message);
    this.#said.add(message);
  }

  progress(): StagedProgress {
    const { stderr } = this.context;
    const isShown = stderr.isTTY === true && !this.#isQuiet;
    return createProgress(isShown ? stderr : { write: () => true }, () => performance.now());
  }

  /** Reads a new password: typed twice, or piped in. */
  async password(fromStdin: boolean): Promise<string> {
    const { stdin, stderr } = this.context;
    if (fromStdin) return readPassword(stdin);
    requireTerminal(stdin);
    return askPassword(stdin, stderr);
  }

  /** Reads an existing password: typed once, or piped in. */
  async existingPassword(question: string, fromStdin: boolean): Promise<string> {
    const { stdin, stderr } = this.context;
    if (fromStdin) return readPassword(stdin);
    requireTerminal(stdin);
    return askWithoutEcho(replaceControlCharacters(question), stdin, stderr);
  }

  /** Throws unless the user confirms. */
  async confirm(question: string, isConfirmed: boolean): Promise<void> {
    const { stdin, stderr } = this.context;
    if (isConfirmed) return;
    const shown = replaceControlCharacters(question);
    if (stdin.isTTY !== true) throw new UsageError(`${shown} Confirm with --yes`);
    if (!(await askYesOrNo(shown, stdin, stderr))) throw new UserError("Canceled. Nothing was changed.");
  }

  /** Reads a file, or standard input if the path is `-`. */
  async read(path: string, maxBytes: number): Promise<Buffer> {
    const { stdin, readFile } = this.context;
    if (path !== "-") {
      try {
        return readFile(path);
      } catch (error) {
        throw new UserError(`Cannot read ${path}: ${reasonOf(error)}.`);
      }
    }
    if (stdin.isTTY === true) this.say("Reading from the terminal; press Ctrl-D to end.");
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of stdin) {
      chunks.push(Buffer.from(chunk));
      length += chunk.length;
      if (length > maxBytes) throw new UserError(`Standard input is longer than ${maxBytes} bytes.`);
    }
    return Buffer.concat(chunks);
  }
}
