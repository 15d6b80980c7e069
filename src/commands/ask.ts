import { isUtf8 } from "node:buffer";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import { Writable } from "node:stream";
import { UserError } from "../user-error.ts";

const MAX_INPUT = 4_096;

/** A password that another program gives: all of the input but a line break at its end. */
export async function readPassword(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    if (length > MAX_INPUT) throw new UserError("The password on standard input is too long.");
  }
  const bytes = Buffer.concat(chunks);
  if (!isUtf8(bytes)) throw new UserError("The password on standard input is not UTF-8.");
  return bytes.toString().replace(/\r?\n$/, "");
}

/** A password that a person types, twice, without showing it. */
export async function askPassword(input: Readable, output: Writable): Promise<string> {
  const password = await askInSecret("Password: ", input, output);
  if ((await askInSecret("The same again: ", input, output)) !== password)
    throw new UserError("These were two different passwords. Nothing was done.");
  return password;
}

async function askInSecret(question: string, input: Readable, output: Writable): Promise<string> {
  output.write(question);
  // What is typed would be echoed by the line editor, so it writes to nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nowhere, terminal: true, historySize: 0 });
  try {
    return await answerOf(lines, "");
  } finally {
    lines.close();
    output.write("\n");
  }
}

export async function askYesOrNo(question: string, input: Readable, output: Writable): Promise<boolean> {
  const lines = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await answerOf(lines, `${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}

/** Rejects when the input ends, or on Ctrl-C. */
function answerOf(lines: ReturnType<typeof createInterface>, question: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(new UserError("Nothing was done."));
    lines.once("close", leave).once("SIGINT", leave);
    lines.question(question).then(resolve, reject);
  });
}
