import type { Details } from "../details.ts";

/** A feed as a file names it. */
export interface Entry extends Details {
  readonly feedUrl: string;
}

/** The file is not valid OPML. The message says why. */
export class NotOpml extends Error {
  override readonly name = "NotOpml";
}
