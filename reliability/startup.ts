import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "../test/support/postgres.ts";
import { launch } from "../test/support/process.ts";
import { type Case, ON_FILES, onPostgres, type Site, WITH_SETTINGS } from "./startup-cases.ts";
import { type Findings, type ReliabilityTest, type Run, serve, stop } from "./support/run.ts";

const AT_ONCE = 2;

export const startup: ReliabilityTest = {
  name: "startup checks",
  promises: ["P10"],
  async check(run) {
    if (run.isQuick) return tryAll(run, ON_FILES);
    const [safe, unsafe] = [await startPostgres([], run.onEnd), await startPostgres(["fsync=off"], run.onEnd)];
    const standby = await (await startPostgres([], run.onEnd)).standby();
    return tryAll(run, [...ON_FILES, ...WITH_SETTINGS, ...onPostgres(safe, unsafe, standby)]);
  },
  control: {
    name: "accounts, served to everyone",
    check(run) {
      const chosen = ON_FILES.filter(([name]) => name.startsWith("accounts"));
      const open = chosen.map(([name, words, prepare]): Case => {
        const settings = async (site: Site) => ({ ...(await prepare(site)), EARMARK_ALLOW_ANONYMOUS: "true" });
        return [name, words, settings];
      });
      return tryAll(run, open);
    },
  },
};

/** A database as the program creates it. */
async function create(run: Run, name: string, settings: Readonly<Record<string, string>>): Promise<string> {
  const path = join(run.folder, name);
  await stop(await serve(run, { ...settings, DATABASE_URL: `file:${path}` }), "SIGTERM");
  return path;
}

async function tryAll(run: Run, cases: readonly Case[]): Promise<Findings> {
  const admin = { EARMARK_ADMIN_USER: "ann", EARMARK_ADMIN_PASSWORD: "the password of ann" };
  const intact = await create(run, "intact.db", {});
  const withAccounts = await create(run, "accounts.db", { EARMARK_ACCOUNTS: "true", ...admin });
  const violations: string[] = [];
  let refused = 0;
  const waiting = cases.entries();
  const tryNext = async () => {
    for (const [index, one] of waiting) {
      const [name] = one;
      run.log(name);
      const folder = join(run.folder, `start-${index}`);
      mkdirSync(folder);
      const found = await tryOne({ run, folder, intact, withAccounts }, one);
      if (found.length === 0) refused += 1;
      violations.push(...found.map((words) => `${name}: ${words}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, tryNext));
  return { figures: `${cases.length} invalid starts, ${refused} refused with the right message`, violations };
}

async function tryOne(site: Site, [, words, prepare, exitCode = 1]: Case): Promise<string[]> {
  const settings = await prepare(site);
  const before = contentOf(site.folder);
  const { child, listening } = launch(settings);
  site.run.onEnd(() => child.kill("SIGKILL"));
  let output = "";
  child.stderr?.on("data", (chunk) => (output += chunk));
  const closed = once(child, "close");
  const hasStarted = await listening.then(
    () => true,
    () => false,
  );
  if (hasStarted) {
    child.kill("SIGKILL");
    return ["it starts"];
  }
  const [code] = await closed;
  const violations = words.filter((word) => !word.test(output)).map((word) => `does not say ${word}, but: ${output}`);
  if (code !== exitCode) violations.push(`ends with ${code} instead of ${exitCode}`);
  if (/\n {4}at /.test(output)) violations.push("shows a stack trace");
  const after = contentOf(site.folder);
  if (after !== before) violations.push(`changes the data:\n${before}\n---\n${after}`);
  return violations;
}

/** All files except the lock beside a database, which any attempt may create and which is empty. */
function contentOf(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.endsWith("-lock"))
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) return name;
      return `${name} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
    })
    .join("\n");
}
