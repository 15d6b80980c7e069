import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { openEvents } from "./support/events.ts";
import { startPostgres } from "./support/postgres.ts";
import { start } from "./support/process.ts";
import { ATOMIC, add, callServer, newId, temporaryFolder } from "./support/server.ts";

/** As many as a server accepts by default. */
const STREAMS = 5_000;
const STREAMS_PER_USER = 10;
const OPENED_AT_ONCE = 250;

interface RawStream {
  readonly socket: Socket;
  readonly text: () => string;
}

/** Resolves with the first event. The test is a proxy that has authenticated the user. */
async function openRaw(port: number, user: string): Promise<RawStream> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("error", () => undefined).on("data", (chunk) => (text += chunk));
  socket.write(`GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nRemote-User: ${user}\r\n\r\n`);
  while (!text.includes("event: state")) await once(socket, "data");
  return { socket, text: () => text };
}

describe("event streams", { concurrency: true }, () => {
  test("stop: SIGTERM with 5,000 streams → all end, and reconnections are spread", async () => {
    const server = await start({
      DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "true",
      EARMARK_AUTH_HEADER: "Remote-User",
      EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    });
    const streams: RawStream[] = [];
    while (streams.length < STREAMS) {
      const users = Array.from({ length: OPENED_AT_ONCE }, (_, index) =>
        Math.floor((streams.length + index) / STREAMS_PER_USER),
      );
      streams.push(...(await Promise.all(users.map((user) => openRaw(server.port, `user${user}`)))));
    }
    const closed = Promise.all(streams.map(({ socket }) => once(socket, "close")));
    server.child.kill("SIGTERM");
    assert.equal(await server.ended, 0, server.output());
    await closed;
    const waits = streams.map(({ text }) => Number(/retry: (\d+)\s+0\s+$/.exec(text())?.[1]));
    assert.ok(waits.every((ms) => ms >= 1_000 && ms <= 10_000));
    assert.ok(new Set(waits.map((ms) => Math.floor(ms / 1_000))).size >= 9);
  });

  test("silence: longer than the 30 s after which idle connections are closed → comments, and still open", async () => {
    const { port } = await start({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db` });
    const stream = await openEvents(port);
    // One comes every 20 seconds.
    while ((stream.text().match(/^:$/gm)?.length ?? 0) < 2 && !stream.response.closed)
      await Promise.race([once(stream.response, "received"), stream.ended]);
    assert.equal(stream.response.closed, false);
    stream.close();
  });

  test("outage: PostgreSQL is stopped and started → the stream stays open, and events resume", async () => {
    const postgres = await startPostgres();
    const { port } = await start({ DATABASE_URL: await postgres.database() });
    const stream = await openEvents(port);
    const write = async () => {
      const body = JSON.stringify({ "atomic:operations": [add(newId(), `https://feeds.example/${newId()}`)] });
      return callServer(port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
    };
    await stream.until((await write()).json.meta.state);
    await postgres.stop("fast");
    assert.equal((await write()).status, 503);
    await postgres.start();
    let { status, json } = await write();
    while (status === 503) ({ status, json } = await write());
    await stream.until(json.meta.state);
    assert.equal(stream.response.closed, false);
    stream.close();
  });
});
