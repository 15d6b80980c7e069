import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ATOMIC, startServer } from "../../../test/support/server.ts";

const HOST = "Host: localhost\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n\r\n";
const withoutAccounts = await startServer({ EARMARK_MAX_BODY_BYTES: "1024" });
const withAccounts = await startServer({ EARMARK_ACCOUNTS: "true" });

/** A request up to its body, and how the server treats it. */
const REQUESTS = {
  "a body that is read": [withoutAccounts, `POST /v1/operations HTTP/1.1\r\n${HOST}Content-Type: ${ATOMIC}\r\n`],
  "a body after 100 Continue": [
    withoutAccounts,
    `POST /v1/operations HTTP/1.1\r\n${HOST}Content-Type: ${ATOMIC}\r\nExpect: 100-continue\r\n`,
  ],
  "a body that is not read": [withoutAccounts, `GET /v1/subscriptions HTTP/1.1\r\n${HOST}`],
  "a body that an export does not read": [withoutAccounts, `GET /v1/subscriptions.opml HTTP/1.1\r\n${HOST}`],
  "a body that a deletion does not read": [
    withoutAccounts,
    `DELETE /v1/subscriptions/00000000-0000-4000-8000-000000000000 HTTP/1.1\r\n${HOST}`,
  ],
  "a refused Host": [withoutAccounts, "GET / HTTP/1.1\r\nHost: elsewhere.example\r\n"],
  "an unknown path": [withoutAccounts, `POST /nothing HTTP/1.1\r\n${HOST}`],
  "a refused media type": [withoutAccounts, `POST /v1/operations HTTP/1.1\r\n${HOST}Content-Type: text/plain\r\n`],
  "a missing credential": [withAccounts, `POST /v1/operations HTTP/1.1\r\n${HOST}Content-Type: ${ATOMIC}\r\n`],
} as const;

/** Bodies that break: in a size, after the data of a chunk, in an extension, in a trailer, above the limit. */
const BODIES = [
  "5\r\nhello\r\nZZ\r\n",
  "5\r\nhelloworld\r\n",
  "5;\0\r\nhello",
  "0\r\nA:\0b\r\n\r\n",
  `401\r\n${"x".repeat(0x401)}\r\n-1\r\n`,
];

/** Sends the parts one after another, and returns everything received until the server closes the connection. */
async function exchange(port: number, parts: readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1").setNoDelay();
  const received: Buffer[] = [];
  socket.on("data", (data) => received.push(data)).on("error", () => undefined);
  // Not `once`: a reset is a way of closing too, after the response.
  const closed = new Promise((resolve) => socket.on("close", resolve));
  await once(socket, "connect");
  for (const part of parts) {
    socket.write(part);
    await sleep(30);
  }
  await closed;
  return Buffer.concat(received).toString();
}

/** Every position in a text; in a long one, only those near its start and end. */
function cutsOf(text: string): number[] {
  return Array.from({ length: text.length + 1 }, (_, at) => at).filter((at) => at < 16 || at > text.length - 16);
}

function countResponses(received: string): number {
  return received.match(/HTTP\/1\.1 [2-5]\d\d /g)?.length ?? 0;
}

// Few at a time: if a busy client does not read for a second, the server closes the connection and the response is lost.
suite("broken chunks", { concurrency: 3 }, () => {
  for (const [name, [{ port }, head]] of Object.entries(REQUESTS)) {
    for (const [position, before] of [
      ["first", ""],
      ["second", `GET /healthz HTTP/1.1\r\n${HOST}\r\n`],
    ] as const) {
      test(`${name}, in the ${position} request of a connection → one response per request`, async () => {
        const whole = before + head + CHUNKED;
        const exchanges = BODIES.flatMap((body) =>
          cutsOf(body).map(async (cut) => {
            const received = await exchange(port, [whole + body.slice(0, cut), body.slice(cut)]);
            const what = JSON.stringify([body.slice(0, cut), body.slice(cut), received]);
            assert.equal(countResponses(received), before === "" ? 1 : 2, what);
          }),
        );
        await Promise.all(exchanges);
      });
    }
  }

  test("packets after the broken one → one response per request", async () => {
    const first = `GET /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`;
    const [, head] = REQUESTS["a body that is read"];
    const received = await exchange(withoutAccounts.port, [
      `${first}${head}${CHUNKED}ZZ\r\n`,
      ...new Array<string>(3).fill("ZZ\r\n"),
    ]);
    assert.equal(countResponses(received), 2, received);
  });
});
