import { isUtf8 } from "node:buffer";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import { Writable } from "node:stream";
import { UserError } from "../util/user-error.ts";

const MAX_INPUT = 4_096;

/** Reads a piped password: all input except a trailing line break. */
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

/** Asks for a password twice, without echo. */
export async function askPassword(input: Readable, output: Writable): Promise<string> {
  const password = await askWithoutEcho("Password: ", input, output);
  if ((await askWithoutEcho("Repeat password: ", input, output)) !== password)
    throw new UserError("The passwords do not match. Nothing was changed.");
  return password;
}

/** Asks for an existing password or another secret. */
export async function askWithoutEcho(question: string, input: Readable, output: Writable): Promise<string> {
  output.write(question);
  // The line editor echoes what is typed, so its output is discarded.
  const discard = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: discard, terminal: true, historySize: 0 });
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

/** Rejects at the end of the input and on Ctrl-C. */
function answerOf(lines: ReturnType<typeof createInterface>, question: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const cancel = () => reject(new UserError("Canceled. Nothing was changed."));
    lines.once("close", cancel).once("SIGINT", cancel);
    lines.question(question).then(resolve, reject);
  });
}
