export const JSON_API = "application/vnd.api+json";
const ATOMIC_URI = "https://jsonapi.org/ext/atomic";

/** The JSON:API media type, with or without the atomic extension. */
export interface MediaType {
  /** The exact Content-Type of every response, errors included. */
  readonly contentType: string;
  /** The top-level `jsonapi` member of every document. */
  readonly jsonapi: { readonly version: "1.1"; readonly ext?: readonly string[] };
  readonly extensions: readonly string[];
}

export const PLAIN: MediaType = {
  contentType: JSON_API,
  jsonapi: { version: "1.1" },
  extensions: [],
};

export const ATOMIC: MediaType = {
  contentType: `${JSON_API};ext="${ATOMIC_URI}"`,
  jsonapi: { version: "1.1", ext: [ATOMIC_URI] },
  extensions: [ATOMIC_URI],
};
