import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fuzz } from "./run.ts";
import { targets } from "./targets.ts";

const USAGE = `Gives every reader of what strangers send more than any person would think of, and holds it to what it promises.

  npm run test:fuzz -- [--seconds N] [--only TEXT] [--seed N]

  --seconds N  for each reader; ten minutes if not given
  --only TEXT  only readers whose name holds this: ${targets.map(({ name }) => name).join(", ")}
  --seed N     the same chance again
`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    only: { type: "string", default: "" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(USAGE);
else {
  const chosen = targets.filter(({ name }) => name.includes(values.only.toLowerCase()));
  if (chosen.length === 0) throw new Error(`there is no reader with "${values.only}" in its name`);
  const module = fileURLToPath(new URL("targets.ts", import.meta.url));
  const seed = Number(values.seed);
  for (const { name } of chosen) {
    const { runs, corpus, seconds, finding } = await fuzz({ module, name, seconds: Number(values.seconds), seed });
    const figures = `${runs.toLocaleString("en")} inputs in ${Math.round(seconds)} s (${Math.round(runs / seconds).toLocaleString("en")} a second), ${corpus} kept`;
    process.stdout.write(
      `${finding === undefined ? "ok  " : "FAIL"}  ${name.padEnd(14)}  ${figures}  (seed ${seed})\n`,
    );
    if (finding === undefined) continue;
    process.stdout.write(`      - ${finding.words}\n        with ${JSON.stringify(finding.input)}\n`);
    process.exitCode = 1;
  }
}
for (const target of targets) await target.close?.();
