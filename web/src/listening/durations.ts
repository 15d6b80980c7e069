import { format, formatNumber, useWords } from "../words/index.ts";

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** Hours and minutes in words. */
export function useDuration(): (seconds: number) => string {
  const { listening } = useWords();
  return (seconds) => {
    const minutes = Math.round(seconds / MINUTE);
    if (minutes < 60) return format(listening.minutes, { n: minutes });
    if (minutes >= 100 * 60) return format(listening.hours, { n: Math.round(minutes / 60) });
    return format(listening.hoursAndMinutes, { h: formatNumber(Math.floor(minutes / 60)), m: minutes % 60 });
  };
}

/** As players show it: `1:02:03`. */
export function formatClock(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const rest = `${two((seconds % HOUR) / MINUTE)}:${two(seconds % MINUTE)}`;
  return seconds >= HOUR ? `${Math.floor(seconds / HOUR)}:${rest}` : rest.replace(/^0/, "");
}
