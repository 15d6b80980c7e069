/** A feed as a file names it. */
export interface Entry {
  readonly feedUrl: string;
  readonly title: string | undefined;
}

/** The bytes are no OPML file that can be read, with the reason in words. */
export class NotOpml extends Error {
  override readonly name = "NotOpml";
}
