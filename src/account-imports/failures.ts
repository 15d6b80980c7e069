/** A limit on what an import reads. */
export type ImportLimit = "response" | "bytes" | "requests" | "items" | "subscriptions" | "actions" | "time";

/** What the other server did wrong. */
export type ServerProblem =
  | { readonly kind: "status"; readonly status: number }
  /** It redirects to another server, at this address. */
  | { readonly kind: "redirect"; readonly address: string }
  /** Refused, timed out and unreachable are not told apart: users could map internal networks. */
  | { readonly kind: "no-response" }
  | { readonly kind: "certificate" }
  | { readonly kind: "malformed" }
  /** Its login is at another host. */
  | { readonly kind: "foreign-login"; readonly host: string };

/** Why an import has no result. The codes are those of errors. */
export type ImportFailure =
  | { readonly code: "import-url-invalid" | "import-address-private" | "import-no-sync-server" }
  | { readonly code: "import-sign-in-failed" | "import-login-expired" | "import-login-pending" }
  | { readonly code: "import-server-failed"; readonly problem: ServerProblem }
  | { readonly code: "import-too-large"; readonly limit: ImportLimit }
  | { readonly code: "import-running" | "too-many-imports" | "shutting-down" }
  | { readonly code: "rate-limited"; readonly waitMs: number }
  /** The client has disconnected. */
  | { readonly code: "aborted" };

/** Ends an import. Contains nothing that is secret. */
export class ImportFailed extends Error {
  override readonly name = "ImportFailed";
  readonly failure: ImportFailure;

  constructor(failure: ImportFailure) {
    super(failure.code);
    this.failure = failure;
  }
}

export function serverFailed(problem: ServerProblem): ImportFailed {
  return new ImportFailed({ code: "import-server-failed", problem });
}

export function tooLarge(limit: ImportLimit): ImportFailed {
  return new ImportFailed({ code: "import-too-large", limit });
}
