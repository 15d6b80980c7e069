const END_OF_HEADERS = "\r\n\r\n";
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/** Finds the end of a response without keeping it, because a load generator has to be fast. */
export class ResponseReader {
  /** Undefined until the headers have arrived. */
  status: string | undefined;
  closes = false;
  /** Until the headers are complete, all bytes; then the last ones. */
  #tail = Buffer.alloc(0);
  /** Bytes of the body that are missing; undefined in a chunked response. */
  #missing: number | undefined;

  /** Returns whether the response is complete. */
  read(chunk: Buffer): boolean {
    this.#tail = Buffer.concat([this.#tail, chunk]);
    if (this.status === undefined) this.#readHeaders();
    else if (this.#missing !== undefined) this.#missing -= chunk.length;
    if (this.status === undefined) return false;
    this.#tail = this.#tail.subarray(-LAST_CHUNK.length);
    return this.#missing === undefined ? this.#tail.equals(LAST_CHUNK) : this.#missing <= 0;
  }

  #readHeaders(): void {
    const end = this.#tail.indexOf(END_OF_HEADERS);
    if (end === -1) return;
    const headers = this.#tail.toString("latin1", 0, end);
    this.status = headers.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length);
    this.closes = /\r\nconnection: close/i.test(headers);
    const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
    if (length !== undefined) this.#missing = Number(length) - (this.#tail.length - end - END_OF_HEADERS.length);
  }
}
