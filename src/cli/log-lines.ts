import { Writable } from "node:stream";
import { replaceControlCharacters } from "../util/control-characters.ts";

const LEVELS: Readonly<Record<number, string>> = { 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL" };

/** A stream that turns the JSON lines of the log into lines of text. */
export function createTextLog(output: Writable): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      for (const line of String(chunk).split("\n")) if (line !== "") output.write(formatLine(line));
      done();
    },
  });
}

/** Formats one log line, followed by the stack trace of its error if there is one. */
export function formatLine(json: string): string {
  const { level, time, msg, pid: _pid, hostname: _hostname, err, ...rest } = JSON.parse(json);
  const clock = new Date(time).toTimeString().slice(0, 8);
  const fields = Object.entries(rest).map(
    ([name, value]) => ` ${name}=${typeof value === "object" ? JSON.stringify(value) : value}`,
  );
  const line = `${clock} ${(LEVELS[level] ?? String(level)).padEnd(5)} ${msg ?? ""}${fields.join("")}`;
  const stack = String(err?.stack ?? err?.message ?? "").split("\n");
  return [line, ...(err === undefined ? [] : stack)].map((text) => `${replaceControlCharacters(text)}\n`).join("");
}
