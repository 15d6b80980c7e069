import { type ChangeSet, EarmarkError, type Skipped, type Undone } from "../../client/src/index.ts";
import { UserError } from "../util/user-error.ts";
import type { ListLocation, SubscriptionList } from "./subscription-list.ts";
import { withList } from "./subscriptions.ts";
import { pluralize, type Terminal } from "./terminal.ts";

const PAGE_SIZE = 100;

/** Lists who changed the list, newest first; or, with ids, what these change sets changed. */
export async function showHistory(
  terminal: Terminal,
  location: ListLocation,
  ids: readonly string[],
  asJson: boolean,
): Promise<void> {
  await withList(terminal, location, { mayCreate: false }, async (list) => {
    if (ids.length === 0) return listSets(terminal, list, asJson);
    for (const id of ids) await listChanges(terminal, list, id, asJson);
  });
}

async function listSets(terminal: Terminal, list: SubscriptionList, asJson: boolean): Promise<void> {
  let hasNext = true;
  for (let number = 1; hasNext; number += 1) {
    const page = await list.history({ number, size: PAGE_SIZE });
    for (const set of page.items) await terminal.writeRecord(asJson ? toRecord(set) : toRow(set), asJson);
    ({ hasNext } = page);
  }
}

function toRecord({ id, startedAt, endedAt, by, added, updated, removed, isLarge, isUndone }: ChangeSet) {
  const times = { started_at: startedAt.toISOString(), ended_at: endedAt.toISOString() };
  const marks = [isLarge ? "large" : [], isUndone ? "undone" : []].flat();
  return { id, ...times, by: by.kind, name: by.name, added, updated, removed, marks };
}

function toRow(set: ChangeSet) {
  const { id, ended_at, by, name, added, updated, removed, marks } = toRecord(set);
  return { id, ended_at, counts: `+${added} ~${updated} -${removed}`, by, name, marks: marks.join(", ") };
}

async function listChanges(terminal: Terminal, list: SubscriptionList, id: string, asJson: boolean): Promise<void> {
  const set = await list.changeSet(id);
  if (set === undefined) throw unknownSet(id);
  for (const { change, subscriptionId, feedUrl, title } of set.changes)
    await terminal.writeRecord({ change, id: subscriptionId, feed_url: feedUrl, title }, asJson);
  const all = set.added + set.updated + set.removed;
  if (set.changes.length < all) terminal.say(`${set.changes.length} of ${all} changes are shown.`);
}

function unknownSet(id: string): UserError {
  return new UserError(`There is no change set ${id}. See: earmark history`);
}

interface UndoOptions {
  readonly since: boolean;
  readonly dryRun: boolean;
  readonly isConfirmed: boolean;
}

/** Undoes a change set, or everything since before it. Says first what that does. */
export async function undo(
  terminal: Terminal,
  location: ListLocation,
  id: string,
  { since, dryRun, isConfirmed }: UndoOptions,
): Promise<number> {
  const scope = since ? "since" : "this";
  return withList(terminal, location, { mayCreate: false }, async (list) => {
    const preview = await list.undo(id, { scope, dryRun: true }).catch((error) => {
      throw error instanceof EarmarkError && error.code === "not-found" ? unknownSet(id) : error;
    });
    if (dryRun) {
      terminal.say(`Dry run: ${describe(preview, "would be ")}; nothing was changed.`);
      return reportSkipped(terminal, preview.skipped);
    }
    if (preview.restored + preview.removed + preview.reverted === 0) terminal.say("There is nothing left to undo.");
    else {
      await terminal.confirm(`Undo ${id}? ${describe(preview, "to be ")}.`, isConfirmed);
      const done = await list.undo(id, { scope });
      terminal.say(`${describe(done)}. To undo this: earmark undo ${done.id}`);
      return reportSkipped(terminal, done.skipped);
    }
    return reportSkipped(terminal, preview.skipped);
  });
}

function describe({ restored, removed, reverted, skipped }: Undone, verb = ""): string {
  const left = skipped.length === 0 ? "" : `, ${skipped.length} left alone`;
  return `${pluralize(restored, "subscription")} ${verb}restored, ${removed} removed, ${reverted} changed back${left}`;
}

const REASONS: Readonly<Record<Skipped["code"], string>> = {
  "changed-later": "was changed later",
  "already-subscribed": "is in the list again",
  "id-in-use": "its id belongs to another subscription now",
  "quota-exceeded": "the list is full",
  "already-removed": "was removed later",
  "not-found": "was removed later, or its old values are no longer recorded",
};

/** Returns the exit code. */
function reportSkipped(terminal: Terminal, skipped: readonly Skipped[]): number {
  for (const { id, code } of skipped) terminal.say(`${id}: left alone, ${REASONS[code]}`);
  return skipped.length === 0 ? 0 : 1;
}
