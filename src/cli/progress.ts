export interface Progress {
  show(done: number, total: number): void;
  end(): void;
}

export interface StagedProgress extends Progress {
  /** Shows what is in progress while it is unknown how much there is to do. */
  note(text: string): void;
}

const WIDTH = 30;
const REFRESH_MS = 100;

/** A progress bar with rate and time left. */
export function createProgress(output: { write(text: string): unknown }, clock: () => number): StagedProgress {
  const started = clock();
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    show(done, total) {
      const now = clock();
      if (now - shownAt < REFRESH_MS && done < total) return;
      shownAt = now;
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const filled = Math.round(share * WIDTH);
      const rate = done / Math.max(0.001, (now - started) / 1000);
      const left = Math.ceil((total - done) / Math.max(1, rate));
      const bar = "█".repeat(filled) + "░".repeat(WIDTH - filled);
      output.write(
        `\r\x1b[K${bar} ${Math.floor(share * 100)} %  ${done} of ${total}  ${Math.round(rate)}/s  ${left} s left`,
      );
    },
    note(text) {
      shownAt = clock();
      output.write(`\r\x1b[K${text}`);
    },
    end() {
      if (shownAt > 0) output.write("\r\x1b[K");
    },
  };
}
