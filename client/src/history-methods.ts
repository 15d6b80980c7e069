import { type ListPage, readAttributes, readDocument } from "./documents.ts";
import { fetchOne, fetchPage, pageQuery } from "./lists.ts";
import { type Send, sendResource } from "./requests.ts";
import type { ChangeSet, ChangeSetWithChanges, HistoryMethods, Skipped, SubscriptionChange, Undone } from "./types.ts";

interface ChangeSetResource {
  readonly id: string;
  readonly attributes: object & { readonly changes?: readonly ChangeMembers[] };
}
interface ChangeMembers {
  readonly before?: object;
  readonly after?: object;
}
interface UndoResource {
  readonly id: string;
  readonly attributes: Omit<Undone, "id" | "skipped"> & {
    readonly skipped: readonly { readonly subscription_id: string; readonly code: Skipped["code"] }[];
  };
}

const HISTORY = "/v1/history";
const DEFAULT_SIZE = 25;

function readChangeSet({ id, attributes }: ChangeSetResource): ChangeSet {
  return { id, ...readAttributes<Omit<ChangeSet, "id">>(attributes) };
}

function readChange({ before, after, ...change }: ChangeMembers): SubscriptionChange {
  return {
    ...readAttributes<SubscriptionChange>(change),
    ...(before && { before: readAttributes(before) }),
    ...(after && { after: readAttributes(after) }),
  };
}

function readWithChanges({ id, attributes: { changes = [], ...attributes } }: ChangeSetResource): ChangeSetWithChanges {
  return { ...readChangeSet({ id, attributes }), changes: changes.map(readChange) };
}

function readUndone({ data: { id, attributes } }: { readonly data: UndoResource }): Undone {
  const skipped = attributes.skipped.map(({ subscription_id, code }) => ({ id: subscription_id, code }));
  return { ...attributes, id, skipped };
}

export function createHistoryMethods(send: Send): HistoryMethods {
  return {
    async history({ number = 1, size = DEFAULT_SIZE, subscription, signal } = {}) {
      const filter = subscription === undefined ? "" : `&filter[subscription_id]=${encodeURIComponent(subscription)}`;
      const path = HISTORY + pageQuery(number, size) + filter;
      const { items, total, next }: ListPage<ChangeSet> = await fetchPage(send, path, readChangeSet, signal);
      return { items, total, number, size, hasNext: !!next };
    },

    async changeSet(id, options) {
      return fetchOne(send, HISTORY, id, readWithChanges, options);
    },

    async undo(id, { scope = "this", subscriptions, dryRun = false, signal } = {}) {
      const path = `${HISTORY}/${encodeURIComponent(id)}/undo${dryRun ? "?dryRun=true" : ""}`;
      const attributes = { scope, subscription_ids: subscriptions };
      // A retry could not report what the first attempt has undone.
      const { text } = await sendResource(send, path, "undo", attributes, { atMostOnce: !dryRun, signal });
      return readDocument(text, readUndone);
    },
  };
}
