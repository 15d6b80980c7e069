import { lookup } from "node:dns/promises";
import { createSecureContext } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";
import type {
  FeedOutcome,
  FeedRequest,
  FetcherOptions,
  FetchFailure,
  ImageOutcome,
  PageOutcome,
} from "../read/feed.ts";
import { fetchFeed, fetchImage, fetchPage } from "./fetch-feed.ts";
import { createAddressCheck } from "./public-address.ts";

/** The thread that fetches. DNS, TLS, decompression and parsing run here, to keep the main thread free. */

export type FetchJob =
  | { readonly kind: "feed"; readonly request: FeedRequest }
  | { readonly kind: "image"; readonly url: string; readonly feedUrl: string | undefined }
  | { readonly kind: "page"; readonly url: string };

/** Starts a job, or aborts it. */
export interface FetchCommand {
  readonly id: number;
  readonly job: FetchJob | undefined;
}

export type FetchOutcome = FeedOutcome | ImageOutcome | PageOutcome;

export interface FetchResult {
  readonly id: number;
  readonly outcome: FetchOutcome;
}

const { networks, userAgent, timeouts }: Required<FetcherOptions> = workerData;
const context = {
  connector: {
    resolve: (host: string) => lookup(host, { all: true }),
    isAllowed: createAddressCheck(networks),
    secureContext: createSecureContext(),
  },
  userAgent,
  timeouts,
};
const running = new Map<number, AbortController>();

parentPort?.on("message", ({ id, job }: FetchCommand) => {
  if (job === undefined) running.get(id)?.abort();
  else void run(id, job);
});

async function run(id: number, job: FetchJob): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  const outcome = await fetchJob(job, controller.signal).catch(
    (): FetchFailure => ({ kind: "failed", reason: "worker-crashed" }),
  );
  running.delete(id);
  const bytes = outcome.kind === "image" ? [outcome.bytes.buffer as ArrayBuffer] : [];
  parentPort?.postMessage({ id, outcome } satisfies FetchResult, bytes);
}

function fetchJob(job: FetchJob, signal: AbortSignal): Promise<FetchOutcome> {
  if (job.kind === "feed") return fetchFeed(context, job.request, signal);
  if (job.kind === "page") return fetchPage(context, job.url, signal);
  return fetchImage(context, job.url, job.feedUrl, signal);
}
