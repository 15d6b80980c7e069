import { crc32, deflateSync } from "node:zlib";

/** A part of a PNG file. */
export function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}

/** A gray PNG that declares a size but has the data of one row. */
export function png(width: number, height: number, ...others: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    ...others,
    chunk("IDAT", deflateSync(Buffer.alloc(Math.min(width, 1_000) + 1))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}
