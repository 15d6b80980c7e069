import type { Link, Subscription } from "../../../client/src/index.ts";
import { client } from "../server/server.ts";
import { createState } from "../state/state.ts";

interface Shared {
  readonly links: readonly Link[];
  /** Ids of subscriptions that no link shares, because their feeds may be private. */
  readonly privateIds: ReadonlySet<string>;
}

/** Undefined until it is loaded. */
export const shared = createState<Shared | undefined>(undefined);

export async function loadShared(): Promise<readonly Link[]> {
  const links = await client.links();
  const hasLists = links.some(({ kind }) => kind === "list");
  const { privateSubscriptions } = hasLists ? await client.previewLink({ kind: "list" }) : { privateSubscriptions: [] };
  shared.set({ links, privateIds: new Set(privateSubscriptions) });
  return links;
}

/** Whether a secret link shows a subscription. */
export function isShared({ links, privateIds }: Shared, { id, folders = [] }: Subscription): boolean {
  if (privateIds.has(id)) return false;
  return links.some(({ kind, folder, except = [] }) => {
    if (kind !== "list" || except.includes(id)) return false;
    return folder == null || folders.some((path) => path === folder || path.startsWith(`${folder}/`));
  });
}
