import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "../test/support/postgres.ts";
import { launch } from "../test/support/process.ts";
import { type Case, casesOfFiles, casesOfPostgres, casesOfSettings } from "./startup-cases.ts";
import { type Findings, type ReliabilityTest, type Run, serve, stop } from "./support/run.ts";

const AT_ONCE = 2;

export const start: ReliabilityTest = {
  name: "start-up checks",
  promises: ["P10"],
  async check(run) {
    const database = await makeDatabase(run, {});
    const cases = casesOfFiles(database, await makeWithAccounts(run));
    if (run.isQuick) return tryAll(run, cases);
    const [safe, unsafe] = [await startPostgres([], run.onEnd), await startPostgres(["fsync=off"], run.onEnd)];
    const standby = await (await startPostgres([], run.onEnd)).standby();
    return tryAll(run, [...cases, ...casesOfSettings(database), ...casesOfPostgres(safe, unsafe, standby)]);
  },
  control: {
    name: "accounts, served to everyone",
    async check(run) {
      const chosen = casesOfFiles("", await makeWithAccounts(run)).filter(({ name }) => name.startsWith("accounts"));
      const open = chosen.map((one) => ({
        ...one,
        prepare: async (folder: string) => ({ ...(await one.prepare(folder, run)), EARMARK_ALLOW_ANONYMOUS: "true" }),
      }));
      return tryAll(run, open);
    },
  },
};

/** A database as the program creates it. */
async function makeDatabase(run: Run, settings: Readonly<Record<string, string>>): Promise<string> {
  const path = join(run.folder, `made-${Object.keys(settings).length}.db`);
  await stop(await serve(run, { ...settings, DATABASE_URL: `file:${path}` }), "SIGTERM");
  return path;
}

function makeWithAccounts(run: Run): Promise<string> {
  const first = { EARMARK_ADMIN_USER: "ann", EARMARK_ADMIN_PASSWORD: "the password of ann" };
  return makeDatabase(run, { EARMARK_ACCOUNTS: "true", ...first });
}

async function tryAll(run: Run, cases: readonly Case[]): Promise<Findings> {
  const violations: string[] = [];
  const waiting = cases.entries();
  const tryNext = async () => {
    for (const [index, one] of waiting) {
      run.log(one.name);
      const folder = join(run.folder, `start-${index}`);
      mkdirSync(folder);
      violations.push(...(await tryOne(run, one, folder)).map((words) => `${one.name}: ${words}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, tryNext));
  const refused = cases.length - new Set(violations.map((words) => words.split(":")[0])).size;
  return { figures: `${cases.length} invalid starts, ${refused} refused with the right message`, violations };
}

async function tryOne(run: Run, { code, words, prepare }: Case, folder: string): Promise<string[]> {
  const settings = await prepare(folder, run);
  const before = lookAt(folder);
  const { child, listening } = launch(settings);
  run.onEnd(() => child.kill("SIGKILL"));
  let said = "";
  child.stderr?.on("data", (chunk) => (said += chunk));
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const hasStarted = await listening.then(
    () => true,
    () => false,
  );
  if (hasStarted) {
    child.kill("SIGKILL");
    return ["it starts"];
  }
  const ended = await closed;
  const violations = words.filter((word) => !word.test(said)).map((word) => `does not say ${word}, but: ${said}`);
  if (ended !== code) violations.push(`ends with ${ended} instead of ${code}`);
  if (/\n {4}at /.test(said)) violations.push("shows where in the program it happened");
  if (lookAt(folder) !== before) violations.push(`changes what is there:\n${before}\n---\n${lookAt(folder)}`);
  return violations;
}

/** All files except the lock beside a database, which any attempt may create and which is empty. */
function lookAt(folder: string): string {
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
