import { connect, type Socket } from "node:net";

const END_OF_HEADERS = Buffer.from("\r\n\r\n");

/**
 * One keep-alive connection with one request in flight. A plain socket instead of an HTTP client, because the load generator
 * shares the cores with the server.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #onFailure: (error: Error) => void;
  #chunks: Buffer[] = [];
  #received = 0;
  #expected = Number.POSITIVE_INFINITY;
  #onAnswer: ((answer: Buffer) => void) | undefined;
  #closed = false;

  static open(port: number, onFailure: (error: Error) => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket, onFailure));
      });
    });
  }

  private constructor(socket: Socket, onFailure: (error: Error) => void) {
    this.#socket = socket;
    this.#onFailure = onFailure;
    socket.on("data", (chunk) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the server closed a connection")));
  }

  /** `onAnswer` gets the whole response, headers and body. */
  exchange(request: Buffer | string, onAnswer: (answer: Buffer) => void): void {
    this.#onAnswer = onAnswer;
    this.#socket.write(request, "latin1");
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    if (this.#expected === Number.POSITIVE_INFINITY) this.#readLength();
    if (this.#received < this.#expected) return;
    const [first] = this.#chunks;
    const answer = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    const onAnswer = this.#onAnswer;
    this.#chunks = [];
    this.#received = 0;
    this.#expected = Number.POSITIVE_INFINITY;
    this.#onAnswer = undefined;
    if (onAnswer === undefined) this.#fail(new Error("a response without a request"));
    else onAnswer(answer);
  }

  #readLength(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    const [head] = this.#chunks;
    const end = head?.indexOf(END_OF_HEADERS) ?? -1;
    if (head === undefined || end === -1) return;
    const headers = head.toString("latin1", 0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
    if (length === undefined && !headers.startsWith("HTTP/1.1 204 "))
      this.#fail(new Error(`a response without Content-Length:\n${headers}`));
    this.#expected = end + END_OF_HEADERS.length + Number(length ?? 0);
  }

  #fail(error: Error): void {
    if (!this.#closed) this.#onFailure(error);
  }
}
