import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { pino } from "pino";
import { createTextLog, formatLine } from "./log-lines.ts";

/** What a logger writes through the stream. */
function logged(write: (log: ReturnType<typeof pino>) => void): string {
  const output = new PassThrough();
  const chunks: string[] = [];
  output.on("data", (chunk) => chunks.push(String(chunk)));
  write(pino({ level: "debug" }, createTextLog(output)));
  return chunks.join("");
}

test("log lines: a message with fields → time, level, message and fields", () => {
  const text = logged((log) => log.info({ url: "http://127.0.0.1:8080", ms: 3 }, "listening"));
  assert.match(text, /^\d\d:\d\d:\d\d INFO {2}listening url=http:\/\/127\.0\.0\.1:8080 ms=3\n$/);
});

test("log lines: several messages → a line each, with their levels", () => {
  const text = logged((log) => {
    log.debug("one");
    log.warn("two");
    log.error({ nested: { a: 1 } }, "three");
  });
  assert.deepEqual(
    text.split("\n").map((line) => line.slice(9)),
    ["DEBUG one", "WARN  two", 'ERROR three nested={"a":1}', ""],
  );
});

test("log lines: an error → its stack below the message", () => {
  const text = logged((log) => log.error({ err: new Error("no connection") }, "failed"));
  assert.match(text, /ERROR failed\nError: no connection\n {4}at /);
});

test("log lines: control characters in a value → replaced", () => {
  const text = formatLine(JSON.stringify({ level: 40, time: 0, msg: "a\u001b[2Jb", path: "x\ny\u202e" }));
  assert.match(text, /WARN {2}a\ufffd\[2Jb path=x\ufffdy\ufffd\n$/);
});
