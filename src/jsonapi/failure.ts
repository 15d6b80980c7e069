import { escapeControlCharacters } from "../control-characters.ts";
import type { MediaType } from "./media-type.ts";

/** A JSON:API error object, but for its status, which is a number until it is written. */
export interface ErrorObject {
  readonly id?: string;
  readonly status: number;
  readonly title: string;
  readonly detail?: string;
  readonly source?: { readonly pointer: string } | { readonly parameter: string } | { readonly header: string };
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** A fault of a whole request: thrown anywhere on its way, answered as an error document. */
export class RequestFailure extends Error {
  override readonly name = "RequestFailure";
  readonly error: ErrorObject;
  /** Headers that belong to the answer, such as `Allow`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(error: ErrorObject, headers: Readonly<Record<string, string>> = {}) {
    super(error.title);
    this.error = error;
    this.headers = headers;
  }
}

/** A fault of the document as a whole: 400, at `pointer` where one value is to blame. */
export function malformedDocument(detail: string, pointer?: string): RequestFailure {
  return new RequestFailure({
    status: 400,
    title: "Malformed Document",
    detail,
    ...(pointer === undefined ? {} : { source: { pointer } }),
  });
}

/** An error may repeat what the client sent, and people read errors in terminals: control characters are escaped. */
export function writeFailure(error: ErrorObject, media: MediaType): string {
  return escapeControlCharacters(JSON.stringify({ jsonapi: media.jsonapi, errors: [writeError(error)] }));
}

export function writeError(error: ErrorObject): object {
  return { ...error, status: String(error.status) };
}
