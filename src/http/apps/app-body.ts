import { LONG_BYTES, readBody } from "../wire/body.ts";
import type { Parser } from "../wire/parser.ts";
import type { Call } from "../wire/router.ts";
import { APP_READERS, type AppDocument, type Items } from "./app-documents.ts";

/** Some apps upload their whole history in one request. */
export const MAX_ACTIONS_BYTES = 32 * 1024 * 1024;

/** Reads a document of an app and passes its items to `use`; long documents are parsed in a worker thread. */
export async function readAppDocument<Kind extends AppDocument, Result>(
  { request, response, caller, maxBytes }: Call<unknown>,
  parser: Parser,
  kind: Kind,
  use: (items: Items<Kind>) => Promise<Result>,
): Promise<Result> {
  const bytes = await readBody(request, response, maxBytes);
  if (bytes.length <= LONG_BYTES) {
    const items = APP_READERS[kind](bytes) as Items<Kind>;
    await caller.spend(items.length);
    return use(items);
  }
  const isConnected = () => !response.destroyed;
  return parser.parse({ kind, bytes }, request.owner, caller.spend, isConnected, (items) => use(items as Items<Kind>));
}
