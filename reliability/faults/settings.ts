import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Run } from "../proof.ts";
import type { DEFECTS } from "./defects.ts";

export type Defect = keyof typeof DEFECTS;

/** How a step can fail. `error-said` is a statement that PostgreSQL itself refuses. */
export type Failing =
  | "error-before"
  | "error-after"
  | "error-said"
  | "kill-before"
  | "kill-after"
  | "writer-ends-before"
  | "writer-ends-after";

export interface Faults {
  /** What the program has to be started with. */
  readonly settings: Readonly<Record<string, string>>;
  /** From now on the step with this number fails. */
  arm(step: number, how: Failing): void;
  disarm(): void;
  /** What the step was that failed; undefined when there was none with its number. */
  seen(): string | undefined;
}

/** The settings that change a program as defects.ts says. */
export function withDefect(defect: Defect): Record<string, string> {
  return { ...preloading("defects.ts"), ...named(defect) };
}

/** The settings that write a trace as record.ts says, of a program that is changed besides if a plant is named. */
export function recording(trace: string, defect?: Defect): Record<string, string> {
  return { ...preloading("record.ts", ...changed(defect)), ...named(defect), RELIABILITY_TRACE: trace };
}

function changed(defect: Defect | undefined): string[] {
  return defect === undefined ? [] : ["defects.ts"];
}

function named(defect: Defect | undefined): Record<string, string> {
  return defect === undefined ? {} : { RELIABILITY_DEFECT: defect };
}

/** The settings that load files of this folder before the program, in all its threads. */
function preloading(...files: readonly string[]): Record<string, string> {
  return { NODE_OPTIONS: files.map((file) => `--import=${fileURLToPath(new URL(file, import.meta.url))}`).join(" ") };
}

let plans = 0;

/** Lets a program fail at a step of its own; one that is changed besides, if a plant is named. */
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
