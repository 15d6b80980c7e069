import { constants, setPriority } from "node:os";
import { runCommandLine } from "./cli/command-line.ts";

/** Signals within this time count as one: a supervisor may signal all processes while a launcher forwards the signal. */
const SAME_SIGNAL_MS = 300;
const PARENT_CHECK_MS = 500;

/** The first signal asks to stop; a later one ends the process at once. */
function stopSignal(): Promise<string> {
  const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  return new Promise((resolve) => {
    const ignore = () => undefined;
    const stop = (signal: string) => {
      for (const each of signals) process.off(each, stop).on(each, ignore);
      setTimeout(() => {
        for (const each of signals) process.off(each, ignore);
      }, SAME_SIGNAL_MS).unref();
      resolve(signal);
    };
    for (const each of signals) process.on(each, stop);
    // The shell between npm and this process does not forward signals, so stop when it is gone.
    const parent = process.ppid;
    if (process.env["npm_lifecycle_event"] !== undefined) {
      const watch = setInterval(() => {
        if (process.ppid === parent) return;
        clearInterval(watch);
        stop("npm exited");
      }, PARENT_CHECK_MS);
      watch.unref();
    }
  });
}

function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW);
  } catch {
    // Not permitted here.
  }
}

// Feed URLs may contain passwords, so new files are readable by this user only.
process.umask(0o077);
// A closed output is no reason to stop serving.
for (const output of [process.stdout, process.stderr]) output.on("error", () => undefined);

process.exitCode = await runCommandLine(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  workingDirectory: process.cwd(),
  stopRequested: stopSignal,
  lowerPriority,
});
