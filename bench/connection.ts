import { connect, type Socket } from "node:net";

const END_OF_HEADERS = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/**
 * One keep-alive connection with one request in flight. A plain socket instead of an HTTP client, because the load generator
 * shares the cores with the server. Reconnects if the server has closed it between two requests.
 */
export class Connection {
  readonly #port: number;
  #socket: Socket;
  readonly #onFailure: (error: Error) => void;
  #chunks: Buffer[] = [];
  #received = 0;
  /** Length of the response; undefined until its headers have arrived. */
  #expected: number | "chunked" | undefined;
  #onResponse: ((response: Buffer) => void) | undefined;
  #closed = false;

  static open(port: number, onFailure: (error: Error) => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = openSocket(port);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(port, socket, onFailure));
      });
    });
  }

  private constructor(port: number, socket: Socket, onFailure: (error: Error) => void) {
    this.#port = port;
    this.#onFailure = onFailure;
    this.#socket = this.#listen(socket);
  }

  #listen(socket: Socket): Socket {
    socket.on("data", (chunk) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    return socket.on("close", () => this.#fail(new Error("the server closed a connection")));
  }

  /** `onResponse` gets the whole response, headers and body. */
  exchange(request: Buffer | string, onResponse: (response: Buffer) => void): void {
    this.#onResponse = onResponse;
    if (this.#socket.destroyed) this.#socket = this.#listen(openSocket(this.#port));
    this.#socket.write(request, "latin1");
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#expected === undefined) this.#readLength();
    if (this.#isComplete()) this.#deliver();
  }

  #deliver(): void {
    const [first] = this.#chunks;
    const response = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    const onResponse = this.#onResponse;
    this.#chunks = [];
    this.#received = 0;
    this.#expected = undefined;
    this.#onResponse = undefined;
    if (onResponse === undefined) this.#fail(new Error("a response without a request"));
    else onResponse(response);
  }

  #isComplete(): boolean {
    if (this.#expected === undefined) return false;
    if (this.#expected !== "chunked") return this.#received >= this.#expected;
    // The end may have arrived in several parts. A JSON document contains no line breaks.
    let tail = this.#chunks.at(-1) ?? Buffer.alloc(0);
    for (let at = -2; tail.length < LAST_CHUNK.length && this.#chunks.at(at) !== undefined; at -= 1)
      tail = Buffer.concat([this.#chunks.at(at) ?? tail, tail]);
    return tail.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
  }

  #readLength(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [head] = this.#chunks;
    const end = head?.indexOf(END_OF_HEADERS) ?? -1;
    if (head === undefined || end === -1) return;
    const headers = head.toString("latin1", 0, end);
    if (/\r\ntransfer-encoding: chunked/i.test(headers)) {
      this.#expected = "chunked";
      return;
    }
    const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
    if (length === undefined && !/^HTTP\/1\.1 (204|304) /.test(headers))
      this.#fail(new Error(`a response without Content-Length:\n${headers}`));
    this.#expected = end + END_OF_HEADERS.length + Number(length ?? 0);
  }

  #fail(error: Error): void {
    if (!this.#closed) this.#onFailure(error);
  }
}

function openSocket(port: number): Socket {
  return connect({ port, host: "127.0.0.1", noDelay: true });
}
