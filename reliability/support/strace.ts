import { spawnSync } from "node:child_process";
import { type RunningServer, SERVE } from "../../test/support/process.ts";
import { type Run, serve } from "./run.ts";

/** A system call in strace's log. With several threads its start and its end may be on separate lines. */
export interface Call {
  readonly thread: string;
  readonly name: string;
  /** Arguments; files by their paths. */
  readonly given: string;
  readonly moment: "begins" | "ends";
  /** The return value, once the call has ended. */
  readonly result: string;
}

export interface TracedServer extends RunningServer {
  /** Signals the server itself, because strace does not forward signals. */
  signal(signal: "SIGTERM" | "SIGKILL"): void;
}

/** The server under strace, which logs to `file`. */
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
      // It has exited, and strace is about to.
    }
  };
  run.onEnd(() => signal("SIGKILL"));
  return { ...server, signal };
}

/** Whether strace is installed and permitted. */
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
      // The bytes of a read are logged when it ends.
      const { name: called, given: before } = begun.get(thread) ?? { name, given };
      yield { thread, name: called, given: before + resumed[2], moment: "ends", result };
    } else if (name !== "") {
      begun.set(thread, { name, given });
      yield { thread, name, given, moment: "begins", result: "" };
      if (!rest.endsWith("<unfinished ...>")) yield { thread, name, given, moment: "ends", result };
    }
  }
}
