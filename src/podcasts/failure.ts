import type { FetchFailure, FetchFailureReason } from "./read/feed.ts";

/** Why a feed cannot be read. Stable: stored, and shown to users. */
export const FAILURE_CODES = [
  /** 404. */
  "not-found",
  /** 410. */
  "gone",
  /** 401 or 403. */
  "forbidden",
  /** 429. */
  "rate-limited",
  /** 5xx. */
  "server-error",
  /** A web page or another document. */
  "not-a-feed",
  "timed-out",
  "tls",
  /** The host name does not exist. */
  "unknown-host",
  /** The host does not respond, or refuses the connection. */
  "unreachable",
  /** The host has an address that is not public, and not in the allowed networks. */
  "private-address",
  "too-large",
  /** Redirects that go in circles or lead nowhere. */
  "redirect",
  /** A URL that cannot be fetched, a response that is not HTTP, or any other status. */
  "invalid",
  /** The process that fetches has failed, or an earlier version did not record the reason. */
  "unknown",
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

/** How a feed fails, as far as the server treats it differently. */
export type FailureKind = "gone" | "missing" | "forbidden" | "other";

const OF_REASON: Readonly<Record<Exclude<FetchFailureReason, "http-status">, FailureCode>> = {
  "bad-url": "invalid",
  "not-public": "private-address",
  dns: "unknown-host",
  unreachable: "unreachable",
  timeout: "timed-out",
  tls: "tls",
  "malformed-response": "invalid",
  "too-large": "too-large",
  "redirect-loop": "redirect",
  "bad-redirect": "redirect",
  "not-a-feed": "not-a-feed",
  aborted: "unknown",
  "worker-crashed": "unknown",
};

export function failureOf({ reason, status = 0 }: FetchFailure): FailureCode {
  return reason === "http-status" ? ofStatus(status) : OF_REASON[reason];
}

function ofStatus(status: number): FailureCode {
  if (status === 404) return "not-found";
  if (status === 410) return "gone";
  if (status === 401 || status === 403) return "forbidden";
  if (status === 429) return "rate-limited";
  return status >= 500 ? "server-error" : "invalid";
}

export function kindOf(failure: FailureCode): FailureKind {
  if (failure === "not-found" || failure === "unknown-host") return "missing";
  return failure === "gone" || failure === "forbidden" ? failure : "other";
}
