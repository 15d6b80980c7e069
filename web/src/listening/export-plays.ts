import { writeCell } from "../ui/csv.ts";
import { isFinished, type Play } from "./plays.ts";

/** A play as it is exported. Names are those of the API where it has them. */
function toRow(play: Play, podcastTitle: string) {
  return {
    podcast: podcastTitle,
    feed_url: play.feedUrl,
    title: play.title ?? null,
    media_url: play.mediaUrl,
    published_at: play.publishedAt?.toISOString() ?? null,
    acted_at: play.playedAt.toISOString(),
    device: play.device ?? null,
    position: play.position,
    total: play.total ?? null,
    finished: isFinished(play),
  };
}

type TitleOf = (play: Play) => string;

/** Starts with a byte order mark, which tells spreadsheets that the file is UTF-8. */
export function writeCsv(plays: readonly Play[], titleOf: TitleOf): string {
  const rows = plays.map((play) => toRow(play, titleOf(play)));
  const head = Object.keys(rows[0] ?? {});
  const lines = [head, ...rows.map((row) => Object.values(row).map((value) => String(value ?? "")))];
  return `\ufeff${lines.map((cells) => cells.map(writeCell).join(",")).join("\r\n")}\r\n`;
}

export function writeJson(plays: readonly Play[], titleOf: TitleOf): string {
  return `${JSON.stringify({ plays: plays.map((play) => toRow(play, titleOf(play))) }, null, 2)}\n`;
}
