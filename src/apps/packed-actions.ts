import type { ActionKind, KeyedAction, UploadedAction } from "./episode-actions.ts";

/** Actions as sent between threads: arrays of strings and numbers are cloned several times as fast as objects. */
export interface PackedActions {
  readonly count: number;
  /** Media URL and GUID of each action; "" for a missing value. */
  readonly texts: readonly string[];
  /** Podcasts, feeds, devices and kinds, each once: most of them repeat. */
  readonly repeated: readonly string[];
  /** For each action, the indexes of its repeated texts, then its other members; NaN for a missing value. */
  readonly numbers: Float64Array;
}

type Keys = Pick<KeyedAction, "feed" | "isUndated">;

const [TEXTS, NUMBERS] = [2, 9];

export function packActions(actions: readonly (UploadedAction & Partial<Keys>)[]): PackedActions {
  const texts: string[] = [];
  const indexes = new Map<string, number>();
  const indexOf = (text: string) => {
    let index = indexes.get(text);
    if (index === undefined) {
      index = indexes.size;
      indexes.set(text, index);
    }
    return index;
  };
  const numbers = new Float64Array(NUMBERS * actions.length);
  let at = 0;
  for (const action of actions) {
    texts.push(action.episode, action.guid ?? "");
    numbers[at] = indexOf(action.podcast);
    numbers[at + 1] = indexOf(action.feed ?? "");
    numbers[at + 2] = indexOf(action.device ?? "");
    numbers[at + 3] = indexOf(action.kind);
    numbers[at + 4] = action.actedAt?.getTime() ?? Number.NaN;
    numbers[at + 5] = action.position ?? Number.NaN;
    numbers[at + 6] = action.started ?? Number.NaN;
    numbers[at + 7] = action.total ?? Number.NaN;
    numbers[at + 8] = Number(action.isUndated ?? false);
    at += NUMBERS;
  }
  return { count: actions.length, texts, repeated: [...indexes.keys()], numbers };
}

/** The feed is empty if the actions were packed without one. */
export function unpackActions({ count, texts, repeated, numbers }: PackedActions): (UploadedAction & Keys)[] {
  const actions: (UploadedAction & Keys)[] = [];
  for (let index = 0; index < count; index += 1) {
    const at = NUMBERS * index;
    const time = undefinedIfNaN(numbers[at + 4]);
    actions.push({
      podcast: repeated[numbers[at] ?? 0] ?? "",
      episode: texts[TEXTS * index] ?? "",
      feed: repeated[numbers[at + 1] ?? 0] ?? "",
      guid: texts[TEXTS * index + 1] || undefined,
      device: repeated[numbers[at + 2] ?? 0] || undefined,
      kind: repeated[numbers[at + 3] ?? 0] as ActionKind,
      actedAt: time === undefined ? undefined : new Date(time),
      isUndated: numbers[at + 8] === 1,
      position: undefinedIfNaN(numbers[at + 5]),
      started: undefinedIfNaN(numbers[at + 6]),
      total: undefinedIfNaN(numbers[at + 7]),
    });
  }
  return actions;
}

function undefinedIfNaN(number: number | undefined): number | undefined {
  return Number.isNaN(number) ? undefined : number;
}
