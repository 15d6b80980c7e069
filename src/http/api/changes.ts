import type { UserId } from "../../accounts/caller.ts";
import { failure } from "../../errors/catalog.ts";
import { changesSince, START } from "../../lists/changes.ts";
import type { SequenceRange, SubscriptionStore } from "../../lists/list-store.ts";
import { listRemovals } from "../../lists/removals.ts";
import { readState, stateAtSequence } from "../../lists/state.ts";
import { JSON_API } from "../wire/dialect.ts";
import type { Request, Response } from "../wire/exchange.ts";
import { respond, respondInPieces, respondUnchanged } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { type StateMeta, toStateMeta, writeChanges, writeRemovals } from "./documents/changes.ts";
import type { ChangesQuery } from "./queries.ts";
import type { Services } from "./services.ts";

/** `GET /v1/changes` */
export function createChangesHandler({ config: { basePath }, store }: Services) {
  const { epoch } = store;
  return async ({ response, caller: { user }, query }: Call<ChangesQuery>): Promise<void> => {
    const position = query.after === undefined ? START : readState(query.after, epoch, user);
    const page = position && (await changesSince(store, user, position, query.size));
    if (page === undefined) throw failure("state-expired", { source: { parameter: "page[after]" } });
    respond(response, 200, JSON_API, writeChanges(page, query, { epoch, user, basePath }));
  };
}

/** `GET /v1/removals` */
export function createRemovalsHandler({ store }: Services) {
  return async ({ request, response, caller, query }: Call<Pick<ChangesQuery, "size">>): Promise<void> => {
    const removals = await listRemovals(store, caller.user, query.size);
    const headers = { "content-type": JSON_API.contentType };
    await respondInPieces(request, response, writeRemovals(removals), headers);
  };
}

/** The `meta` of a response to a write. `written` is undefined if no change was valid. */
export async function resolveStateMeta(
  store: SubscriptionStore,
  user: UserId,
  written: SequenceRange | undefined,
): Promise<StateMeta> {
  if (written !== undefined) return toStateMeta(store.epoch, user, written);
  const [sequence = 0] = await store.sequences([user]);
  return toStateMeta(store.epoch, user, { sequenceBefore: sequence, sequence });
}

/** The ETag of everything that is a function of a user's list. */
export function etagOf(state: string): { readonly etag: string } {
  return { etag: `"${state}"` };
}

type Tag = ReturnType<typeof etagOf>;

/** Whether If-None-Match contains this tag. A proxy that compresses responses makes their tags weak. */
export function matchesEtag({ headers: { "if-none-match": sent = "" } }: Request, { etag }: Tag): boolean {
  return sent.split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));
}

/** Responds with 304, without reading the list, if the client's copy is current. Otherwise returns false. */
export async function respondIfUnchanged(
  request: Request,
  response: Response,
  store: SubscriptionStore,
  user: UserId,
): Promise<boolean> {
  if (request.headers["if-none-match"] === undefined) return false;
  const [sequence = 0] = await store.sequences([user]);
  const tag = etagOf(stateAtSequence(store.epoch, user, sequence));
  const isCurrent = matchesEtag(request, tag);
  if (isCurrent) respondUnchanged(response, tag);
  return isCurrent;
}
