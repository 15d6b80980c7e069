import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Artwork, ArtworkScaler } from "../read/feed.ts";
import type { ArtworkReply } from "./artwork-child.ts";

export interface ArtworkOptions {
  readonly log: { warn(message: string): void };
  /** The module that the child process runs. */
  readonly program?: URL;
  readonly timeoutMs?: number;
  readonly idleMs?: number;
}

/** Environment variables for the child process. No settings: they contain secrets. */
const ENVIRONMENT = ["PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMPDIR"];

/** Scales images in a child process, one at a time. */
export class ChildProcessArtworkScaler implements ArtworkScaler {
  readonly #options: Required<ArtworkOptions>;
  #child: ChildProcess | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;
  /** False if sharp is not installed, and after `close`. */
  #isAvailable = true;

  constructor({
    log,
    program = new URL("./artwork-child.ts", import.meta.url),
    timeoutMs = 10_000,
    idleMs = 10_000,
  }: ArtworkOptions) {
    this.#options = { log, program, timeoutMs, idleMs };
  }

  scale(bytes: Uint8Array): Promise<Artwork | undefined> {
    const scaled = this.#queue.then(() => this.#scaleNow(bytes));
    this.#queue = scaled;
    return scaled;
  }

  async close(): Promise<void> {
    this.#isAvailable = false;
    this.#stop();
    await this.#queue;
  }

  async #scaleNow(bytes: Uint8Array): Promise<Artwork | undefined> {
    clearTimeout(this.#idle);
    const child = await this.#start();
    if (child === undefined) return undefined;
    child.send(bytes, () => undefined);
    const reply = await this.#nextReply(child);
    this.#idle = setTimeout(() => this.#stop(), this.#options.idleMs).unref();
    if (reply?.kind !== "scaled") return undefined;
    const [large, small] = [Buffer.from(reply.large), Buffer.from(reply.small)];
    return { hash: createHash("sha256").update(large).digest("hex").slice(0, 32), small, large };
  }

  async #start(): Promise<ChildProcess | undefined> {
    if (!this.#isAvailable) return undefined;
    if (this.#child !== undefined) return this.#child;
    const { log, program } = this.#options;
    const child = fork(fileURLToPath(program), {
      env: Object.fromEntries(ENVIRONMENT.map((name) => [name, process.env[name]])),
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    this.#child = child;
    // A failure to start the child, or to send to it, results in `exit` or in a timeout.
    child.on("error", () => undefined);
    child.on("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
    const reply = await this.#nextReply(child);
    if (reply?.kind === "no-sharp") {
      this.#isAvailable = false;
      this.#stop();
      log.warn("sharp is not installed: podcasts have no artwork");
    }
    return reply?.kind === "ready" ? child : undefined;
  }

  /** The next message. Undefined if the process ends instead, or takes too long and is killed. */
  async #nextReply(child: ChildProcess): Promise<ArtworkReply | undefined> {
    const timer = setTimeout(() => this.#stop(), this.#options.timeoutMs);
    const { promise, resolve } = Promise.withResolvers<ArtworkReply | undefined>();
    const onEnd = () => resolve(undefined);
    child.on("message", resolve).on("exit", onEnd);
    // The child keeps this process alive only while a reply is awaited.
    child.ref();
    child.channel?.ref();
    const reply = await promise;
    child.unref();
    child.channel?.unref();
    child.off("message", resolve).off("exit", onEnd);
    clearTimeout(timer);
    return reply;
  }

  #stop(): void {
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
  }
}
