import assert from "node:assert/strict";
import { test } from "node:test";
import { MINUTE, signIn, signUp, start } from "../test/support/http-accounts.ts";

test("sign-in: an unknown name → takes as long as a wrong password", async () => {
  const server = await start();
  const name = "known";
  assert.equal((await signUp(server, name)).status, 201);
  /** Mann-Whitney U test: the difference in standard deviations; 7.7 if one is always slower. */
  const compare = async () => {
    const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] };
    for (let round = 0; round < 40; round += 1) {
      // Otherwise the server would delay guesses at the known name, of which there are many.
      server.wait(MINUTE);
      for (const kind of round % 2 === 0 ? (["known", "unknown"] as const) : (["unknown", "known"] as const)) {
        const started = performance.now();
        await signIn(server, kind === "known" ? name : `nobody-${round}`, "wrong password");
        times[kind].push(performance.now() - started);
      }
    }
    const { known, unknown } = times;
    let slower = 0;
    for (const one of known) for (const other of unknown) slower += one > other ? 1 : 0;
    const [n, m] = [known.length, unknown.length];
    return Math.abs(slower - (n * m) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12);
  };
  // Other load may look like a difference once, but not every time.
  const deviations: number[] = [];
  while (deviations.length < 3 && !deviations.some((each) => each < 5)) deviations.push(await compare());
  assert.ok(
    deviations.some((each) => each < 5),
    `${deviations.map((each) => each.toFixed(1))} deviations`,
  );
});
