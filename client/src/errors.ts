export interface ErrorObject {
  readonly status: number;
  readonly title: string;
  readonly detail?: string | undefined;
  readonly id?: string | undefined;
  readonly source?: { readonly pointer?: string; readonly parameter?: string; readonly header?: string } | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** The server rejected a request, or sent a response that the client cannot read. */
export class EarmarkError extends Error {
  override readonly name = "EarmarkError";
  declare readonly status: number;
  declare readonly title: string;
  declare readonly detail: string | undefined;
  /** Every error in the response; empty if the response is not from Earmark. */
  declare readonly errors: readonly ErrorObject[];
  /** Seconds to wait before a retry, if the server said so. */
  declare readonly retryAfter: number | undefined;

  constructor({ status, title, detail }: ErrorObject, errors: readonly ErrorObject[] = [], retryAfter?: number) {
    super(`${status} ${title}${detail ? `: ${detail}` : ""}`);
    Object.assign(this, { status, title, detail, errors, retryAfter });
  }
}

/** The server is unreachable, or the connection was lost before the response was complete. `cause` is `fetch`'s error. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  constructor(cause: unknown) {
    super("The server is unreachable, or the connection was lost.", { cause });
  }
}

/** The server sent something that no Earmark server sends. */
export function invalidResponse(title: string): EarmarkError {
  return new EarmarkError({ status: 200, title });
}
