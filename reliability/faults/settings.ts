import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Run } from "../support/run.ts";
import type { DEFECTS } from "./defects.ts";

export type Defect = keyof typeof DEFECTS;

/** How a step fails. `error-said` is an error reported by PostgreSQL. */
export type Failing =
  | "error-before"
  | "error-after"
  | "error-said"
  | "kill-before"
  | "kill-after"
  | "writer-ends-before"
  | "writer-ends-after";

export interface Faults {
  /** Environment for the program. */
  readonly settings: Readonly<Record<string, string>>;
  /** From now on the step with this number fails. */
  arm(step: number, how: Failing): void;
  disarm(): void;
  /** The step that failed; undefined when there was none with that number. */
  seen(): string | undefined;
}

/** Environment for a program with a defect. */
export function withDefect(defect: Defect): Record<string, string> {
  return { ...preloading("defects.ts"), ...named(defect) };
}

/** Environment for a program that writes a trace, optionally with a defect. */
export function recording(trace: string, defect?: Defect): Record<string, string> {
  return { ...preloading("record.ts", ...changed(defect)), ...named(defect), RELIABILITY_TRACE: trace };
}

function changed(defect: Defect | undefined): string[] {
  return defect === undefined ? [] : ["defects.ts"];
}

function named(defect: Defect | undefined): Record<string, string> {
  return defect === undefined ? {} : { RELIABILITY_DEFECT: defect };
}

/** Loads files of this folder before the program, in all its threads. */
function preloading(...files: readonly string[]): Record<string, string> {
  return { NODE_OPTIONS: files.map((file) => `--import=${fileURLToPath(new URL(file, import.meta.url))}`).join(" ") };
}

let plans = 0;

/** Makes chosen steps of a program fail, optionally with a defect. */
export function createFaults(run: Run, defect?: Defect): Faults {
  plans += 1;
  const plan = join(run.folder, `plan-${plans}`);
  let serial = 0;
  const lay = (words: string) => {
    serial += 1;
    writeFileSync(plan, `${serial} ${words}`);
  };
  lay("0");
  return {
    settings: { ...preloading("inject.ts", ...changed(defect)), ...named(defect), RELIABILITY_PLAN: plan },
    arm: (step, how) => lay(`${step} ${how}`),
    disarm: () => lay("0"),
    seen() {
      if (!existsSync(`${plan}-seen`)) return undefined;
      const last = readFileSync(`${plan}-seen`, "utf8").trimEnd().split("\n").at(-1) ?? "";
      return last.startsWith(`${serial} `) ? last.slice(`${serial} `.length) : undefined;
    },
  };
}
