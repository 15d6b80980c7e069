import { useEffect, useState } from "preact/hooks";
import type { ChangeSet, ChangeSetWithChanges } from "../../../client/src/index.ts";
import { client } from "../server/server.ts";

/** What the first sets changed, by id, as it becomes known. The server has to compute each, so there should be few. */
export function useDetails(sets: readonly ChangeSet[], count: number): ReadonlyMap<string, ChangeSetWithChanges> {
  const [details, setDetails] = useState<ReadonlyMap<string, ChangeSetWithChanges>>(new Map());
  useEffect(() => {
    let isCurrent = true;
    const read = async () => {
      for (const { id, endedAt } of sets.slice(0, count)) {
        if (!isCurrent) return;
        if (details.get(id)?.endedAt.getTime() === endedAt.getTime()) continue;
        const set = await client.changeSet(id);
        if (set !== undefined) setDetails((known) => new Map([...known, [id, set]]));
      }
    };
    // The list is complete without them.
    read().catch(() => {});
    return () => {
      isCurrent = false;
    };
  }, [sets]);
  return details;
}
