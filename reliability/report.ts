import { type Findings, inRun, type Proof, type Scale } from "./proof.ts";

/** What came of a proof or of its control. */
export interface Line {
  readonly promises: string;
  readonly name: string;
  readonly isKept: boolean;
  readonly figures: string;
  /** The first few of what was found, when it should not have been. */
  readonly violations: readonly string[];
}

const SHOWN = 5;

/** Runs a proof and its control: one line for each. */
export async function examine(proof: Proof, scale: Scale): Promise<Line[]> {
  const promises = proof.promises.join(" ");
  const found = await execute(proof, scale);
  const lines = [
    {
      promises,
      name: proof.name,
      isKept: found.violations.length === 0,
      figures: found.figures,
      violations: found.violations.slice(0, SHOWN),
    },
  ];
  if (proof.control === undefined) return lines;
  const { figures, violations } = await execute(proof.control, scale);
  const isFound = violations.length > 0;
  return [
    ...lines,
    {
      promises,
      name: `  control: ${proof.control.name}`,
      isKept: isFound,
      figures: `${figures}: ${isFound ? `found, as it must be (${violations.length})` : "NOT FOUND"}`,
      violations: isFound ? [] : ["the proof does not notice when the promise is broken"],
    },
  ];
}

/** What cannot be carried out to its end proves nothing. */
async function execute(work: Pick<Proof, "prove">, scale: Scale): Promise<Findings> {
  try {
    return await inRun(scale, (run) => work.prove(run));
  } catch (error) {
    return { figures: "broken off", violations: [String((error as Error).stack ?? error)] };
  }
}

export function draw({ isKept, promises, name, figures, violations }: Line, seed: number): string {
  const line = `${isKept ? "ok  " : "FAIL"}  ${promises.padEnd(8)}  ${name.padEnd(44)}  ${figures}  (seed ${seed})\n`;
  return line + violations.map((violation) => `      - ${violation}\n`).join("");
}
