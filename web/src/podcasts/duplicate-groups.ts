import { useEffect, useMemo } from "preact/hooks";
import type { Duplicate, Subscription } from "../../../client/src/index.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { client } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";

/** The list is compared again when it is shown, but not more often than this: the server reads all of it. */
const RELOAD_MS = 5 * 60_000;

/** Undefined until they have been loaded. */
const found = createState<readonly Duplicate[] | undefined>(undefined);
let loadedAt = Number.NEGATIVE_INFINITY;

export async function loadDuplicates(): Promise<void> {
  loadedAt = performance.now();
  try {
    found.set(await client.duplicates());
  } catch (error) {
    loadedAt = Number.NEGATIVE_INFINITY;
    throw error;
  }
}

/** Loads them for the list, which does without them if that fails. */
export function useDuplicateCheck(): void {
  useEffect(() => {
    if (performance.now() - loadedAt > RELOAD_MS) void loadDuplicates().catch(() => {});
  }, []);
}

export function forgetDuplicate(id: string): void {
  found.update((all) => all?.filter((group) => group.id !== id));
}

export interface DuplicateGroup extends Pick<Duplicate, "id" | "reason"> {
  readonly members: readonly Subscription[];
}

/** Groups with at least two members that are still in the list. Undefined until they have been loaded. */
export function useDuplicates(): readonly DuplicateGroup[] | undefined {
  const groups = useValue(found);
  const { items } = useValue(subscriptionList);
  return useMemo(() => {
    if (groups === undefined) return undefined;
    const byId = new Map(items.map((item) => [item.id, item]));
    return groups
      .map(({ id, reason, subscriptions }) => ({
        id,
        reason,
        members: subscriptions.flatMap((one) => byId.get(one) ?? []),
      }))
      .filter(({ members }) => members.length > 1);
  }, [groups, items]);
}
