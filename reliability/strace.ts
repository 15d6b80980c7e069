import { spawnSync } from "node:child_process";
import { type RunningServer, SERVE } from "../test/process.ts";
import { type Run, serve } from "./proof.ts";

/** A system call as strace tells it. It begins and ends apart where other threads come between. */
export interface Call {
  readonly thread: string;
  readonly name: string;
  /** What it was called with; files by their paths. */
  readonly given: string;
  readonly moment: "begins" | "ends";
  /** What it returned, once it has ended. */
  readonly result: string;
}

export interface TracedServer extends RunningServer {
  /** Signals the server itself: strace keeps to itself what it is sent. */
  signal(signal: "SIGTERM" | "SIGKILL"): void;
}

/** The server under strace, which writes what it sees to `file`. */
export async function serveTraced(
  run: Run,
  settings: Readonly<Record<string, string>>,
  file: string,
  options: readonly string[],
): Promise<TracedServer> {
  const server = await serve(run, settings, [
    "strace",
    "-f",
    "-qq",
    "-y",
    "-s",
    "16",
    "-o",
    file,
    ...options,
    ...SERVE,
  ]);
  const pid = Number(/"pid":(\d+)/.exec(server.output())?.[1]);
  const signal = (name: "SIGTERM" | "SIGKILL") => {
    if (server.child.exitCode !== null || server.child.signalCode !== null) return;
    try {
      process.kill(pid, name);
    } catch {
      // It has ended, and strace is just about to.
    }
  };
  run.later(() => signal("SIGKILL"));
  return { ...server, signal };
}

/** Whether there is an strace here, and it may look. */
export function isStraceHere(): boolean {
  return spawnSync("strace", ["-f", "-qq", "-o", "/dev/null", process.execPath, "--version"]).status === 0;
}

export function* readCalls(trace: string): Generator<Call> {
  const begun = new Map<string, { readonly name: string; readonly given: string }>();
  for (const line of trace.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. (\w+) resumed>(.*)$/.exec(rest);
    const [, name = "", given = ""] = /^(\w+)\((.*)$/.exec(rest) ?? [];
    const result = / = (-?\w+.*)$/.exec(rest)?.[1] ?? "";
    if (resumed !== null) {
      // What was read is told at its end.
      const { name: called, given: before } = begun.get(thread) ?? { name, given };
      yield { thread, name: called, given: before + resumed[2], moment: "ends", result };
    } else if (name !== "") {
      begun.set(thread, { name, given });
      yield { thread, name, given, moment: "begins", result: "" };
      if (!rest.endsWith("<unfinished ...>")) yield { thread, name, given, moment: "ends", result };
    }
  }
}
