import { writeFileSync } from "node:fs";
import type * as Sharp from "sharp";

/**
 * The process that decodes untrusted images, so that a crash in a native library affects nothing else. It receives the
 * bytes of one image at a time, and no settings or secrets.
 */

export type ArtworkReply =
  | { readonly kind: "ready" }
  | { readonly kind: "no-sharp" }
  | { readonly kind: "scaled"; readonly small: Uint8Array; readonly large: Uint8Array }
  | { readonly kind: "unsupported" };

const SMALL = 160;
const LARGE = 600;
const MAX_PIXELS = 25e6;
/** Memory grows with the length of a row: a PNG of one row of 25 million pixels takes gigabytes. */
const MAX_SIDE = 10_000;
const TIMEOUT_SECONDS = 10;
const MAX_RESIDENT_BYTES = 256 * 1024 * 1024;
const MEMORY_CHECK_MS = 10;

/** Recognized by their first bytes, whatever the Content-Type says. */
const FORMATS = [
  { magic: /^\xff\xd8\xff/, loader: "VipsForeignLoadJpegBuffer" },
  { magic: /^\x89PNG\r\n\x1a\n/, loader: "VipsForeignLoadPngBuffer" },
  { magic: /^RIFF.{4}WEBP/s, loader: "VipsForeignLoadWebpBuffer" },
];

preferForOomKill();
const sharp = await loadSharp();
reply(sharp === undefined ? { kind: "no-sharp" } : { kind: "ready" });
process.on("message", (bytes: Uint8Array) => void scale(bytes).then(reply));
process.on("disconnect", () => process.exit());
// libvips works in other threads, so this timer is not delayed. SIGKILL, because `process.exit` would wait for libvips, which
// continues to allocate.
setInterval(() => {
  if (process.memoryUsage.rss() > MAX_RESIDENT_BYTES) process.kill(process.pid, "SIGKILL");
}, MEMORY_CHECK_MS);

/** If the machine or container runs out of memory, Linux kills this process first. */
function preferForOomKill(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Another operating system, or not allowed in this container.
  }
}

async function loadSharp(): Promise<typeof Sharp.default | undefined> {
  try {
    const { default: loaded } = await import("sharp");
    loaded.block({ operation: ["VipsForeignLoad"] });
    loaded.unblock({ operation: FORMATS.map(({ loader }) => loader) });
    loaded.cache(false);
    loaded.concurrency(1);
    return loaded;
  } catch {
    return undefined;
  }
}

async function scale(bytes: Uint8Array): Promise<ArtworkReply> {
  const start = Buffer.from(bytes.subarray(0, 16)).toString("latin1");
  if (sharp === undefined || !FORMATS.some(({ magic }) => magic.test(start))) return { kind: "unsupported" };
  try {
    const image = sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: "error", pages: 1 });
    const { width, height } = await image.metadata();
    if (Math.max(width, height) > MAX_SIDE) return { kind: "unsupported" };
    const large = await resize(image.autoOrient().timeout({ seconds: TIMEOUT_SECONDS }), LARGE);
    // From the large one, so that the original is decoded only once.
    return { kind: "scaled", large, small: await resize(sharp(large), SMALL) };
  } catch {
    return { kind: "unsupported" };
  }
}

/** Profiles and other metadata are dropped; colors are converted to sRGB. */
function resize(image: Sharp.Sharp, size: number): Promise<Buffer> {
  return image.resize(size, size, { fit: "inside", withoutEnlargement: true }).webp().toBuffer();
}

function reply(message: ArtworkReply): void {
  process.send?.(message);
}
