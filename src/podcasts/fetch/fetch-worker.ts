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
import type { ServiceItems, ServiceOutcome, ServiceRequest } from "../read/service.ts";
import { callService } from "./call-service.ts";
import { fetchFeed, fetchImage, fetchPage } from "./fetch-feed.ts";
import { createAddressCheck } from "./public-address.ts";

/** The thread that fetches. DNS, TLS, decompression and parsing run here, to keep the main thread free. */

export type FetchJob =
  | { readonly kind: "feed"; readonly request: FeedRequest }
  | { readonly kind: "image"; readonly url: string; readonly feedUrl: string | undefined }
  | { readonly kind: "page"; readonly url: string }
  | { readonly kind: "service"; readonly request: ServiceRequest };

/** Starts a job, aborts it, or has taken the items that it has found so far. */
export interface FetchCommand {
  readonly id: number;
  readonly job: FetchJob | "abort" | "continue";
}

export type FetchOutcome = FeedOutcome | ImageOutcome | PageOutcome | ServiceOutcome;

/** The outcome of a job, or items that it has found: it waits until they have been taken. */
export type FetchResult = { readonly id: number } & (
  | { readonly outcome: FetchOutcome }
  | { readonly items: ServiceItems }
);

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
/** Jobs whose items have not been taken. */
const waiting = new Map<number, () => void>();

parentPort?.on("message", ({ id, job }: FetchCommand) => {
  if (job === "abort") running.get(id)?.abort();
  else if (job === "continue") waiting.get(id)?.();
  else void run(id, job);
});

async function run(id: number, job: FetchJob): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  const outcome = await fetchJob(id, job, controller.signal).catch(
    (): FetchFailure => ({ kind: "failed", reason: "worker-crashed" }),
  );
  running.delete(id);
  waiting.delete(id);
  const bytes = outcome.kind === "image" ? [outcome.bytes.buffer as ArrayBuffer] : [];
  parentPort?.postMessage({ id, outcome } satisfies FetchResult, bytes);
}

function fetchJob(id: number, job: FetchJob, signal: AbortSignal): Promise<FetchOutcome> {
  if (job.kind === "service") return callService(context, job.request, (items) => handOver(id, items), signal);
  if (job.kind === "feed") return fetchFeed(context, job.request, signal);
  if (job.kind === "page") return fetchPage(context, job.url, signal);
  return fetchImage(context, job.url, job.feedUrl, signal);
}

/** Resolves when the items have been taken, so that they do not fill the memory of the main thread. */
function handOver(id: number, items: ServiceItems): Promise<void> {
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    parentPort?.postMessage({ id, items } satisfies FetchResult);
  });
}
