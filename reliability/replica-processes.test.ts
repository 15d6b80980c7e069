import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createClient, openReplica, type Replica } from "../client/src/index.ts";
import { fileStorage } from "../client/src/node.ts";
import { cleanEnvironment, type RunningServer, start } from "../test/support/process.ts";
import { SEED } from "../test/support/properties.ts";
import { randomFrom } from "../test/support/replica-runs.ts";
import { temporaryFolder } from "../test/support/server.ts";

/** RUNS=30 takes a few minutes. */
const runs = Number(process.env["RUNS"] ?? 1);
const seed = SEED;
console.log(`processes are killed with SEED=${seed}`);
const KILLS = 6;
const PROGRAM = fileURLToPath(new URL("../test/support/replica-device.ts", import.meta.url));

/** What all devices have confirmed so far. */
interface Confirmed {
  readonly kept: Set<string>;
  readonly removed: Set<string>;
  edits: number;
}

/** A device in a process of its own. Its list survives when it is killed. */
class Device {
  readonly folder = join(temporaryFolder(), "list");
  readonly #url: string;
  readonly #confirmed: Confirmed;
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(url: string, confirmed: Confirmed) {
    this.#url = url;
    this.#confirmed = confirmed;
  }

  start(number: number): void {
    const child = spawn(process.execPath, [PROGRAM, this.folder, this.#url, String(number)], {
      stdio: ["ignore", "pipe", "inherit"],
      // Else it would compile the client first, while the other devices keep the cores busy.
      env: cleanEnvironment({ NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" }),
    });
    after(() => child.kill("SIGKILL"));
    this.#child = child;
    const lines = createInterface({ input: child.stdout }).on("line", (line) => {
      const [word, what = ""] = line.split(" ");
      if (word !== "synced") this.#confirmed.edits += 1;
      if (what !== "") (word === "kept" ? this.#confirmed.kept : this.#confirmed.removed).add(what);
    });
    this.#ended = Promise.all([once(child, "exit"), once(lines, "close")]);
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#ended;
    assert.equal(this.#child?.signalCode, "SIGKILL", "the device ended by itself");
  }

  /** Resolves when it has made progress so many times. */
  async progress(count: number): Promise<void> {
    const { stdout } = this.#child ?? {};
    for (let left = count; left > 0 && stdout && !stdout.readableEnded; left -= 1) await once(stdout, "data");
  }
}

const sorted = (items: Iterable<{ readonly id: string }>) => [...items].sort((one, two) => (one.id < two.id ? -1 : 1));

async function runProcesses(number: number): Promise<string> {
  const random = randomFrom(number);
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/earmark.db` };
  let server: RunningServer = await start(settings);
  const { url, port } = server;
  const client = createClient({ url });
  await client.subscribe(Array.from({ length: 20 }, (_, index) => `https://seed.example/${index}`));
  const confirmed: Confirmed = { kept: new Set(), removed: new Set(), edits: 0 };
  const devices = Array.from({ length: 2 + Math.floor(random() * 3) }, () => new Device(url, confirmed));
  for (const [index, device] of devices.entries()) device.start(number + index);
  for (let kills = 1; kills <= KILLS; kills += 1) {
    const device = devices[Math.floor(random() * devices.length)];
    await device?.progress(1 + Math.floor(random() * 20));
    // The server at least once.
    if (kills === KILLS / 2 || random() < 0.3) {
      server.child.kill("SIGKILL");
      await server.ended;
      server = await start({ ...settings, PORT: String(port) });
    } else {
      await device?.kill();
      device?.start(number + 1_000 * kills);
    }
  }
  await Promise.all(devices.map((device) => device.kill()));

  const replicas: Replica[] = [];
  for (const { folder } of devices) replicas.push(await openReplica({ client, storage: fileStorage(folder) }));
  for (const replica of [...replicas, ...replicas]) await replica.sync();
  const final = [];
  for await (const item of client.subscriptions()) final.push(item);
  for (const replica of replicas) assert.deepEqual(sorted(replica.list()), sorted(final));
  const feeds = new Set(final.map(({ feedUrl }) => feedUrl));
  const ids = new Set(final.map(({ id }) => id));
  assert.deepEqual(
    [...confirmed.kept].filter((feed) => !feeds.has(feed)),
    [],
    "lost",
  );
  assert.deepEqual(
    [...confirmed.removed].filter((id) => ids.has(id)),
    [],
    "came back",
  );
  assert.ok(confirmed.kept.size > 0);
  server.child.kill("SIGKILL");
  await server.ended;
  return `${devices.length} devices, ${KILLS} kills, ${confirmed.edits} edits, ${final.length} subscriptions`;
}

test(`replicas: ${runs} runs in which processes of devices and of the server are killed → equal, no edit lost`, async () => {
  for (let run = 0; run < runs; run += 1) {
    const number = seed + run;
    console.log(
      await runProcesses(number).catch((cause) => {
        throw new Error(`failed with SEED=${number} RUNS=1: ${cause.message}`, { cause });
      }),
    );
  }
});
