import { Fetcher } from "../../src/podcasts/fetch/fetcher.ts";

/** The process that is measured while it fetches feeds. */

export interface FetchTask {
  readonly url: string;
  readonly feeds: number;
  /** Feeds at a time. */
  readonly concurrency: number;
}

const fetcher = new Fetcher({ networks: ["127.0.0.0/8"], userAgent: "Earmark" });
process.on("message", async ({ url, feeds, concurrency }: FetchTask) => {
  let [left, read] = [feeds, 0];
  const work = async () => {
    while (left > 0) {
      left -= 1;
      const outcome = await fetcher.fetchFeed({ url });
      if (outcome.kind === "read" && outcome.metadata.title === "Title") read += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  process.send?.(read);
});
process.on("disconnect", () => void fetcher.close());
process.send?.("ready");
