import { deflateSync } from "node:zlib";
import sharp from "sharp";
import { blankPng, chunk, png } from "./png.ts";

const MILLION = 1e6;

/** Compressed comments, each as large as the PNG library accepts, and as many. */
export function textBomb(): Buffer {
  const text = Buffer.concat([Buffer.from("Comment\0\0"), deflateSync(Buffer.alloc(7.9 * MILLION, "a"), { level: 9 })]);
  return png(8, 1, ...Array<Buffer>(900).fill(chunk("zTXt", text)));
}

/** Files of at most 8 MiB, each of which would take much memory. Some can be scaled within the limits. */
export async function createImageBombs(): Promise<Readonly<Record<string, Buffer>>> {
  return {
    wide: blankPng({ width: 25 * MILLION, height: 1 }),
    "wide and deep": blankPng({ width: 25 * MILLION, height: 1, depth: 16 }),
    "wide with a palette": blankPng({ width: 25 * MILLION, height: 1, hasPalette: true }),
    tall: blankPng({ width: 1, height: 25 * MILLION }),
    "as wide as allowed": blankPng({ width: 10_000, height: 2_500, depth: 16 }),
    "as tall as allowed": blankPng({ width: 2_500, height: 10_000, depth: 16 }),
    deep: blankPng({ width: 5_000, height: 5_000, depth: 16 }),
    interlaced: blankPng({ width: 5_000, height: 5_000, isInterlaced: true }),
    "interlaced and deep": blankPng({ width: 5_000, height: 5_000, depth: 16, isInterlaced: true }),
    "interlaced, with a palette": blankPng({ width: 5_000, height: 5_000, isInterlaced: true, hasPalette: true }),
    text: textBomb(),
    "animated PNG": animatedPng(2_000, 200),
    "animated WebP": await animatedWebp(1_200, 40),
    "progressive JPEG": await sharp({ create: { width: 5_000, height: 5_000, channels: 3, background: "red" } })
      .jpeg({ progressive: true })
      .toBuffer(),
  };
}

function animatedPng(size: number, frames: number): Buffer {
  const count = Buffer.alloc(8);
  count.writeUInt32BE(frames);
  const pixels = deflateSync(Buffer.alloc(size * (1 + 4 * size)));
  const frame = (index: number) => {
    const control = Buffer.alloc(26);
    control.writeUInt32BE(2 * index + 1);
    control.writeUInt32BE(size, 4);
    control.writeUInt32BE(size, 8);
    const sequence = Buffer.alloc(4);
    sequence.writeUInt32BE(2 * index + 2);
    return [chunk("fcTL", control), chunk("fdAT", Buffer.concat([sequence, pixels]))];
  };
  const others = Array.from({ length: frames }, (_, index) => frame(index)).flat();
  return blankPng({ width: size, height: size }, chunk("acTL", count), ...others);
}

/** Each frame has another color, because equal ones are stored once. */
async function animatedWebp(size: number, frames: number): Promise<Buffer> {
  const frame = (index: number) =>
    sharp({ create: { width: size, height: size, channels: 3, background: { r: 6 * index, g: 90, b: 200 } } })
      .png()
      .toBuffer();
  const images = await Promise.all(Array.from({ length: frames }, (_, index) => frame(index)));
  return sharp(images, { join: { animated: true } })
    .webp({ effort: 0 })
    .toBuffer();
}
