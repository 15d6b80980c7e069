import type { UserId } from "../../accounts/caller.ts";
import {
  type ActionKind,
  EXTRA_EVICTED,
  type KeyedAction,
  MAX_ACTIONS,
  mergeActions,
  type StoredAction,
} from "../../apps/episode-actions.ts";
import type { Progress } from "../../apps/marks.ts";
import { actionKeys, splitActionKey } from "../shared/keys.ts";
import type { Statements } from "./statements.ts";

export const ACTIONS = `select sequence, podcast, media_url, guid, device, kind, position, started, total, acted_at,
    beaten_at, beaten_position from episode_actions`;
const ACTION = `${ACTIONS} where user_id = ? and feed = unhex(?) and episode = unhex(?) and kind = ?`;
const INSERT = `insert into episode_actions (user_id, sequence, feed, episode, kind, podcast, media_url, guid, device,
    position, started, total, acted_at, beaten_at, beaten_position)
  values (?, ?, unhex(?), unhex(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (user_id, feed, episode, kind) do nothing`;
/** Stored if a number of seconds is unknown. */
const NONE = -1;

export type ActionRow = [
  ...[sequence: number, podcast: string, mediaUrl: string, guid: string, device: string, kind: ActionKind],
  ...[position: number, started: number, total: number, actedAt: number, beatenAt: number, beatenPosition: number],
];

export function toAction(row: ActionRow): StoredAction {
  const [sequence, podcast, episode, guid, device, kind, position, started, total, actedAt, beatenAt, beatenPosition] =
    row;
  const known = (seconds: number) => (seconds === NONE ? undefined : seconds);
  return {
    ...{ sequence, podcast, episode, kind, actedAt: new Date(actedAt) },
    ...{ guid: guid || undefined, device: device || undefined },
    ...{ position: known(position), started: known(started), total: known(total) },
    superseded: beatenAt === NONE ? undefined : { actedAt: new Date(beatenAt), position: known(beatenPosition) },
  };
}

export function lastActionSequence(statements: Statements, user: UserId): number {
  return statements.get<[number | null]>("select max(sequence) from episode_actions where user_id = ?", user)?.[0] ?? 0;
}

/** Stores uploaded actions inside the transaction of the writer thread. */
export function addActions(statements: Statements, user: UserId, actions: readonly KeyedAction[]): Progress {
  const before = lastActionSequence(statements, user);
  const keys = actionKeys(actions);
  // A long upload usually has only new actions, so stored actions are looked up only after an insert conflicts with one.
  let merged = mergeActions(actions, keys, new Map(), before);
  if (!insertActions(statements, user, merged.written)) {
    statements.run("delete from episode_actions where user_id = ? and sequence > ?", user, before);
    merged = mergeActions(actions, keys, findActions(statements, user, keys), before);
    for (const sequence of merged.replaced)
      statements.run("delete from episode_actions where user_id = ? and sequence = ?", user, sequence);
    insertActions(statements, user, merged.written);
  }
  if (merged.written.size > 0) evictActions(statements, user, merged.last);
  // The client must be sent the position that won.
  return { kind: "upload", before, after: merged.hasSupersededPlays ? before : merged.last };
}

/** Returns false at the first action whose key is stored. */
function insertActions(statements: Statements, user: UserId, byKey: ReadonlyMap<string, StoredAction>): boolean {
  for (const [key, action] of byKey) if (!insertAction(statements, user, key, action)) return false;
  return true;
}

function insertAction(statements: Statements, user: UserId, key: string, action: StoredAction): boolean {
  const { feed, episode, kind } = splitActionKey(key);
  const { superseded } = action;
  const inserted = statements.run(
    INSERT,
    user,
    action.sequence,
    feed,
    episode,
    kind,
    action.podcast,
    action.episode,
    action.guid ?? "",
    action.device ?? "",
    action.position ?? NONE,
    action.started ?? NONE,
    action.total ?? NONE,
    action.actedAt.getTime(),
    superseded?.actedAt.getTime() ?? NONE,
    superseded?.position ?? NONE,
  );
  return inserted === 1;
}

/** The stored actions of these keys. */
function findActions(statements: Statements, user: UserId, keys: readonly string[]): Map<string, StoredAction> {
  const found = new Map<string, StoredAction>();
  for (const key of keys) {
    const { feed, episode, kind } = splitActionKey(key);
    const row = statements.get<ActionRow>(ACTION, user, feed, episode, kind);
    if (row !== undefined) found.set(key, toAction(row));
  }
  return found;
}

/** Counts only if there can be too many, because counting is slow. */
function evictActions(statements: Statements, user: UserId, last: number): void {
  const find = (what: string) =>
    statements.get<[number]>(`select ${what} from episode_actions where user_id = ?`, user)?.[0] ?? 0;
  if (last - find("min(sequence)") < MAX_ACTIONS) return;
  const count = find("count(*)");
  if (count <= MAX_ACTIONS) return;
  statements.run(
    `delete from episode_actions where user_id = ?1 and sequence in (
       select sequence from episode_actions where user_id = ?1 order by kind = 'play', sequence limit ?2)`,
    user,
    count - MAX_ACTIONS + EXTRA_EVICTED,
  );
}
