import type { ImportResult } from "../imports.ts";
import { PLAIN } from "./media-type.ts";

/** The outcome of each feed, as the pieces of one document. Entry N is the outcome of feed N of the file. */
export async function* writeImported(imported: readonly ImportResult[], dryRun: boolean): AsyncGenerator<string> {
  const count = (wanted: ImportResult["outcome"]) => imported.filter(({ outcome }) => outcome === wanted).length;
  const meta = {
    dry_run: dryRun,
    counts: {
      found: imported.length,
      added: count("added"),
      already_subscribed: count("already-subscribed"),
      refused: count("refused"),
    },
  };
  yield `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"meta":${JSON.stringify(meta)},"data":[`;
  for (const [index, entry] of imported.entries()) yield (index === 0 ? "" : ",") + writeEntry(entry, index + 1);
  yield "]}";
}

function writeEntry({ feed, outcome, error, id }: ImportResult, number: number): string {
  return JSON.stringify({
    type: "import-entry",
    id: String(number),
    attributes: {
      feed_url: feed.feedUrl,
      title: feed.title ?? null,
      outcome,
      code: error?.code ?? null,
      detail: error?.detail ?? null,
      subscription_id: id ?? null,
    },
  });
}
