import type { Details } from "../details.ts";

/** A feed as a file names it. */
export interface Entry extends Details {
  readonly feedUrl: string;
}

/** The bytes are no OPML file that can be read, with the reason in words. */
export class NotOpml extends Error {
  override readonly name = "NotOpml";
}
