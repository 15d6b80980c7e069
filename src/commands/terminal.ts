import type { Readable, Writable } from "node:stream";
import type { Config } from "../config.ts";
import { escapeControlCharacters, stripControlCharacters, stripFromLines } from "../control-characters.ts";
import { drained } from "../http/respond.ts";
import { UserError } from "../user-error.ts";
import { askPassword, askYesOrNo, readPassword } from "./ask.ts";
import { createProgress, type Progress } from "./progress.ts";

/** What there is of the world outside for a command. Data goes to standard output, words to standard error. */
export interface World {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly version: string;
  readonly config: () => Config;
  readonly readFile: (path: string) => Buffer;
  readonly now: () => Date;
  /** Resolves to the name of the signal that asks to stop. */
  readonly stopped: () => Promise<string>;
}

/** How a command was used wrongly. */
export class WrongUsage extends Error {}

/**
 * A command's way to people and programs. Text may come from a server, a file or a database, so every method removes
 * control characters from it; only `writeFile` does not, unless a terminal would show the file.
 */
export class Terminal {
  readonly world: World;
  readonly #isQuiet: boolean;

  constructor(world: World, { quiet }: { readonly quiet: boolean }) {
    this.world = world;
    this.#isQuiet = quiet;
  }

  /** Lines on standard output. */
  async write(text: string): Promise<void> {
    await this.#write(stripFromLines(text));
  }

  /** The content of a file on standard output, unchanged if that is a file or a pipe. */
  async writeFile(content: string): Promise<void> {
    await this.#write(this.world.stdout.isTTY === true ? stripFromLines(content) : content);
  }

  /** JSON on standard output. Control characters are escaped, so that its value stays the same. */
  async writeJson(json: string): Promise<void> {
    await this.#write(escapeControlCharacters(json));
  }

  /** Writes no faster than it is read. */
  async #write(data: string): Promise<void> {
    const { stdout } = this.world;
    if (!stdout.write(data) && !stdout.destroyed) await drained(stdout);
  }

  /** One value in a line: for programs as JSON, for people as columns. */
  async line(value: Readonly<Record<string, string | number | null>>, asJson: boolean): Promise<void> {
    if (asJson) return this.writeJson(`${JSON.stringify(value)}\n`);
    const columns = Object.values(value).map((cell) => stripControlCharacters(String(cell ?? "")));
    await this.write(`${columns.join("\t").trimEnd()}\n`);
  }

  say(words: string): void {
    if (!this.#isQuiet) this.world.stderr.write(`${stripControlCharacters(words)}\n`);
  }

  progress(): Progress {
    const { stderr } = this.world;
    const isShown = stderr.isTTY === true && !this.#isQuiet;
    return createProgress(isShown ? stderr : { write: () => true }, () => performance.now());
  }

  /** A new password: typed twice, or from another program. */
  async password(fromInput: boolean): Promise<string> {
    const { stdin, stderr } = this.world;
    if (fromInput) return readPassword(stdin);
    if (stdin.isTTY !== true)
      throw new WrongUsage("there is no terminal to ask for the password: pipe it in, with --password-stdin");
    return askPassword(stdin, stderr);
  }

  /** What destroys something is done when someone has said so. */
  async confirm(question: string, isSaid: boolean): Promise<void> {
    const { stdin, stderr } = this.world;
    if (isSaid) return;
    const shown = stripControlCharacters(question);
    if (stdin.isTTY !== true) throw new WrongUsage(`${shown} Say so with --yes`);
    if (!(await askYesOrNo(shown, stdin, stderr))) throw new UserError("Nothing was done.");
  }

  /** The bytes of a file, or of standard input where that is `-`. */
  async read(path: string, maxBytes: number): Promise<Buffer> {
    const { stdin, readFile } = this.world;
    if (path !== "-") {
      try {
        return readFile(path);
      } catch (error) {
        throw new UserError(`${path} cannot be read: ${(error as Error).message}.`);
      }
    }
    if (stdin.isTTY === true) this.say("Reading from the terminal; end with Ctrl-D.");
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of stdin) {
      chunks.push(Buffer.from(chunk));
      length += chunk.length;
      if (length > maxBytes) throw new UserError(`Standard input has more than ${maxBytes} bytes.`);
    }
    return Buffer.concat(chunks);
  }
}
