import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import sharp from "sharp";
import { textBomb } from "../../../test/support/image-bombs.ts";
import { blankPng, chunk, png } from "../../../test/support/png.ts";
import { temporaryFolder } from "../../../test/support/server.ts";
import { type ArtworkOptions, ChildProcessArtworkScaler } from "./artwork.ts";

const warnings: string[] = [];
const log = { warn: (message: string) => warnings.push(message) };

function create(options: Omit<ArtworkOptions, "log"> = {}): ChildProcessArtworkScaler {
  const scaler = new ChildProcessArtworkScaler({ log, ...options });
  after(() => scaler.close());
  return scaler;
}
const scaler = create();

const plain = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp({ create: { width, height, channels, background: { r: 200, g: 30, b: 30, alpha: 1 } } });
const sizeOf = async (bytes: Buffer) => {
  const { width, height, format } = await sharp(bytes).metadata();
  return `${format} ${width}×${height}`;
};

test("artwork: JPEG, PNG, WebP → WebP of 160 and 600 pixels, never enlarged", async () => {
  for (const [image, small, large] of [
    [plain(1_500, 1_500).jpeg(), "webp 160×160", "webp 600×600"],
    [plain(1_400, 700, 4).png(), "webp 160×80", "webp 600×300"],
    [plain(300, 300).webp(), "webp 160×160", "webp 300×300"],
    [plain(1, 1).png(), "webp 1×1", "webp 1×1"],
  ] as const) {
    const artwork = await scaler.scale(await image.toBuffer());
    assert.ok(artwork);
    assert.equal(await sizeOf(artwork.small), small);
    assert.equal(await sizeOf(artwork.large), large);
    assert.equal(artwork.hash, createHash("sha256").update(artwork.large).digest("hex").slice(0, 32));
  }
});

test("artwork: EXIF rotation → applied, all metadata dropped", async () => {
  const image = await plain(400, 200)
    .composite([{ input: await plain(1, 1).png().toBuffer(), left: 0, top: 0 }])
    .withExif({ IFD0: { Copyright: "private note" } })
    .withMetadata({ orientation: 6 })
    .jpeg()
    .toBuffer();
  const artwork = await scaler.scale(image);
  assert.ok(artwork);
  assert.equal(await sizeOf(artwork.large), "webp 200×400");
  const { exif, icc, xmp, orientation } = await sharp(artwork.large).metadata();
  assert.deepEqual([exif, icc, xmp, orientation], [undefined, undefined, undefined, undefined]);
});

test("artwork: CMYK → sRGB; APNG → its first frame", async () => {
  const cmyk = await plain(300, 300).toColourspace("cmyk").jpeg().toBuffer();
  assert.equal((await sharp(cmyk).metadata()).space, "cmyk");
  const artwork = await scaler.scale(cmyk);
  assert.ok(artwork);
  assert.equal((await sharp(artwork.large).metadata()).space, "srgb");
  const animation = Buffer.alloc(8);
  animation.writeUInt32BE(1_000);
  const still = await scaler.scale(png(8, 1, chunk("acTL", animation)));
  assert.ok(still);
  assert.equal(await sizeOf(still.large), "webp 8×1");
});

test("artwork: other formats, broken or oversized images → undefined", async () => {
  const jpeg = await plain(1_000, 1_000).jpeg().toBuffer();
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
  for (const [name, bytes] of [
    ["empty", Buffer.alloc(0)],
    ["SVG", Buffer.from(svg)],
    ["SVG after magic bytes", Buffer.concat([jpeg.subarray(0, 3), Buffer.from(svg)])],
    ["HTML", Buffer.from("<html><body>404</body></html>")],
    ["GIF", await plain(9, 9).gif().toBuffer()],
    ["TIFF", await plain(9, 9).tiff().toBuffer()],
    ["AVIF", await plain(9, 9).avif().toBuffer()],
    ["truncated JPEG", jpeg.subarray(0, jpeg.length / 2)],
    ["truncated PNG", (await plain(900, 900).png().toBuffer()).subarray(0, 60)],
    ["random", Buffer.concat([jpeg.subarray(0, 20), Buffer.alloc(5_000, 0xa5)])],
    ["900 million pixels", png(30_000, 30_000)],
    ["40 million pixels", png(10, 4_000_000)],
    ["0 pixels", png(0, 0)],
  ] as const)
    assert.equal(await scaler.scale(bytes), undefined, name);
});

test("artwork: an image that needs more memory than allowed → undefined, and the next image works", async () => {
  // Below all other limits: 25 million pixels, 8 bytes each, that must be decoded as a whole because they are interlaced.
  const interlaced = blankPng({ width: 5_000, height: 5_000, depth: 16, isInterlaced: true });
  for (const [name, bomb] of Object.entries({ interlaced, text: textBomb() })) {
    assert.ok(bomb.length < 8 * 1024 * 1024, name);
    assert.equal(await scaler.scale(bomb), undefined, name);
    assert.ok(await scaler.scale(png(8, 1)), name);
  }
});

test("artwork: a side of more than 10,000 pixels → undefined", async () => {
  for (const [width, height] of [
    [10_000, 4],
    [4, 10_000],
  ] as const) {
    const artwork = await scaler.scale(blankPng({ width, height }));
    assert.equal(artwork && (await sizeOf(artwork.large)), width > height ? "webp 600×1" : "webp 1×600");
  }
  assert.equal(await scaler.scale(blankPng({ width: 10_001, height: 4 })), undefined);
  assert.equal(await scaler.scale(blankPng({ width: 4, height: 10_001 })), undefined);
});

