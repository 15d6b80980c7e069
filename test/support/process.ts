import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Readable } from "node:stream";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const EARMARK = fileURLToPath(new URL("../../bin/earmark", import.meta.url));

/** As `npm start` does it. */
const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  scripts: { start: string };
};
export const START_OPTIONS = scripts.start.split(" ").filter((word) => word.startsWith("--"));
/** As bin/earmark, the packages and the container start it. */
export const { ENVIRONMENT } = createRequire(import.meta.url)("../../bin/node.js") as {
  ENVIRONMENT: Readonly<Record<string, string>>;
};
export const SERVE: readonly string[] = [process.execPath, ...START_OPTIONS, EARMARK, "serve"];

/** A server that is running: in its own process, or in this one. */
export interface Server {
  readonly url: string;
  readonly port: number;
  readonly output: () => string;
  /** Resolves when it has ended: its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Asks it to end, and waits. */
  readonly stop: () => Promise<number | string>;
}

export interface RunningServer extends Server {
  readonly child: ChildProcess;
}

/** What a run of the program said and how it ended. */
export interface Ended {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The environment of a test: nothing of the developer's own settings, and Node 24 as this process has it. Feeds are fetched
 * only if the test asks for it.
 */
export function cleanEnvironment(settings: Readonly<Record<string, string>>): Record<string, string> {
  const own = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" };
  return { ...own, EARMARK_FETCH_FEEDS: "false", EARMARK_DIRECTORY: "off", ...settings };
}

/** Runs the program to its end, with `input` on its standard input. */
export async function run(
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
  cwd = process.cwd(),
  input?: string,
): Promise<Ended> {
  const child = spawn(process.execPath, [EARMARK, ...args], { env: cleanEnvironment(settings), cwd });
  child.stdin.on("error", () => undefined).end(input);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const [code, signal] = await once(child, "close");
  return { code: signal ?? code, stdout, stderr };
}

/** Starts the program as a user would, and ends it with the tests of the file. */
export async function start(
  settings: Readonly<Record<string, string>>,
  command: readonly string[] = SERVE,
): Promise<RunningServer> {
  const { child, listening } = launch(settings, command);
  after(() => child.kill("SIGKILL"));
  return listening;
}

/** The process at once, by default on a free port; the server when it listens. `command` may wrap it. */
export function launch(
  settings: Readonly<Record<string, string>>,
  command: readonly string[] = SERVE,
): { readonly child: ChildProcess; readonly listening: Promise<RunningServer> } {
  const [file = "", ...args] = command;
  const child = spawn(file, args, {
    env: cleanEnvironment({ PORT: "0", ...ENVIRONMENT, ...settings }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit").then(([code, signal]) => signal ?? code);
  const stop = () => child.kill("SIGTERM");
  const listening = whenListening([child.stdout, child.stderr], ended, stop);
  return { child, listening: listening.then((server) => ({ child, ...server })) };
}

/** The server when it has written its URL to one of the outputs. */
export function whenListening(
  outputs: readonly Readable[],
  ended: Promise<number | string>,
  requestStop: () => unknown,
): Promise<Server> {
  let output = "";
  const stop = () => {
    requestStop();
    return ended;
  };
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      const url = /"url":"([^"]+)"/.exec(output)?.[1];
      if (url !== undefined) resolve({ url, port: Number(new URL(url).port), output: () => output, ended, stop });
    };
    for (const stream of outputs) stream.on("data", read);
    void ended.then((code) => reject(new Error(`the server ended with ${code}: ${output}`)));
  });
}
