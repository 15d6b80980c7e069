import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { ChildProcessArtworkScaler } from "../src/podcasts/artwork/artwork.ts";
import { startFeeds } from "../test/support/feeds.ts";
import { startFetching } from "../test/support/fetching.ts";
import { createImageBombs } from "../test/support/image-bombs.ts";
import { png } from "../test/support/png.ts";
import { startServer, temporaryFolder } from "../test/support/server.ts";

/** The process that decodes images stays small whatever it gets, and decodes the next image. */

/** Of the image process: 256 MiB, and what it allocates until it has noticed. */
const MAX_BYTES = 400 * 2 ** 20;
const SAMPLE_MS = 1;

const folder = temporaryFolder();
const pidFile = join(folder, "pid");
const program = join(folder, "child.mjs");
const realProgram = new URL("../src/podcasts/artwork/artwork-child.ts", import.meta.url).href;
writeFileSync(pidFile, "");
writeFileSync(
  program,
  `process.getBuiltinModule("fs").writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
   await import(${JSON.stringify(realProgram)});`,
);

/** The most resident memory that the image process has used so far, in bytes; 0 if it has ended. */
function readPeak(): number {
  try {
    const status = readFileSync(`/proc/${readFileSync(pidFile, "utf8")}/status`, "utf8");
    return 1_024 * Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

test("image bombs: wide, deep, interlaced, long texts, animations → below 400 MiB, and the next cover appears", async (t) => {
  const { store } = await startServer();
  const publisher = await startFeeds();
  const { subscribe, fetched, errors } = startFetching(store, {
    createScaler: async () =>
      new ChildProcessArtworkScaler({ log: { warn: () => undefined }, program: pathToFileURL(program) }),
  });
  let peak = 0;
  setInterval(() => {
    peak = Math.max(peak, readPeak());
  }, SAMPLE_MS).unref();
  const peaks: Record<string, number> = {};
  const addFeed = async (name: string, image: Buffer) => {
    publisher.pages.set(`/${name}.png`, (_request, response) => response.end(image));
    const url = publisher.feed(`/${name}`, { title: name, image: `${publisher.url}/${name}.png` });
    await subscribe([url]);
    return fetched(url);
  };
  for (const [index, [name, bomb]] of Object.entries(await createImageBombs()).entries()) {
    assert.ok(bomb.length <= 8 * 2 ** 20, name);
    peak = 0;
    assert.equal((await addFeed(`bomb-${index}`, bomb)).title, `bomb-${index}`, name);
    assert.ok((await addFeed(`cover-${index}`, png(8, 1))).artwork, `the cover after ${name}`);
    peaks[name] = peak;
  }
  t.diagnostic(
    JSON.stringify(
      Object.fromEntries(Object.entries(peaks).map(([name, bytes]) => [name, Math.round(bytes / 2 ** 20)])),
    ),
  );
  for (const [name, bytes] of Object.entries(peaks)) assert.ok(bytes > 0 && bytes < MAX_BYTES, `${name}: ${bytes}`);
  assert.deepEqual(errors, []);
});
