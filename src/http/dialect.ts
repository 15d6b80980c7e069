import type { ErrorObject } from "../errors.ts";
import { writeFailure } from "../jsonapi/failure.ts";
import { ATOMIC, type MediaType, PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../jsonapi/negotiation.ts";

/** How the documents of an API look on the wire. */
export interface Dialect {
  readonly contentType: string;
  readonly writeError: (error: ErrorObject) => string;
  /** Throws unless the header allows a response in this dialect. */
  readonly requireAccept: (header: string | undefined) => void;
  /** Throws unless a body of this Content-Type can be read. */
  readonly requireContentType: (header: string | undefined) => void;
}

function createDialect(media: MediaType): Dialect {
  return {
    contentType: media.contentType,
    writeError: (error) => writeFailure(error, media),
    requireAccept: (header) => requireAccept(header, media),
    requireContentType: (header) => requireContentType(header, media),
  };
}

export const JSON_API = createDialect(PLAIN);
/** JSON:API with the Atomic Operations extension. */
export const JSON_API_ATOMIC = createDialect(ATOMIC);
