import assert from "node:assert/strict";
import { type IncomingMessage, request } from "node:http";
import { after } from "node:test";

/** Longer than any event takes, even on a busy machine. */
const PATIENCE_MS = 10_000;

export interface EventStream {
  readonly response: IncomingMessage;
  /** The states that came so far. */
  readonly states: readonly string[];
  /** Everything that came so far. */
  readonly text: () => string;
  /** Resolves when this state has come. */
  readonly until: (state: string) => Promise<void>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  readonly close: () => void;
}

const open = new Set<EventStream>();
// Before the hooks of the servers.
after(() => {
  for (const stream of open) stream.close();
});

/** Opens a stream and waits for its first event. */
export async function openEvents(
  port: number,
  headers: Readonly<Record<string, string>> = {},
  path = "/v1/events",
): Promise<EventStream> {
  const options = { host: "127.0.0.1", port, path, headers: { Accept: "text/event-stream", ...headers }, agent: false };
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    request(options, resolve).on("error", reject).end(),
  );
  return followEvents(response);
}

/** Reads the stream of a response and waits for its first event. */
export async function followEvents(response: IncomingMessage): Promise<EventStream> {
  const states: string[] = [];
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    states.splice(
      0,
      states.length,
      ...[...text.matchAll(/^data: .*"subscriptions":"([\w-]+)"/gm)].map(([, state = ""]) => state),
    );
    response.emit("received");
  });
  const ended = new Promise<void>((resolve) => {
    response.on("error", () => undefined).on("close", resolve);
  });
  const wait = async (isDone: () => boolean, what: string) => {
    const deadline = performance.now() + PATIENCE_MS;
    while (!isDone()) {
      const left = deadline - performance.now();
      assert.ok(left > 0 && !response.closed, `no ${what} in ${JSON.stringify(text)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        const go = () => {
          clearTimeout(timer);
          resolve();
        };
        response.once("received", go).once("close", go);
      });
    }
  };
  assert.equal(response.statusCode, 200);
  const stream: EventStream = {
    response,
    states,
    text: () => text,
    until: (state) => wait(() => states.includes(state), state),
    ended,
    close: () => response.destroy(),
  };
  open.add(stream);
  await wait(() => states.length > 0, "first event");
  return stream;
}
