import type { ErrorObject } from "../errors/catalog.ts";
import { escapeControlCharacters } from "../util/control-characters.ts";
import type { MediaType } from "./media-type.ts";

/** An error may repeat what the client sent, and people read errors in terminals: control characters are escaped. */
export function writeFailure(error: ErrorObject, media: MediaType): string {
  return escapeControlCharacters(JSON.stringify({ jsonapi: media.jsonapi, errors: [toJsonError(error)] }));
}

export function toJsonError(error: ErrorObject): object {
  return { ...error, status: String(error.status) };
}
