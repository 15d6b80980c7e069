import type { AccountCounts, AccountImportProgress, AccountImports } from "../../client/src/account-imports.ts";
import { EarmarkError } from "../../client/src/index.ts";
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
import type { StagedProgress } from "./progress.ts";
import type { ListLocation } from "./subscription-list.ts";
import { PARTIAL_FAILURE, SUCCESS, withList } from "./subscriptions.ts";
import { pluralize, type Terminal, UsageError } from "./terminal.ts";

interface Choices {
  readonly dryRun: boolean;
  readonly asJson: boolean;
}

/** Adds what `earmark user export`, or `GET /v1/me/export` of any Earmark, has written. */
export async function importUser(terminal: Terminal, name: string, path: string, choices: Choices): Promise<number> {
  const items = readExport(path, await terminal.read(path, MAX_EXPORT_BYTES));
  return withAccounts(terminal, async (accounts, store) => {
    const { user } = await accountOf(terminal, accounts, name);
    const now = terminal.context.now();
    const progress = terminal.progress();
    const { dryRun } = choices;
    const result = await bringIn({ store }, asUser(user), await belongingsOf(items, now), now, {
      dryRun,
      onProgress: (soFar) => showProgress(progress, { stage: "writing", ...toCounts(soFar) }),
    }).finally(() => progress.end());
    return reportImport(terminal, toCounts(result), choices);
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

interface AccountToImport {
  /** Address of the other server. */
  readonly url: string;
  /** Name there. Without it, the person signs in to a Nextcloud server in the browser. */
  readonly user: string | undefined;
  readonly fromStdin: boolean;
}

/** Adds the subscriptions and episode actions of an account on another server. */
export async function importAccount(
  terminal: Terminal,
  location: ListLocation,
  { url, user, fromStdin }: AccountToImport,
  choices: Choices,
): Promise<number> {
  if (fromStdin && user === undefined)
    throw new UsageError("--password-stdin needs --user, the name on the other server");
  const password =
    user === undefined ? undefined : await terminal.existingPassword(`Password of ${user} at ${url}: `, fromStdin);
  const { dryRun } = choices;
  return withList(terminal, location, { mayCreate: !dryRun }, async ({ accountImports }) => {
    const source =
      user === undefined || password === undefined
        ? await signIn(terminal, accountImports, url)
        : { url, userName: user, password };
    const progress = terminal.progress();
    const onProgress = (soFar: AccountImportProgress) => showProgress(progress, soFar);
    const result = await accountImports.importAccount(source, { dryRun, onProgress }).finally(() => progress.end());
    return reportImport(terminal, result, choices);
  });
}

async function signIn(terminal: Terminal, imports: AccountImports, url: string) {
  const { loginUrl, login } = await imports.startLogin(url).catch((error: unknown) => {
    if (!(error instanceof EarmarkError) || error.code !== "import-no-sync-server") throw error;
    throw new UserError(
      `No Nextcloud server with GPodder Sync at ${url}. For another server, give your name there with --user.`,
    );
  });
  terminal.say(`Open this page and allow access: ${loginUrl}`);
  return { url, login };
}

const STAGES: Readonly<Record<AccountImportProgress["stage"], string>> = {
  "signing-in": "Signing in…",
  waiting: "Waiting until you allow access…",
  subscriptions: "Reading subscriptions…",
  "episode-actions": "Reading episode actions…",
  writing: "",
};

function showProgress(progress: StagedProgress, soFar: AccountImportProgress): void {
  const { stage, subscriptions, episodeActions } = soFar;
  if (stage === "writing") progress.show(countDone(soFar), subscriptions.found + episodeActions.found);
  else
    progress.note(
      `${STAGES[stage]} ${pluralize(subscriptions.found, "subscription")}, ${pluralize(episodeActions.found, "episode action")}`,
    );
}

function countDone({ subscriptions, episodeActions }: AccountCounts): number {
  const feeds = subscriptions.added + subscriptions.alreadySubscribed + subscriptions.refused;
  return feeds + episodeActions.added + episodeActions.notNewer + episodeActions.refused;
}

/** Prints the counts. The exit code is that of file imports. */
async function reportImport(
  terminal: Terminal,
  { subscriptions, episodeActions: actions }: AccountCounts,
  { dryRun, asJson }: Choices,
): Promise<number> {
  const { found, added, alreadySubscribed, refused } = subscriptions;
  if (asJson) {
    const feeds = { found, added, already_subscribed: alreadySubscribed, refused };
    const episodes = {
      found: actions.found,
      added: actions.added,
      not_newer: actions.notNewer,
      refused: actions.refused,
    };
    await terminal.writeJson(
      `${JSON.stringify({ dry_run: dryRun, subscriptions: feeds, episode_actions: episodes })}\n`,
    );
  }
  const verb = dryRun ? "would be added" : "added";
  terminal.say(
    `Subscriptions: ${added} of ${found} ${verb}, ${alreadySubscribed} already subscribed, ${refused} refused.`,
  );
  terminal.say(
    `Episode actions: ${actions.added} of ${actions.found} ${verb}, ${actions.notNewer} not newer, ${actions.refused} refused.`,
  );
  if (dryRun) terminal.say("Dry run: nothing was changed.");
  return refused === 0 ? SUCCESS : PARTIAL_FAILURE;
}

function toCounts({ subscriptions, episode_actions: actions }: BroughtIn): AccountCounts {
  const { found, added, already_subscribed: alreadySubscribed, refused } = subscriptions;
  return {
    subscriptions: { found, added, alreadySubscribed, refused },
    episodeActions: {
      found: actions.found,
      added: actions.added,
      notNewer: actions.not_newer,
      refused: actions.refused,
    },
  };
}