test("artwork: the machine runs out of memory → Linux kills this process first", async (t) => {
  if (process.platform !== "linux") return t.diagnostic("Only Linux can be asked for this.");
  const file = join(temporaryFolder(), "score");
  const module = join(temporaryFolder(), "child.mjs");
  const child = new URL("./artwork-child.ts", import.meta.url).href;
  const copy = `writeFileSync(${JSON.stringify(file)}, readFileSync("/proc/self/oom_score_adj"));`;
  writeFileSync(
    module,
    `import ${JSON.stringify(child)}; import { readFileSync, writeFileSync } from "node:fs"; ${copy}`,
  );
  await create({ program: pathToFileURL(module) }).scale(png(8, 1));
  assert.equal(Number(readFileSync(file, "utf8")), 1_000);
});

test("artwork: several at a time → one after the other, in order", async () => {
  const sizes = [10, 20, 30, 40, 50];
  const images = await Promise.all(sizes.map((size) => plain(size, size).png().toBuffer()));
  const scaled = await Promise.all(images.map((image) => scaler.scale(image)));
  assert.deepEqual(
    await Promise.all(scaled.map((artwork) => artwork && sizeOf(artwork.large))),
    sizes.map((size) => `webp ${size}×${size}`),
  );
});

/** A program for the child process that ends or hangs as a native library could. */
function program(code: string): URL {
  const file = join(temporaryFolder(), "child.mjs");
  writeFileSync(file, `process.send({ kind: "ready" }); process.on("message", () => { ${code} });`);
  return pathToFileURL(file);
}

test("artwork: the process crashes, hangs or is killed → undefined, and the next image works", async () => {
  for (const code of ["process.abort()", "process.exit(1)", "for (;;);", "process.kill(process.pid, 'SIGKILL')"]) {
    const broken = create({ program: program(code), timeoutMs: 500 });
    for (let attempt = 0; attempt < 2; attempt += 1) assert.equal(await broken.scale(png(8, 1)), undefined, code);
  }
  assert.ok(await scaler.scale(png(8, 1)));
});

test("artwork: a process that does not start → undefined", async () => {
  const missing = create({ program: pathToFileURL(join(temporaryFolder(), "missing.mjs")), timeoutMs: 5_000 });
  assert.equal(await missing.scale(png(8, 1)), undefined);
});

test("artwork: sharp is not installed → undefined, one warning", async () => {
  // Outside the project, the program finds no packages.
  const folder = join(temporaryFolder(), "podcasts");
  mkdirSync(folder);
  const copy = join(folder, "artwork-child.ts");
  copyFileSync(new URL("./artwork-child.ts", import.meta.url), copy);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  const without = create({ program: pathToFileURL(copy) });
  for (let attempt = 0; attempt < 3; attempt += 1) assert.equal(await without.scale(png(8, 1)), undefined);
  assert.deepEqual(warnings, ["sharp is not installed: podcasts have no artwork"]);
});

test("artwork: environment of the process → no settings", async () => {
  process.env["DATABASE_URL"] = "postgres://secret";
  const file = join(temporaryFolder(), "environment");
  const write = `process.getBuiltinModule("fs").writeFileSync(${JSON.stringify(file)}, JSON.stringify(process.env))`;
  const reporting = create({ program: program(`${write}; process.exit();`) });
  await reporting.scale(png(8, 1));
  delete process.env["DATABASE_URL"];
  assert.doesNotMatch(readFileSync(file, "utf8"), /secret|DATABASE_URL/);
});

test("artwork: the process exits between two images → a new one starts", async () => {
  const file = join(temporaryFolder(), "pids");
  writeFileSync(file, "");
  const record = `process.getBuiltinModule("fs").appendFileSync(${JSON.stringify(file)}, process.pid + "\\n")`;
  const exiting = create({
    program: program(`${record}; process.send({ kind: "unsupported" }, () => process.exit(1));`),
  });
  for (let count = 1; count <= 2; count += 1) {
    await exiting.scale(png(8, 1));
    const pids = readFileSync(file, "utf8").trim().split("\n");
    assert.equal(pids.length, count);
    await waitForExit(Number(pids.at(-1)));
  }
});

test("artwork: idle process → exits, and a new one starts for the next image", async () => {
  const file = join(temporaryFolder(), "pids");
  writeFileSync(file, "");
  const code = `process.getBuiltinModule("fs").appendFileSync(${JSON.stringify(file)}, process.pid + "\\n"); process.send({ kind: "unsupported" });`;
  const idle = create({ program: program(code), idleMs: 20 });
  await idle.scale(png(8, 1));
  const first = Number(readFileSync(file, "utf8").trim());
  await waitForExit(first);
  await idle.scale(png(8, 1));
  assert.equal(readFileSync(file, "utf8").trim().split("\n").length, 2);
});

test("artwork: closed → undefined, the process exits", async () => {
  const closing = create();
  const scaled = closing.scale(await plain(1_500, 1_500).png().toBuffer());
  await closing.close();
  assert.equal(await scaled, undefined);
  assert.equal(await closing.scale(png(8, 1)), undefined);
});

async function waitForExit(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await setTimeout(10);
  }
}
