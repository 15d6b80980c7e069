import type { FeedToImport } from "../imports.ts";

/** A feed as a file names it. */
export type Entry = FeedToImport;

/** The file is not valid. The message says why. */
export class NotOpml extends Error {
  override readonly name = "NotOpml";
  /** The line at which the file is cut off. */
  readonly line: number | undefined;

  constructor(message: string, line?: number) {
    super(message);
    this.line = line;
  }
}
