import { type BroughtIn, bringIn } from "../account-imports/bring-in.ts";
import { asUser } from "../accounts/caller.ts";
import { RequestFailure } from "../errors/catalog.ts";
import {
  belongingsOf,
  type ExportedItem,
  MAX_EXPORT_BYTES,
  readAccountExport,
} from "../http/api/documents/me-import.ts";
import { parseJson } from "../jsonapi/json.ts";
import { UserError } from "../util/user-error.ts";
import { accountOf, withAccounts } from "./accounts.ts";
import type { Terminal } from "./terminal.ts";

interface Choices {
  readonly dryRun: boolean;
  readonly asJson: boolean;
}

/** Adds what `earmark user export`, or `GET /v1/me/export` of any Earmark, has written. */
export async function importUser(terminal: Terminal, name: string, path: string, choices: Choices): Promise<void> {
  const items = readExport(path, await terminal.read(path, MAX_EXPORT_BYTES));
  await withAccounts(terminal, async (accounts, store) => {
    const { user } = await accountOf(terminal, accounts, name);
    const now = terminal.context.now();
    const progress = terminal.progress();
    const { dryRun } = choices;
    const result = await bringIn({ store }, asUser(user), belongingsOf(items, now), now, {
      dryRun,
      onProgress: (soFar) => progress.show(countDone(soFar), soFar.subscriptions.found + soFar.episode_actions.found),
    }).finally(() => progress.end());
    await reportImport(terminal, result, choices);
  });
}

function readExport(path: string, bytes: Buffer): ExportedItem[] {
  try {
    return readAccountExport(parseJson(bytes));
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error;
    const { detail, source } = error.error;
    const place = source !== undefined && "pointer" in source && source.pointer !== "" ? ` (${source.pointer})` : "";
    throw new UserError(`${path}${place}: ${detail} Nothing was imported.`);
  }
}

export function countDone({ subscriptions, episode_actions: actions }: BroughtIn): number {
  const feeds = subscriptions.added + subscriptions.already_subscribed + subscriptions.refused;
  return feeds + actions.added + actions.not_newer + actions.refused;
}

export async function reportImport(
  terminal: Terminal,
  { subscriptions, episode_actions: actions }: BroughtIn,
  { dryRun, asJson }: Choices,
): Promise<void> {
  if (asJson)
    await terminal.writeJson(`${JSON.stringify({ dry_run: dryRun, subscriptions, episode_actions: actions })}\n`);
  const added = dryRun ? "would be added" : "added";
  const feeds = `${subscriptions.added} of ${subscriptions.found} ${added}, ${subscriptions.already_subscribed} already subscribed, ${subscriptions.refused} rejected`;
  const episodes = `${actions.added} of ${actions.found} ${added}, ${actions.not_newer} not newer, ${actions.refused} rejected`;
  terminal.say(`Subscriptions: ${feeds}.`);
  terminal.say(`Episode actions: ${episodes}.`);
  if (dryRun) terminal.say("Dry run: nothing was changed.");
}
