import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const EARMARK = fileURLToPath(new URL("../../bin/earmark", import.meta.url));

/** As `npm start` does it. */
const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  scripts: { start: string };
};
export const START_OPTIONS = scripts.start.split(" ").filter((word) => word.startsWith("--"));
export const SERVE: readonly string[] = [process.execPath, ...START_OPTIONS, EARMARK, "serve"];

export interface RunningServer {
  readonly child: ChildProcess;
  readonly url: string;
  readonly port: number;
  readonly output: () => string;
  /** Resolves when the process has ended: its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
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
  return { ...own, EARMARK_FETCH_FEEDS: "false", ...settings };
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
    env: cleanEnvironment({ PORT: "0", ...settings }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = once(child, "exit").then(([code, signal]) => signal ?? code);
  const listening = new Promise<RunningServer>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      const url = /"url":"([^"]+)"/.exec(output)?.[1];
      if (url !== undefined) resolve({ child, url, port: Number(new URL(url).port), output: () => output, ended });
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    void ended.then((code) => reject(new Error(`the server ended with ${code}: ${output}`)));
  });
  return { child, listening };
}
