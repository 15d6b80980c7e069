import { createError } from "../../../errors/catalog.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import { countResults, type ImportResult } from "../../../lists/imports.ts";
import type { StateMeta } from "./changes.ts";

/** The chunks of a document with the outcome of each feed. Entry N belongs to feed N in the file. */
export async function* writeImportResult(
  results: readonly ImportResult[],
  dryRun: boolean,
  states: StateMeta | undefined,
): AsyncGenerator<string> {
  const meta = {
    dry_run: dryRun,
    ...countResults(results),
    ...states,
  };
  yield `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"meta":${JSON.stringify(meta)},"data":[`;
  for (const [index, result] of results.entries()) yield (index === 0 ? "" : ",") + writeEntry(result, index + 1);
  yield "]}";
}

function writeEntry({ feed, outcome, reason, id }: ImportResult, number: number): string {
  const error = reason && createError(reason.code, { max: reason.max ?? 0 });
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
