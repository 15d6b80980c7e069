import { once } from "node:events";
import { promisify } from "node:util";
import { constants, createGzip, gzip } from "node:zlib";

/** Shorter content is sent as it is. */
export const MIN_COMPRESSED = 1024;
/** Compresses almost as well as the default, in half the time. */
const LEVEL = 3;

export const COMPRESSED = { "content-encoding": "gzip", vary: "Accept, Accept-Encoding" } as const;

const GZIP = /(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)/i;

/** Whether a client with this Accept-Encoding header accepts compressed content. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  return GZIP.test(String(header ?? ""));
}

const compressWhole = promisify(gzip);

export function compress(text: string): Promise<Buffer> {
  return compressWhole(text, { level: LEVEL });
}

/** Compresses pieces of a text, each of which can be sent immediately. */
export class PieceCompressor {
  readonly #stream = createGzip({ level: LEVEL });
  #chunks: Buffer[] = [];

  constructor() {
    this.#stream.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
  }

  async next(piece: string): Promise<Buffer> {
    this.#stream.write(piece);
    await new Promise<void>((resolve) => this.#stream.flush(constants.Z_SYNC_FLUSH, resolve));
    return this.#take();
  }

  async last(piece: string): Promise<Buffer> {
    this.#stream.end(piece);
    await once(this.#stream, "end");
    return this.#take();
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [];
    return bytes;
  }
}
