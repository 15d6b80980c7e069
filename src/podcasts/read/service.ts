import type { FetchFailureReason } from "./feed.ts";

/** A request to the API of another server, on behalf of a user who has an account there. */
export interface ServiceRequest {
  readonly url: string;
  readonly method?: "GET" | "POST" | "DELETE" | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
  /** Which members of objects in lists to read. */
  readonly members: readonly string[];
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export type ServiceOutcome = ServiceResponse | ServiceFailure;

export interface ServiceResponse {
  readonly kind: "response";
  readonly status: number;
  /** Where the response came from: only redirects within the host are followed. */
  readonly url: string;
  /** Where the response redirects to, which was not followed. */
  readonly redirect: string | undefined;
  /** The `sessionid` cookie that the server has set. */
  readonly session: string | undefined;
  /** The JSON document, with its lists empty; undefined if the body is not JSON. */
  readonly document: unknown;
  readonly bytes: number;
}

export interface ServiceFailure {
  readonly kind: "failed";
  readonly reason: FetchFailureReason;
}

/** An item of a list in the response: an object with the requested members, a text, a number or another value. */
export type ServiceItem = Readonly<Record<string, unknown>> | string | number | boolean | null;

export interface ServiceItems {
  /** Name of the list in the document; empty if the document is the list. */
  readonly list: string;
  readonly items: readonly ServiceItem[];
}

/** Calls APIs of other servers. */
export interface ServiceCaller {
  /** `onItems` gets the items of lists as they arrive; the response is not read on until it resolves. */
  call(
    request: ServiceRequest,
    onItems: (items: ServiceItems) => Promise<void>,
    signal: AbortSignal,
  ): Promise<ServiceOutcome>;
  close(): Promise<void>;
}
