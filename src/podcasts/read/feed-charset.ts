import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";

/** Number of bytes needed to determine the encoding of a document. */
const SNIFFED_BYTES = 256;

/**
 * Decodes a document chunk by chunk. Encoding: byte order mark, else charset of the Content-Type, else XML declaration,
 * else UTF-8. Text that claims to be UTF-8, ASCII or Latin-1 is read as UTF-8 as long as it is valid, then as
 * Windows-1252, since these labels are often wrong.
 */
export class FeedDecoder {
  readonly #contentType: string;
  #decoder: { decode(bytes: Uint8Array, options: { stream: true }): string } | undefined;
  #start = Buffer.alloc(0);

  constructor(contentType: string) {
    this.#contentType = contentType;
  }

  decode(bytes: Uint8Array): string {
    if (this.#decoder !== undefined) return this.#decoder.decode(bytes, { stream: true });
    this.#start = Buffer.concat([this.#start, bytes]);
    return this.#start.length < SNIFFED_BYTES ? "" : this.#decodeStart();
  }

  /** The text of a short document, which was held back until its encoding was certain. */
  end(): string {
    return this.#decoder === undefined ? this.#decodeStart() : "";
  }

  #decodeStart(): string {
    const label = sniffUnicode(this.#start) ?? charsetOf(this.#contentType) ?? declaredIn(this.#start);
    this.#decoder = createDecoder(label);
    return this.#decoder.decode(this.#start, { stream: true });
  }
}

function createDecoder(label: string | undefined) {
  try {
    const decoder = new TextDecoder(label);
    // TextDecoder also maps the labels of ASCII and Latin-1 to windows-1252.
    const isUnreliable = ["utf-8", "windows-1252"].includes(decoder.encoding);
    return isUnreliable ? new Utf8OrWindows1252() : decoder;
  } catch {
    return new Utf8OrWindows1252();
  }
}

/** UTF-8 until the first invalid sequence, then Windows-1252. */
class Utf8OrWindows1252 {
  #pending = Buffer.alloc(0);
  #isAtStart = true;
  #latin: TextDecoder | undefined;

  decode(chunk: Uint8Array): string {
    if (this.#latin !== undefined) return this.#latin.decode(chunk, { stream: true });
    const bytes =
      this.#pending.length === 0
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
        : Buffer.concat([this.#pending, chunk]);
    const end = endOfCharacters(bytes);
    if (isUtf8(bytes.subarray(0, end))) {
      this.#pending = Buffer.from(bytes.subarray(end));
      const text = bytes.toString("utf8", 0, end);
      if (!this.#isAtStart || end === 0) return text;
      this.#isAtStart = false;
      return text.replace(/^\ufeff/, "");
    }
    this.#latin = new TextDecoder("windows-1252");
    return this.#latin.decode(bytes, { stream: true });
  }
}

/** The end of the last complete UTF-8 character; the next chunk may complete the one after it. */
function endOfCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Also detects UTF-16 without a byte order mark, if the document begins with `<` or `{`. */
function sniffUnicode(start: Uint8Array): string | undefined {
  const [first = 0, second = 0, third] = start;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  const isMarkup = (byte: number) => byte === 0x3c || byte === 0x7b;
  if ((first === 0xff && second === 0xfe) || (isMarkup(first) && second === 0 && start.length > 1)) return "utf-16le";
  if ((first === 0xfe && second === 0xff) || (first === 0 && isMarkup(second))) return "utf-16be";
  return undefined;
}

function charsetOf(contentType: string): string | undefined {
  return ignoreUtf16(/;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1]);
}

function declaredIn(start: Buffer): string | undefined {
  const text = start.toString("latin1", 0, SNIFFED_BYTES);
  const at = text.toLowerCase().indexOf("<?xml");
  if (at === -1) return undefined;
  const [declaration = ""] = text.slice(at).split(">", 1);
  return ignoreUtf16(/\sencoding\s{0,9}=\s{0,9}["']([\w.:-]+)/i.exec(declaration)?.[1]);
}

/** Without NUL bytes at the start, the text is not UTF-16, whatever its label says. */
function ignoreUtf16(label: string | undefined): string | undefined {
  return label === undefined || /^utf-?16/i.test(label) ? undefined : label;
}
