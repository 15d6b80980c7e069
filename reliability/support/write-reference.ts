import { engineFor, openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import type { Writes } from "../../src/store/shared/database.ts";
import { WRITES } from "../../src/store/sql/writes.ts";
import { Cycle, observe, prepare, readLog, STEPS, sweep } from "./write-cycle.ts";

/** A cycle that nothing interrupts. */
export interface Reference {
  /** State N is that after N steps. */
  readonly states: readonly Awaited<ReturnType<typeof observe>>[];
  readonly steps: readonly { readonly result: string; readonly writes: readonly string[] }[];
}

/** What a killed process has confirmed of a cycle. */
export interface Confirmed {
  steps: number;
  /** The next step is known not to have been done. */
  hasFailed: boolean;
}

export async function withStore<T>(url: string, work: (store: Store) => Promise<T>, isCommand = false): Promise<T> {
  const store = await openStore(url, { connections: 5, allowRunningServer: isCommand });
  return work(store).finally(() => store.close());
}

/** Not at the same time as another work of the stores of this process. */
export async function runReference(url: string): Promise<Reference> {
  await engineFor(url).migrate(url, { distribute: false });
  const states: Reference["states"][number][] = [];
  const steps: Reference["steps"][number][] = [];
  const run = async (store: Store) => {
    await prepare(store);
    const cycle = new Cycle(store, 1);
    const addState = async () => states.push(await observe(cycle, await readLog(store)));
    await addState();
    for (const step of STEPS) {
      calls.length = 0;
      const result = await step.run(cycle);
      steps.push({ result, writes: [...calls] });
      await addState();
    }
  };
  // A command writes in its own thread.
  await withStore(url, run, true);
  return { states, steps };
}

/** The names of the writes that this thread does. */
const calls: string[] = [];
for (const [name, write] of Object.entries(WRITES as Writes)) {
  const work: typeof write.work = (...args) => {
    calls.push(name);
    return original(...args);
  };
  const { work: original } = write;
  Object.assign(write, { work });
}

/** Writes that no step does. */
export function findMissing({ steps }: Reference): string[] {
  const writes = new Set(steps.flatMap((step) => step.writes));
  return Object.keys(WRITES).filter((name) => !writes.has(name));
}

const LOGGED = [
  ...["invitation-created", "account-joined", "reset-link-created", "password-reset"],
  ...["second-factor-added", "second-factor-failed", "recovery-code-used", "recovery-codes-created"],
  ...["second-factor-removed", "administrator-added"],
  ...["account-disabled", "account-enabled", "administrator-removed", "account-deleted"],
];

/** What is wrong with a state, even if every cycle has it. */
export function findContradictions({ states }: Reference): string[] {
  const found = states.flatMap(({ account, name, credentials = "", log = "" }, steps) => {
    const isDisabled = account?.includes('"disabledAt"') === true;
    const [tokens, suspended, sessions, , links] = (JSON.parse(credentials) as unknown[][]).map((each) => each.length);
    const actions = (JSON.parse(log) as { action: string }[]).map(({ action }) => action);
    const last = STEPS[steps - 1]?.name;
    return [
      ...(account === name ? [] : [`after "${last}": an account without its name, or a name without its account`]),
      ...(isDisabled !== (suspended === 1) ? [`after "${last}": ${suspended} suspended tokens`] : []),
      ...(isDisabled && [tokens, sessions, links].join() !== "0,0,0"
        ? [`after "${last}": access that was not ended`]
        : []),
      ...(actions.join() === LOGGED.slice(0, actions.length).join() ? [] : [`after "${last}": logged ${actions}`]),
    ];
  });
  const isComplete = LOGGED.every((action) => states.at(-1)?.["log"]?.includes(`"${action}"`));
  return isComplete ? found : [...found, "an action is missing in the audit log"];
}

/** Whether PostgreSQL may do the step twice, the second time with another result. */
export function mayRunTwice({ steps }: Reference, index: number): boolean {
  const all: Writes = WRITES;
  return steps[index]?.writes.every((name) => all[name]?.isRepeatable === true) ?? false;
}

/** Each cycle must be as after the last confirmed step, or as after the next one: nothing lost, nothing half done. */
export async function findDifferences(
  store: Store,
  cycles: ReadonlyMap<number, Confirmed>,
  { states }: Reference,
): Promise<string[]> {
  const differences: string[] = [];
  let log = await readLog(store);
  let isSwept = false;
  for (const [number, { steps, hasFailed }] of cycles) {
    const next = STEPS[steps];
    const allowed = states.slice(steps, steps + (hasFailed ? 1 : 2));
    const compare = async () => {
      const state = await observe(new Cycle(store, number), log);
      return allowed.map((each) => Object.keys(state).filter((name) => state[name] !== each[name]));
    };
    const isWrong = (found: readonly string[][]) => found.every(({ length }) => length > 0);
    let found = await compare();
    // After the last step too: if the reply to a part of a deletion was lost, the sweep erases the podcasts.
    if (isWrong(found) && next?.isFinishedBySweep !== false && !isSwept) {
      await sweep(store);
      log = await readLog(store);
      isSwept = true;
      found = await compare();
    }
    if (isWrong(found)) {
      const parts = found.map((names) => names.join(", ")).join(" or ");
      differences.push(`cycle ${number}, ${steps} steps confirmed, then "${next?.name}": ${parts} differ`);
    }
  }
  return differences;
}
