import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cleanEnvironment } from "./process.ts";
import { temporaryFolder } from "./server.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/**
 * Builds the client beside a copy of the examples as they tell readers to: after `npm start`, which installs no
 * development packages. The Node that runs this stands for the one that `npm start` brings. Resolves to the folder that
 * contains `client` and `examples`.
 */
export async function buildExamples(): Promise<string> {
  const folder = temporaryFolder();
  const client = join(folder, "client");
  cpSync(join(ROOT, "examples"), join(folder, "examples"), { recursive: true });
  cpSync(join(ROOT, "client"), client, { recursive: true, filter: (path) => !/[/\\](dist|node_modules)$/.test(path) });
  for (const name of ["node.mjs", "sync.mjs"])
    assert.match(readFileSync(join(folder, "examples", name), "utf8"), /\(cd client && npm run build\)/);
  const PATH = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const { scripts } = JSON.parse(readFileSync(join(client, "package.json"), "utf8")) as { scripts: { build: string } };
  // As npm runs it, which takes longer to start than to run this.
  await run("sh", ["-c", scripts.build], { cwd: client, env: { ...cleanEnvironment({}), PATH } });
  return folder;
}

/** Whether this machine has a program. */
export const has = (program: string): Promise<boolean> =>
  run(program, ["--version"]).then(
    () => true,
    () => false,
  );
