import { crc32, deflateSync } from "node:zlib";

/** A part of a PNG file. */
export function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

const SIGNATURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
/** Types of colors. */
const [GRAY, PALETTE, RGB_WITH_ALPHA] = [0, 3, 6];

/** A gray PNG that declares a size but has the data of one row. */
export function png(width: number, height: number, ...others: readonly Buffer[]): Buffer {
  const pixels = Buffer.alloc(Math.min(width, 1_000) + 1);
  return Buffer.concat([SIGNATURE, header(width, height), ...others, data(pixels), chunk("IEND", Buffer.alloc(0))]);
}

export interface BlankPng {
  readonly width: number;
  readonly height: number;
  /** Bits per sample. */
  readonly depth?: 8 | 16;
  readonly isInterlaced?: boolean;
  /** One sample per pixel, instead of red, green, blue and alpha. */
  readonly hasPalette?: boolean;
}

/** The seven passes of an interlaced PNG: first column and row, and the distance to the next ones. */
const INTERLACED = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;

/** A complete PNG, of which all samples are 0. */
export function blankPng(image: BlankPng, ...others: readonly Buffer[]): Buffer {
  const { width, height, depth = 8, isInterlaced = false, hasPalette = false } = image;
  const bytesPerPixel = ((hasPalette ? 1 : 4) * depth) / 8;
  const passes = (isInterlaced ? INTERLACED : [[0, 0, 1, 1] as const]).map(([x, y, stepX, stepY]) => {
    const [columns, rows] = [Math.ceil((width - x) / stepX), Math.ceil((height - y) / stepY)];
    return columns * rows === 0 ? 0 : rows * (1 + columns * bytesPerPixel);
  });
  return Buffer.concat([
    SIGNATURE,
    header(width, height, depth, hasPalette ? PALETTE : RGB_WITH_ALPHA, isInterlaced),
    ...(hasPalette ? [chunk("PLTE", Buffer.alloc(3))] : []),
    ...others,
    data(Buffer.alloc(passes.reduce((sum, bytes) => sum + bytes))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function header(width: number, height: number, depth = 8, color = GRAY, isInterlaced = false): Buffer {
  const bytes = Buffer.alloc(13);
  bytes.writeUInt32BE(width);
  bytes.writeUInt32BE(height, 4);
  bytes.set([depth, color, 0, 0, isInterlaced ? 1 : 0], 8);
  return chunk("IHDR", bytes);
}

const data = (pixels: Buffer) => chunk("IDAT", deflateSync(pixels));
