import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { type HostProcess, runCommandLine } from "../../src/commands/command-line.ts";
import { cleanEnvironment, type Ended } from "./process.ts";

/**
 * Runs a command in this process, which is much faster than starting the program. Not for `backup`, which lowers the
 * priority of its process.
 */
export async function runInProcess(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  workingDirectory = process.cwd(),
  input: string | Buffer | HostProcess["stdin"] = "",
  stderr = new PassThrough(),
): Promise<Ended> {
  const stdin = typeof input === "string" || Buffer.isBuffer(input) ? new PassThrough().end(input) : input;
  const stdout = new PassThrough();
  const outputs = Promise.all([text(stdout), text(stderr)]);
  const environment = cleanEnvironment(settings);
  const stopRequested = () => new Promise<never>(() => undefined);
  const code = await runCommandLine(args, { stdin, stdout, stderr, environment, workingDirectory, stopRequested });
  stdout.end();
  stderr.end();
  const [out, err] = await outputs;
  return { code, stdout: out, stderr: err };
}

/** The lines of the standard output. */
export const lines = ({ stdout }: Ended) => stdout.split("\n").filter((line) => line !== "");
