import type { FeedToImport } from "../lists/imports.ts";

/** One occurrence of a feed in a file. */
export type Entry = FeedToImport;

/** The file cannot be imported. The message says why. */
export class InvalidOpml extends Error {
  override readonly name = "InvalidOpml";
  /** Line on which the unfinished tag or comment starts, if the file is incomplete. */
  readonly line: number | undefined;

  constructor(message: string, line?: number) {
    super(message);
    this.line = line;
  }
}
