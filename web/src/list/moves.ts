import { EarmarkError, type Operation, type Refusal, type Subscription } from "../../../client/src/index.ts";
import { client, isSameUser, noRetryClient } from "../server/server.ts";
import { explainCode } from "../ui/errors.ts";
import { getWords } from "../words/index.ts";
import { edit, refresh, refusals, subscriptionList, sync, updateRefusals } from "./subscription-list.ts";

const CHANGES_PER_PAGE = 1_000;

interface UrlChange {
  /** Another subscription that already has this feed. */
  readonly existing?: Subscription;
  /** Why the URL was not saved. */
  readonly problem?: string;
}

/** Gives a subscription a new feed URL. */
export async function changeFeedUrl(id: string, feedUrl: string): Promise<UrlChange> {
  const others = subscriptionList.value.items.filter((item) => item.id !== id);
  const existing = others.find((item) => item.feedUrl === feedUrl || item.formerFeedUrls?.includes(feedUrl));
  if (existing) return { existing };
  try {
    await edit([{ id, feedUrl }]);
  } catch {
    return { problem: getWords().podcasts.notSaved };
  }
  // Without a connection the edit is sent later. If the server then rejects it, the page says so.
  await sync().catch(() => {});
  const isOwn = ({ operation }: Refusal) =>
    operation.op === "update" && operation.id === id && operation.feedUrl === feedUrl;
  const error = refusals.value.find(isOwn)?.error;
  if (error === undefined) return {};
  void updateRefusals((all) => all.filter((each) => !isOwn(each)));
  const same = others.find((item) => item.id === error.meta?.["existing_id"]);
  return same ? { existing: same } : { problem: explainCode(error.code, error.detail ?? error.title) };
}

/** Merges a subscription into another one, which gets its URLs and play positions. */
export async function merge({ id }: Subscription, into: Subscription): Promise<void> {
  await apply([{ op: "remove", id, mergeInto: into.id }]);
}

/** Takes both subscriptions as they were before. */
export async function undoMerge(from: Subscription, into: Subscription): Promise<void> {
  const { title = null, folders = null } = into;
  await apply([
    { op: "update", id: into.id, title, folders, formerFeedUrls: null },
    { op: "add", id: from.id, feedUrl: from.feedUrl, title: from.title, folders: from.folders },
  ]);
}

/** Unlike edits, these wait for the server. */
async function apply(operations: readonly Operation[]): Promise<void> {
  // Someone else may have signed in: then the page is loaded again.
  if (!(await isSameUser())) return;
  await sync();
  const results = await noRetryClient.apply(operations);
  await refresh();
  for (const result of results) if (result.outcome === "refused") throw new EarmarkError(result.error);
}

const hasMoved = ({ formerFeedUrls = [] }: Subscription) => formerFeedUrls.length > 0;

/** Subscriptions with former URLs. Those that were changed last come first: when they moved is not known. */
export async function readMoved(): Promise<readonly Subscription[]> {
  if (!subscriptionList.value.items.some(hasMoved)) return [];
  const moved: Subscription[] = [];
  let state: string | undefined;
  for (;;) {
    const changes = await client.changes(state, { pageSize: CHANGES_PER_PAGE });
    moved.push(...changes.changed.filter(hasMoved));
    if (!changes.hasMore) return moved.reverse();
    state = changes.state;
  }
}
