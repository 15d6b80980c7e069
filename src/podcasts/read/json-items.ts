import { isUtf8 } from "node:buffer";

/** The document is not JSON, is nested too deeply, or has an item that is too long. */
export class InvalidJson extends Error {
  override readonly name = "InvalidJson";
}

/** Nesting of an item. */
const MAX_DEPTH = 64;
const MAX_ITEM_BYTES = 1024 * 1024;
/** The document without the items of its lists. */
const MAX_REST_CHARACTERS = 64 * 1024;
const MAX_NAME = 100;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/**
 * Reads a JSON document as it arrives: an array, or an object with arrays as members. Each item of such an array is parsed
 * when it is complete and then forgotten, so that memory does not grow with the document. Throws `InvalidJson`.
 */
export class JsonItems {
  readonly #onItem: (item: unknown, list: string) => void;
  /** The document so far, with its lists empty. */
  #rest = "";
  /** Brackets that are open outside of items. */
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The array whose items are being read: its name, or "" if the document is the array. */
  #list: string | undefined;
  #itemCount = 0;
  #itemDepth = 0;
  /** The pieces of the current item from earlier chunks. */
  #pieces: Buffer[] = [];
  #itemBytes = 0;
  /** Where the current item starts in this chunk; -1 between items. */
  #start = -1;
  #position = 0;

  constructor(onItem: (item: unknown, list: string) => void) {
    this.#onItem = onItem;
  }

  write(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#pieces.length > 0) this.#start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] as number;
      if (this.#position < BYTE_ORDER_MARK.length && byte === BYTE_ORDER_MARK[this.#position]) this.#position += 1;
      else {
        this.#position = BYTE_ORDER_MARK.length;
        if (this.#list === undefined) this.#readRest(byte);
        else this.#readItem(bytes, at, byte);
      }
    }
    if (this.#list !== undefined && this.#start >= 0) this.#keep(bytes.subarray(this.#start));
    this.#start = -1;
  }

  /** The document, with its lists empty. */
  end(): unknown {
    if (this.#list !== undefined) throw new InvalidJson();
    return parse(Buffer.from(this.#rest, "latin1"));
  }

  #readRest(byte: number): void {
    const isBlank = !this.#isInString && isWhitespace(byte);
    if (isBlank && this.#rest.endsWith(" ")) return;
    if (this.#rest.length >= MAX_REST_CHARACTERS) throw new InvalidJson();
    this.#rest += isBlank ? " " : String.fromCharCode(byte);
    if (this.#skipString(byte)) return;
    if (byte === OPEN_ARRAY && this.#isListAhead()) this.#openList();
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.#depth = deeper(this.#depth);
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#depth -= 1;
  }

  /** Whether the array that has just begun is the document, or a member of the object that is the document. */
  #isListAhead(): boolean {
    const first = this.#rest.trimStart()[0];
    return this.#depth === 0 ? first === "[" : this.#depth === 1 && first === "{";
  }

  #openList(): void {
    const [, name = ""] = /"([^"\\]*)" ?: ?\[$/.exec(this.#rest.slice(-MAX_NAME)) ?? [];
    this.#list = name;
    this.#itemCount = 0;
    this.#itemDepth = 0;
  }

  #readItem(bytes: Buffer, at: number, byte: number): void {
    if (this.#start < 0 && (isWhitespace(byte) || byte === COMMA || byte === CLOSE_ARRAY)) {
      // Between items.
      if (byte === COMMA || (byte === CLOSE_ARRAY && this.#itemCount > 0)) throw new InvalidJson();
      if (byte === CLOSE_ARRAY) this.#closeList();
      return;
    }
    if (this.#start < 0) this.#start = at;
    if (this.#skipString(byte)) return;
    if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.#itemDepth = deeper(this.#itemDepth);
    else if (this.#itemDepth > 0) {
      if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) this.#itemDepth -= 1;
    } else if (byte === COMMA || byte === CLOSE_ARRAY) {
      this.#finishItem(bytes.subarray(this.#start, at));
      if (byte === CLOSE_ARRAY) this.#closeList();
    } else if (byte === CLOSE_OBJECT || byte === COLON) throw new InvalidJson();
  }

  /** Whether the byte is part of a string, or begins one. */
  #skipString(byte: number): boolean {
    if (!this.#isInString) {
      this.#isInString = byte === QUOTE;
      return this.#isInString;
    }
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInString = false;
    return true;
  }

  #keep(piece: Buffer): void {
    this.#itemBytes += piece.length;
    if (this.#itemBytes > MAX_ITEM_BYTES) throw new InvalidJson();
    // A copy: the chunk's memory is reused.
    this.#pieces.push(Buffer.from(piece));
  }

  #finishItem(last: Buffer): void {
    const bytes = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
    this.#pieces = [];
    this.#itemBytes = 0;
    this.#start = -1;
    this.#itemCount += 1;
    this.#onItem(parse(bytes), this.#list ?? "");
  }

  #closeList(): void {
    this.#list = undefined;
    this.#rest += "]";
  }
}

function deeper(depth: number): number {
  if (depth >= MAX_DEPTH) throw new InvalidJson();
  return depth + 1;
}

function isWhitespace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

function parse(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new InvalidJson();
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new InvalidJson();
  }
}
