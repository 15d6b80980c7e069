import { EarmarkError, type Subscription } from "../../client/src/index.ts";
import type { ListLocation, SubscriptionList } from "./subscription-list.ts";
import { withList } from "./subscriptions.ts";
import { pluralize, type Terminal } from "./terminal.ts";

type Items = ReadonlyMap<string, Subscription>;

/** Prints each change to the list until the process is asked to stop. */
export async function watch(terminal: Terminal, location: ListLocation, asJson: boolean): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  void terminal.context.stopRequested().then(() => stop.abort());
  return withList(terminal, location, { mayCreate: false }, async (list) => {
    try {
      let { state, items } = await readChanges(list, undefined, new Map(), signal);
      terminal.say(`Watching ${pluralize(items.size, "subscription")}. Press Ctrl-C to stop.`);
      for await (const current of list.events({ signal })) {
        if (current === state) continue;
        const next = await readChanges(list, state, items, signal);
        await print(terminal, items, next.items, asJson);
        ({ state, items } = next);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  });
}

/** Applies the changes since state `from` to the items. Returns the new items and their state. */
async function readChanges(
  list: SubscriptionList,
  from: string | undefined,
  known: Items,
  signal: AbortSignal,
): Promise<{ readonly state: string; readonly items: Items }> {
  const items = new Map(known);
  try {
    for (let state = from; ; ) {
      const changes = await list.changes(state, { signal });
      for (const id of changes.removed) items.delete(id);
      for (const item of changes.changed) items.set(item.id, item);
      state = changes.state;
      if (!changes.hasMore) return { state, items };
    }
  } catch (error) {
    // A backup was restored, for example.
    const isExpired = error instanceof EarmarkError && error.code === "state-expired";
    if (!isExpired || from === undefined) throw error;
    return readChanges(list, undefined, new Map(), signal);
  }
}

async function print(terminal: Terminal, before: Items, after: Items, asJson: boolean): Promise<void> {
  const line = ({ id, feedUrl, title, folders = [] }: Subscription, change: string) => {
    const shown = { change, id, feed_url: feedUrl, title: title ?? null };
    return terminal.writeRecord(asJson ? { ...shown, folders } : shown, asJson);
  };
  for (const [id, item] of before) if (!after.has(id)) await line(item, "removed");
  for (const [id, item] of after) {
    const known = before.get(id);
    if (known === undefined) await line(item, "added");
    else if (JSON.stringify(known) !== JSON.stringify(item)) await line(item, "updated");
  }
}
