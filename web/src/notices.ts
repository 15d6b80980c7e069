import { createState } from "./state.ts";

/** A word about what has just happened, at the foot of the page. */
export interface Notice {
  readonly text: string;
  readonly action?: {
    readonly label: string;
    readonly run: () => void;
    /** Called when the notice goes without the action having been chosen. */
    readonly lapse: () => void;
  };
}

export const notice = createState<Notice | undefined>(undefined);
/** What was copied, or found: for those who hear the page. */
export const spoken = createState("");
const SPOKEN_MS = 1_500;
let speaking: ReturnType<typeof setTimeout> | undefined;

/** What is said twice must be heard twice, so it does not stay. */
export function tell(text: string): void {
  spoken.set(text);
  clearTimeout(speaking);
  speaking = setTimeout(() => spoken.set(""), SPOKEN_MS);
}

const SHOWN_MS = 6_000;
/** An action needs time to be reached. */
const ACTION_MS = 10_000;
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, action?: Notice["action"]): void {
  notice.value?.action?.lapse();
  notice.set(action ? { text, action } : { text });
  resume();
}

export function toContent(): void {
  document.getElementById("content")?.focus({ preventScroll: true });
}

/** Whoever has just pressed a button of the notice would be left nowhere when it goes. */
function leave(): void {
  if (document.activeElement?.closest(".notice")) toContent();
  clearTimeout(timer);
}

export function hush(): void {
  leave();
  const gone = notice.value;
  notice.set(undefined);
  gone?.action?.lapse();
}

/** Whoever points at a notice is not done with it. */
export function pause(): void {
  clearTimeout(timer);
}

export function resume(): void {
  clearTimeout(timer);
  timer = setTimeout(hush, notice.value?.action ? ACTION_MS : SHOWN_MS);
}

export function act(): void {
  leave();
  const { action } = notice.value ?? {};
  notice.set(undefined);
  action?.run();
}
