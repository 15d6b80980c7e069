import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { after } from "node:test";
import { type HostProcess, runCommandLine } from "../../src/cli/command-line.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import "./fast-passwords.ts";
import { cleanEnvironment, type Ended, type Server, whenListening } from "./process.ts";

type Settings = Readonly<Record<string, string>>;

interface Surroundings {
  readonly workingDirectory?: string | undefined;
  readonly stdin?: HostProcess["stdin"];
  readonly stdout?: PassThrough | undefined;
  readonly stderr?: PassThrough | undefined;
}

/** Starts a command in this process, which is much faster than starting the program. `stop` is what a signal does. */
export function startInProcess(args: readonly string[], settings: Settings = {}, given: Surroundings = {}) {
  const { stdout = new PassThrough(), stderr = new PassThrough() } = given;
  const { promise: stopRequested, resolve: stop } = Promise.withResolvers<string>();
  const ended = runCommandLine(args, {
    ...{ stdin: given.stdin ?? new PassThrough().end(), stdout, stderr },
    workingDirectory: given.workingDirectory ?? process.cwd(),
    environment: cleanEnvironment(settings),
    stopRequested: () => stopRequested,
    // It would last as long as this process.
    lowerPriority: () => undefined,
  }).finally(() => {
    stdout.end();
    stderr.end();
  });
  return { stdout, stderr, stop, ended };
}

/** Runs a command to its end in this process. */
export async function runInProcess(
  args: readonly string[],
  settings: Settings = {},
  workingDirectory?: string,
  input: string | Buffer | HostProcess["stdin"] = "",
  stderr?: PassThrough,
): Promise<Ended> {
  const stdin = typeof input === "string" || Buffer.isBuffer(input) ? new PassThrough().end(input) : input;
  const command = startInProcess(args, settings, { workingDirectory, stdin, stderr });
  const [code, out, err] = await Promise.all([command.ended, text(command.stdout), text(command.stderr)]);
  return { code, stdout: out, stderr: err };
}

/** Runs `earmark serve` in this process, by default on a free port; stopped after the tests of the file. */
export async function serveInProcess(settings: Settings): Promise<Server & { readonly stderr: () => string }> {
  const { stdout, stderr, stop, ended } = startInProcess(["serve"], { PORT: "0", ...settings });
  let messages = "";
  stderr.on("data", (chunk) => (messages += chunk));
  const server = await whenListening([stdout], ended, () => stop("SIGTERM")).catch((error) => {
    throw new Error(`${error.message}${messages}`);
  });
  after(server.stop);
  return { ...server, stderr: () => messages };
}

/** Works on a database as a command does, even while a server uses it. */
export async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url, { connections: 1, allowRunningServer: true });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The lines of the standard output. */
/** How many subscriptions `earmark list` prints, below its header. */
export const countListed = (ended: Ended) => lines(ended).length - 1;

export const lines = ({ stdout }: Ended) => stdout.split("\n").filter((line) => line !== "");
