import { createState } from "../state/state.ts";

/** A short message at the bottom of the page. */
export interface Notice {
  readonly text: string;
  readonly action?: {
    readonly label: string;
    readonly onClick: () => void;
    /** Called when the notice goes away and the action was not chosen. */
    readonly onDismiss: () => void;
  };
}

export const notice = createState<Notice | undefined>(undefined);
/** For screen readers only. */
export const announcement = createState("");

const ANNOUNCEMENT_MS = 1_500;
const NOTICE_MS = 6_000;
/** Longer, because the user needs time to reach the button. */
const ACTION_MS = 10_000;

let announcementTimer: ReturnType<typeof setTimeout> | undefined;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** The text is cleared afterwards, so that the same announcement is read again the next time. */
export function announce(text: string): void {
  announcement.set(text);
  clearTimeout(announcementTimer);
  announcementTimer = setTimeout(() => announcement.set(""), ANNOUNCEMENT_MS);
}

export function showNotice(text: string, action?: Notice["action"]): void {
  notice.value?.action?.onDismiss();
  notice.set(action ? { text, action } : { text });
  resumeNotice();
}

export function dismissNotice(): void {
  takeNotice()?.action?.onDismiss();
}

export function runNoticeAction(): void {
  takeNotice()?.action?.onClick();
}

function takeNotice(): Notice | undefined {
  clearTimeout(noticeTimer);
  // The focus must not be lost with the button that had it.
  if (document.activeElement?.closest(".notice")) focusContent();
  const taken = notice.value;
  notice.set(undefined);
  return taken;
}

/** Keeps the notice while the pointer or the focus is on it. */
export function pauseNotice(): void {
  clearTimeout(noticeTimer);
}

export function resumeNotice(): void {
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(dismissNotice, notice.value?.action ? ACTION_MS : NOTICE_MS);
}

export function focusContent(): void {
  document.getElementById("content")?.focus({ preventScroll: true });
}
