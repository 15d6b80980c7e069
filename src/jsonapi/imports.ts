import type { Imported } from "../imports.ts";
import { PLAIN } from "./media-type.ts";

/** Entries may be some kilobytes long. */
const AT_A_TIME = 50;

/** What became of each feed, as the pieces of one document. Entry N stands for feed N of the file. */
export async function* writeImported(imported: readonly Imported[], dryRun: boolean): AsyncGenerator<string> {
  const count = (wanted: Imported["outcome"]) => imported.filter(({ outcome }) => outcome === wanted).length;
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
  for (let start = 0; start < imported.length; start += AT_A_TIME) {
    const some = imported.slice(start, start + AT_A_TIME);
    yield (start === 0 ? "" : ",") + some.map((entry, index) => writeEntry(entry, start + index + 1)).join(",");
  }
  yield "]}";
}

function writeEntry({ wanted, outcome, detail, id }: Imported, number: number): string {
  return JSON.stringify({
    type: "import-entry",
    id: String(number),
    attributes: {
      feed_url: wanted.feedUrl,
      title: wanted.title ?? null,
      outcome,
      detail: detail ?? null,
      subscription_id: id ?? null,
    },
  });
}
