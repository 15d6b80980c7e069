/** A feed in an OPML file. */
export interface Entry {
  readonly feedUrl: string;
  readonly title: string | undefined;
}

/** The file is not valid OPML. The message says why. */
export class NotOpml extends Error {
  override readonly name = "NotOpml";
}
