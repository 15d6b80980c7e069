import { type Findings, inRun, type ReliabilityTest, type Scale } from "./run.ts";

/** The result of a test or its control. */
export interface Line {
  readonly promises: string;
  readonly name: string;
  readonly isKept: boolean;
  readonly figures: string;
  /** The first few violations, if there should have been none. */
  readonly violations: readonly string[];
}

const SHOWN = 5;

/** Runs a test and its control: one line for each. */
export async function examine(test: ReliabilityTest, scale: Scale): Promise<Line[]> {
  const promises = test.promises.join(" ");
  const found = await runOne(test, scale);
  const lines = [
    {
      promises,
      name: test.name,
      isKept: found.violations.length === 0,
      figures: found.figures,
      violations: found.violations.slice(0, SHOWN),
    },
  ];
  if (test.control === undefined) return lines;
  const control = await runOne(test.control, scale);
  return [...lines, { promises, name: `  control: ${test.control.name}`, ...judgeControl(control) }];
}

type Result = Findings & { readonly hasThrown: boolean };

/** A control must find violations; one that throws has found nothing. */
function judgeControl({ figures, violations, hasThrown }: Result): Pick<Line, "isKept" | "figures" | "violations"> {
  if (hasThrown) return { isKept: false, figures, violations };
  if (violations.length === 0)
    return { isKept: false, figures: `${figures}: NOT FOUND`, violations: ["the test does not detect the violation"] };
  return { isKept: true, figures: `${figures}: found, as expected (${violations.length})`, violations: [] };
}

/** A run that throws has found nothing. */
async function runOne(work: Pick<ReliabilityTest, "check">, scale: Scale): Promise<Result> {
  try {
    return { ...(await inRun(scale, (run) => work.check(run))), hasThrown: false };
  } catch (error) {
    return { figures: "failed to run", violations: [String((error as Error).stack ?? error)], hasThrown: true };
  }
}

export function draw({ isKept, promises, name, figures, violations }: Line, seed: number): string {
  const line = `${isKept ? "ok  " : "FAIL"}  ${promises.padEnd(8)}  ${name.padEnd(44)}  ${figures}  (seed ${seed})\n`;
  return line + violations.map((violation) => `      - ${violation}\n`).join("");
}
