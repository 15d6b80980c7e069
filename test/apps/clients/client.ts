import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanEnvironment } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import type { Json, World } from "../app.ts";

/** The code of a real client, driven by a small program beside this file. */
export interface Installed {
  readonly version: string;
  readonly command: readonly string[];
}

/** Debian's packages belong to Debian's own Python, which need not be the first one in the path. */
const PYTHONS = ["/usr/bin/python3", "python3"];

/** Undefined if the Python packages are not installed. */
export function findPython(program: string, packages: readonly string[]): Installed | undefined {
  const versions = packages.map((name) => `${name}.__version__`).join(", ");
  const code = `import ${packages.join(", ")}; print(${versions})`;
  for (const python of PYTHONS) {
    const { status, stdout } = spawnSync(python, ["-c", code], { encoding: "utf8" });
    if (status === 0) return { version: stdout.trim(), command: [python, "-B", pathOf(program)] };
  }
  return undefined;
}

/** Compiles a program against a library; undefined if the library or the compiler is not installed. */
export function compile(program: string, library: string): Installed | undefined {
  const ask = (...options: string[]) => spawnSync("pkg-config", [...options, library], { encoding: "utf8" }).stdout;
  const version = ask("--modversion")?.trim() ?? "";
  if (version === "") return undefined;
  const flags = ask("--cflags", "--libs").trim().split(/\s+/);
  const target = `${temporaryFolder()}/client`;
  const { error, status, stderr } = spawnSync("g++", ["-fPIC", "-o", target, pathOf(program), ...flags], {
    encoding: "utf8",
  });
  if (error !== undefined) return undefined;
  if (status !== 0) throw new Error(`cannot compile ${program}:\n${stderr}`);
  return { version, command: [target] };
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url));
}

export interface RealClient {
  /** Calls a method of the client's own code; throws what the client says if it fails. */
  call(method: string, ...args: unknown[]): Promise<Json>;
}

/** A new process of a client. It gets the user's password, or a token. */
export function startClient({ command }: Installed, { name, port }: World, password: string): RealClient {
  const folder = temporaryFolder();
  const [file = "", ...args] = command;
  const child: ChildProcess = spawn(file, [...args, name, password, `http://127.0.0.1:${port}`, folder], {
    stdio: ["pipe", "pipe", "pipe"],
    env: cleanEnvironment({ HOME: folder }),
  });
  after(() => child.kill("SIGKILL"));
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new Error("the client has no pipes");
  // A client that has ended is reported by the call that finds no answer.
  stdin.on("error", () => undefined);
  let log = "";
  stderr.on("data", (chunk) => (log += chunk));
  const lines = createInterface(stdout)[Symbol.asyncIterator]();
  return {
    async call(method, ...given) {
      stdin.write(`${JSON.stringify([method, given])}\n`);
      const { value: line, done } = await lines.next();
      if (done === true) throw new Error(`the client ended in ${method}:\n${log}`);
      const { value, error } = JSON.parse(line) as { value: Json; error?: string };
      if (error !== undefined) throw new Error(`${method}: ${error}\n${log}`);
      return value;
    },
  };
}
