import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Run } from "./run.ts";

type Reply<Report> = { readonly report: Report } | { readonly error: string | undefined };

/** A child process that runs a module of this folder, with clients that must not share the event loop of the test. */
export class ClientProcess<Command extends object | string> {
  readonly #child: ChildProcess;
  readonly #ended: Promise<never>;

  constructor(run: Run, module: string) {
    // Commands may contain buffers.
    this.#child = fork(new URL(module, import.meta.url), { serialization: "advanced" });
    this.#ended = once(this.#child, "exit").then(() => Promise.reject(new Error("a client process exited early")));
    this.#ended.catch(() => undefined);
    run.onEnd(() => this.#child.kill("SIGKILL"));
  }

  send(command: Command): void {
    this.#child.send(command);
  }

  /** Sends a command and waits for the report. */
  async ask<Report>(command: Command): Promise<Report> {
    this.send(command);
    const [reply]: [Reply<Report>] = (await Promise.race([once(this.#child, "message"), this.#ended])) as never;
    if ("error" in reply) throw new Error(reply.error);
    return reply.report;
  }
}

/** In the child process: answers each command with a report, unless it is undefined. */
export function answerCommands<Command>(execute: (command: Command) => Promise<unknown> | undefined): void {
  process.on("message", (command: Command) => {
    execute(command)?.then(
      (report) => process.send?.({ report }),
      (error: Error) => process.send?.({ error: error.stack }),
    );
  });
  process.on("disconnect", () => process.exit());
}
