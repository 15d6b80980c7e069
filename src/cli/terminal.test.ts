import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { readConfig } from "../config/config.ts";
import { pluralize, Terminal, UsageError } from "./terminal.ts";

const HOSTILE = "https://a.example/\x1b[2J\x9b31m\u202egpj.exe\u2066\u200b\nremoved\r";
const SHOWN = "https://a.example/�[2J�31m�gpj.exe���removed�";

function openTerminal({ isTTY = true } = {}) {
  const open = () => Object.assign(new PassThrough(), { isTTY });
  const [stdin, stdout, stderr] = [open(), open(), open()];
  const terminal = new Terminal(
    {
      stdin,
      stdout,
      stderr,
      environment: {},
      workingDirectory: "/",
      version: "0",
      config: () => readConfig({}, "/"),
      readFile: () => Buffer.alloc(0),
      now: () => new Date(),
      stopRequested: async () => "",
      lowerPriority: () => undefined,
    },
    { quiet: false },
  );
  const read = (stream: PassThrough) => {
    let text = "";
    // From Node 26 on, `read` returns one chunk at a time.
    for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) text += String(chunk);
    return text;
  };
  return { terminal, stdin, stdout: () => read(stdout), stderr: () => read(stderr) };
}

test("terminal: hostile text in a message, a line or columns → replaced", async () => {
  for (const isTTY of [true, false]) {
    const { terminal, stdout, stderr } = openTerminal({ isTTY });
    terminal.say(HOSTILE);
    assert.equal(stderr(), `${SHOWN}\n`);
    await terminal.write(`${HOSTILE}\n`);
    assert.equal(stdout(), `${SHOWN.replace("�removed", "\nremoved")}\n`);
    await terminal.writeRecord({ url: HOSTILE, detail: "a\tb" }, false);
    assert.equal(stdout(), `${SHOWN}\ta�b\n`);
  }
});

test("terminal: hostile text in JSON → escaped, with the same value", async () => {
  const { terminal, stdout } = openTerminal();
  await terminal.writeRecord({ url: HOSTILE }, true);
  const line = stdout();
  assert.match(line, /^[ -~]+\n$/);
  assert.deepEqual(JSON.parse(line), { url: HOSTILE });
});

test("terminal: hostile text in a question → replaced", async () => {
  const { terminal, stdin, stderr } = openTerminal();
  const asked = terminal.confirm(`Remove ${HOSTILE}?`, false);
  await setImmediate();
  // The line editor writes its own control sequences around it.
  const shown = stderr();
  assert.ok(shown.includes(`Remove ${SHOWN}? [y/N] `), shown);
  stdin.write("y\n");
  await asked;
  const withoutTerminal = openTerminal({ isTTY: false }).terminal.confirm(`Remove ${HOSTILE}?`, false);
  await assert.rejects(withoutTerminal, new UsageError(`Remove ${SHOWN}? Confirm with --yes`));
});

test("terminal: a file → unchanged in a pipe, without control characters on a terminal", async () => {
  for (const [isTTY, expected] of [
    [false, HOSTILE],
    [true, SHOWN.replace("�removed", "\nremoved")],
  ] as const) {
    const { terminal, stdout } = openTerminal({ isTTY });
    await terminal.writeContent(HOSTILE);
    assert.equal(stdout(), expected);
  }
});

test("pluralize: a number and a noun → singular or plural", () => {
  assert.deepEqual(
    [
      pluralize(1, "day"),
      pluralize(0, "day"),
      pluralize(1, "identity", "identities"),
      pluralize(2, "identity", "identities"),
    ],
    ["1 day", "0 days", "1 identity", "2 identities"],
  );
});
