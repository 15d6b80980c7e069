import { countResults, type ImportResult } from "../imports.ts";
import type { WriteMeta } from "./changes.ts";
import { PLAIN } from "./media-type.ts";

/** What became of each feed, as the pieces of one document. Entry N stands for feed N of the file. */
export async function* writeImportResult(
  imported: readonly ImportResult[],
  dryRun: boolean,
  states: WriteMeta | undefined,
): AsyncGenerator<string> {
  const meta = {
    dry_run: dryRun,
    ...countResults(imported),
    ...states,
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
      line: feed.line ?? null,
      title: feed.title ?? null,
      folders: feed.folders ?? [],
      outcome,
      code: error?.code ?? null,
      detail: error?.detail ?? null,
      subscription_id: id ?? null,
    },
  });
}
