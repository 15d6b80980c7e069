import type { Judged } from "./judge.ts";

/** A mutant that makes a test hang was noticed. */
export function percentOf(judged: readonly Judged[]): number {
  const noticed = judged.filter(({ verdict }) => verdict !== "survived").length;
  return judged.length === 0 ? 100 : (100 * noticed) / judged.length;
}

/** A line for each file, and one for all. */
export function drawTable(judged: readonly Judged[]): string {
  const byFile = Map.groupBy(judged, ({ mutant }) => mutant.file);
  const rows = [...[...byFile].sort(([a], [b]) => a.localeCompare(b)), ["all", judged] as const];
  const lines = rows.map(([name, some]) => {
    const count = (verdict: Judged["verdict"]) => some.filter((one) => one.verdict === verdict).length;
    const figures = [some.length, count("killed"), count("survived"), count("timed out"), percentOf(some).toFixed(1)];
    return [name.padEnd(34), ...figures.map((figure) => String(figure).padStart(9))].join(" ");
  });
  const head = ["mutants", "killed", "survived", "timed out", "%"].map((word) => word.padStart(9));
  return `${["".padEnd(34), ...head].join(" ")}\n${lines.join("\n")}\n`;
}

const SHOWN = 100;

export function drawSurvivors(judged: readonly Judged[]): string {
  const survivors = judged.filter(({ verdict }) => verdict === "survived");
  return survivors
    .sort((a, b) => a.mutant.file.localeCompare(b.mutant.file) || a.mutant.start - b.mutant.start)
    .map(({ mutant: { file, line, there, instead }, tests }) => {
      const why = tests === 0 ? " (no test comes here)" : "";
      return `${file}:${line}${why}\n    - ${shorten(there)}\n    + ${shorten(instead)}\n`;
    })
    .join("");
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}…`;
}
