import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** A PostgreSQL server by its data folder, which this process may stop and start. */
export class NodeProcess {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Ends the server as a power cut would, for everybody but the disk. */
  kill(): void {
    this.#signal("SIGKILL");
  }

  /** The server's sockets stay open, but nothing answers. */
  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  async start(): Promise<void> {
    const { uid, gid } = statSync(this.#folder);
    const program = join(process.env["TEST_POSTGRES_BIN"] ?? "", "pg_ctl");
    const args = ["-D", this.#folder, "-l", join(this.#folder, "log"), "-w", "start"];
    // Nodes look for certificates in the home folder, and fail if they may not read it.
    const env = { ...process.env, HOME: this.#folder };
    const [status] = await once(spawn(program, args, { uid, gid, cwd: this.#folder, env, stdio: "ignore" }), "exit");
    if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${status}`);
  }

  /** The server first, so that it starts no new processes. */
  #signal(signal: NodeJS.Signals): void {
    const server = Number(readFileSync(join(this.#folder, "postmaster.pid"), "utf8").split("\n", 1)[0]);
    for (const pid of [server, ...childrenOf(server)]) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended meanwhile.
      }
    }
  }
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent;
    } catch {
      return false;
    }
  });
}
