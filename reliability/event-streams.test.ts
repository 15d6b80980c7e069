import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { newToken, signUp } from "../test/support/accounts.ts";
import { type EventStream, openEvents } from "../test/support/events.ts";
import { sharedPostgres, startPostgres } from "../test/support/postgres.ts";
import { start } from "../test/support/process.ts";
import { ATOMIC, add, callServer, newId, temporaryFolder } from "../test/support/server.ts";

const STREAMS = 1_000;
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

const ACCOUNTS = { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" };

/** A stream of a new account on one server, and what another server can do about it. */
async function openOwn(port: number, otherPort: number, name = "ann") {
  const person = await signUp(port, name, "correct horse battery");
  const { id, token } = await newToken(port, person, { label: "phone", scope: "write" });
  const Authorization = `Bearer ${token}`;
  const headers = { Authorization, "Content-Type": ATOMIC };
  const stream = await openEvents(port, { Authorization });
  return {
    stream,
    write() {
      const body = JSON.stringify({ "atomic:operations": [add(newId(), `https://feeds.example/${newId()}`)] });
      return callServer(otherPort, "POST", "/v1/operations", { headers, body });
    },
    async revoke() {
      const response = await callServer(otherPort, "DELETE", `/v1/tokens/${id}`, {
        headers: { Cookie: person.cookie },
      });
      assert.equal(response.status, 204, response.text);
    },
  };
}

const commentsOf = ({ text }: EventStream) => text().match(/^:$/gm)?.length ?? 0;

/** Waits for so many comments, which come every 20 seconds, or for the end of the stream. */
async function untilComments(stream: EventStream, count: number): Promise<void> {
  while (commentsOf(stream) < count && !stream.response.closed)
    await Promise.race([once(stream.response, "received"), stream.ended]);
}

describe("event streams", { concurrency: true }, () => {
  test("stop: SIGTERM with 1,000 streams → all end, and reconnections are spread", async () => {
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
    await untilComments(stream, 2);
    assert.equal(stream.response.closed, false);
    stream.close();
  });

  test("outage: PostgreSQL is stopped for longer than a comment takes → the stream stays open, and events resume", async () => {
    const postgres = await startPostgres();
    const { port } = await start({ ...ACCOUNTS, DATABASE_URL: await postgres.database() });
    const { stream, write } = await openOwn(port, port);
    await stream.until((await write()).json.meta.state);
    await postgres.stop("fast");
    const before = commentsOf(stream);
    await untilComments(stream, before + 1);
    // With the comment, the server has begun to check the token, as it does with these.
    for (let tries = 0; tries < 2; tries += 1) assert.equal((await write()).status, 503);
    await postgres.start();
    let { status, json } = await write();
    while (status === 503) ({ status, json } = await write());
    await stream.until(json.meta.state);
    assert.equal(stream.response.closed, false);
    stream.close();
  });

  test("access: token revoked through another process → the stream ends with its next comment", async () => {
    const settings = { ...ACCOUNTS, DATABASE_URL: await (await sharedPostgres()).database() };
    const [one, other] = await Promise.all([start(settings), start(settings)]);
    const { stream, revoke } = await openOwn(one.port, other.port);
    const staying = await openOwn(one.port, other.port, "bob");
    await revoke();
    const before = commentsOf(stream);
    await stream.ended;
    assert.ok(commentsOf(stream) <= before + 1, stream.text());
    assert.equal(staying.stream.response.closed, false);
    staying.stream.close();
  });
});
