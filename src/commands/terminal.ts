import type { Readable, Writable } from "node:stream";
import type { Config } from "../config.ts";
import { drained } from "../http/respond.ts";
import { StartFailure } from "../store/opening.ts";
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

/** Words without what could steer a terminal; a server far away may have written some of them. */
export function harmless(words: string): string {
  return words.replaceAll(/[^\P{Cc}\n\t]/gu, "\ufffd");
}

/** A command's way to people and programs. */
export class Terminal {
  readonly world: World;
  readonly #isQuiet: boolean;

  constructor(world: World, { quiet }: { readonly quiet: boolean }) {
    this.world = world;
    this.#isQuiet = quiet;
  }

  /** Data, no faster than it is read. */
  async write(data: string): Promise<void> {
    const { stdout } = this.world;
    if (!stdout.write(data) && !stdout.destroyed) await drained(stdout);
  }

  /** One value in a line: for programs as JSON, for people as columns. Nothing in them can steer a terminal. */
  async line(value: Readonly<Record<string, string | number | null>>, asJson: boolean): Promise<void> {
    const columns = Object.values(value).map((cell) => String(cell ?? "").replaceAll(/\p{Cc}/gu, "\ufffd"));
    const json = JSON.stringify(value).replaceAll(
      /\p{Cc}/gu,
      (control) => `\\u00${control.charCodeAt(0).toString(16)}`,
    );
    await this.write(asJson ? `${json}\n` : `${columns.join("\t").trimEnd()}\n`);
  }

  say(words: string): void {
    if (!this.#isQuiet) this.world.stderr.write(`${harmless(words)}\n`);
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
    if (stdin.isTTY !== true) throw new WrongUsage(`${question} Say so with --yes`);
    if (!(await askYesOrNo(question, stdin, stderr))) throw new StartFailure("Nothing was done.");
  }

  /** The bytes of a file, or of standard input where that is `-`. */
  async read(path: string, maxBytes: number): Promise<Buffer> {
    const { stdin, readFile } = this.world;
    if (path !== "-") {
      try {
        return readFile(path);
      } catch (error) {
        throw new StartFailure(`${path} cannot be read: ${(error as Error).message}.`);
      }
    }
    if (stdin.isTTY === true) this.say("Reading from the terminal; end with Ctrl-D.");
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of stdin) {
      chunks.push(Buffer.from(chunk));
      length += chunk.length;
      if (length > maxBytes) throw new StartFailure(`Standard input has more than ${maxBytes} bytes.`);
    }
    return Buffer.concat(chunks);
  }
}
