import { type Account, isValidAt } from "../accounts/account-store.ts";
import { Accounts } from "../accounts/accounts.ts";
import { asUser } from "../accounts/caller.ts";
import { CREDENTIAL_KINDS } from "../accounts/credential-kinds.ts";
import { readName } from "../accounts/names.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "../accounts/refusals.ts";
import { AppSync } from "../apps/sync.ts";
import { validateLabel } from "../http/api/documents/accounts.ts";
import { writeAccountExport } from "../http/api/documents/export.ts";
import { isUuidLike } from "../jsonapi/document.ts";
import { changeSetBatches } from "../lists/history-store.ts";
import { subscriptionBatches } from "../lists/list-store.ts";
import type { Store } from "../store/shared/contract.ts";
import { displayNameOf } from "../store/shared/options.ts";
import { UserError } from "../util/user-error.ts";
import { openDatabase } from "./database.ts";
import { pluralize, type Terminal } from "./terminal.ts";

export const DAY_MS = 24 * 60 * 60 * 1_000;
const MAX_DAYS = 3_650;

export async function addUser(terminal: Terminal, name: string, fromStdin: boolean): Promise<void> {
  const password = await terminal.password(fromStdin);
  await withAccounts(
    terminal,
    async (accounts) => {
      const created = await accounts.create(name, password, terminal.context.now());
      if (isAccountRefusal(created)) throw new UserError(describeRefusal(created));
      terminal.say(`Created account "${readName(name)}". Start the server with EARMARK_ACCOUNTS=true to use it.`);
    },
    { mayCreate: true },
  );
}

export async function changePassword(
  terminal: Terminal,
  name: string,
  { fromStdin, revokesTokens }: { fromStdin: boolean; revokesTokens: boolean },
): Promise<void> {
  // Fails before the user types a password.
  await withAccounts(terminal, async (accounts) => requirePassword(await accountOf(terminal, accounts, name)));
  const password = await terminal.password(fromStdin);
  await withAccounts(terminal, async (accounts) => {
    const account = await accountOf(terminal, accounts, name);
    requirePassword(account);
    const refusal = await accounts.setPassword(account, password, terminal.context.now(), revokesTokens);
    if (refusal !== undefined) throw new UserError(describeRefusal(refusal));
    const tokens = revokesTokens ? "All tokens were revoked." : "Tokens remain valid.";
    terminal.say(`Changed the password of "${name}" and ended all sessions. ${tokens}`);
  });
}

function requirePassword({ name, issuer }: Account): void {
  if (issuer !== "") throw new UserError(`"${name}" signs in through ${issuer} and has no password.`);
}

export async function deleteUser(terminal: Terminal, name: string, isConfirmed: boolean): Promise<void> {
  const total = await withAccounts(terminal, async (accounts, store) => {
    const { user } = await accountOf(terminal, accounts, name);
    return (await store.page(user, { offset: 0, size: 1 })).total;
  });
  const question = `Delete "${name}" with ${pluralize(total, "subscription")}, all tokens and sessions? This cannot be undone.`;
  await terminal.confirm(question, isConfirmed);
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    const refusal = await accounts.delete(asUser(user), terminal.context.now());
    if (refusal !== undefined) throw new UserError(describeRefusal(refusal));
    terminal.say(`Deleted account "${name}" and all its data.`);
  });
}

export async function exportUser(terminal: Terminal, name: string): Promise<void> {
  await withAccounts(terminal, async (accounts, store) => {
    const account = await accountOf(terminal, accounts, name);
    const credentials = [
      ...(await accounts.store.listCredentials(account.user, "token")),
      ...(await accounts.store.listCredentials(account.user, "session")),
    ].filter((credential) => isValidAt(credential, terminal.context.now()));
    const apps = new AppSync(store);
    const everything = {
      account: { ...account, followsMoves: await store.apps.followsMoves(account.user) },
      credentials,
      devices: await store.apps.devices(account.user),
      dismissals: await store.duplicates.dismissals(account.user),
      links: await store.links.list(account.user),
      actionPages: apps.everyAction(account.user),
      changeSetPages: changeSetBatches(store.history, account.user),
      readSubscriptionCount: async () => (await store.page(account.user, { offset: 0, size: 1 })).total,
      subscriptionPages: subscriptionBatches(store, account.user),
    };
    const { basePath } = terminal.context.config();
    for await (const piece of writeAccountExport(everything, basePath)) await terminal.writeJson(piece);
  });
}

export async function createToken(
  terminal: Terminal,
  name: string,
  { label, readOnly, days }: { label: string | undefined; readOnly: boolean; days: string | undefined },
): Promise<void> {
  const problem = validateLabel(label ?? "");
  if (label === undefined || problem !== undefined)
    throw new UserError(`--label ${label === undefined ? "is required; use the name of the app" : problem}.`);
  const lifetimeDays = readDays(days);
  const expiresAt =
    lifetimeDays === undefined ? undefined : new Date(terminal.context.now().getTime() + lifetimeDays * DAY_MS);
  await withAccounts(terminal, async (accounts) => {
    const { user, disabledAt } = await accountOf(terminal, accounts, name);
    if (disabledAt !== undefined) throw new UserError(describeRefusal(refuse({ reason: "disabled" })));
    const issued = await accounts.createToken(
      asUser(user),
      { label, scope: readOnly ? "read" : "write", expiresAt },
      terminal.context.now(),
    );
    const full = `"${name}" already has the maximum of ${CREDENTIAL_KINDS.token.max} tokens. Revoke one that is no longer used: earmark token revoke ${name} ID`;
    if (isAccountRefusal(issued)) throw new UserError(describeRefusal(issued, full));
    terminal.say("Copy the token now; it is not shown again:");
    await terminal.write(`${issued.secret}\n`);
  });
}

export async function listTokens(terminal: Terminal, name: string, asJson: boolean): Promise<void> {
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    for (const token of await accounts.store.listCredentials(user, "token")) {
      const { id, label, scope } = token;
      const [used, expires] = [token.usedAt?.toISOString() ?? null, token.expiresAt?.toISOString() ?? null];
      const state = isValidAt(token, terminal.context.now()) ? "valid" : "expired";
      await terminal.writeRecord({ id, scope, state, last_used_at: used, expires_at: expires, label }, asJson);
    }
  });
}

export async function revokeToken(terminal: Terminal, name: string, id: string): Promise<void> {
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    const now = terminal.context.now();
    if (!isUuidLike(id) || !(await accounts.removeCredential(asUser(user), "token", id.toLowerCase(), now)))
      throw new UserError(`"${name}" has no token with id ${id}. See: earmark token list ${name}`);
    terminal.say("Token revoked.");
  });
}

export async function withAccounts<T>(
  terminal: Terminal,
  work: (accounts: Accounts, store: Store) => Promise<T>,
  { mayCreate } = { mayCreate: false },
): Promise<T> {
  const store = await openDatabase(terminal, { connections: 1, mayCreate });
  try {
    return await work(new Accounts(store.accounts, { signUp: false }), store);
  } finally {
    await store.close();
  }
}

export async function accountOf(terminal: Terminal, accounts: Accounts, name: string): Promise<Account> {
  const config = terminal.context.config();
  const account = await accounts.findByName(name, config.accounts?.oidc?.issuer);
  if (account !== undefined) return account;
  throw new UserError(`No account "${name}" in ${displayNameOf(config.databaseUrl)}. See: earmark user list`);
}

export function readDays(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const days = /^\d+$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > MAX_DAYS) throw new UserError(`--days must be a whole number from 1 to ${MAX_DAYS}.`);
  return days;
}

/** `full`: the message if a limit is reached. */
export function describeRefusal(refusal: AccountRefusal, full = "A limit is reached."): string {
  if (refusal.reason === "invalid") return `${refusal.detail}.`;
  const texts: Partial<Record<AccountRefusal["reason"], string>> = {
    "name-taken": "An account with this name already exists.",
    full,
    disabled: "The account is disabled. Enable it first: earmark user enable NAME",
    "no-password": "The account has no password: an identity provider or a reverse proxy signs the user in.",
    "last-admin":
      "The account is the only administrator. Make another one an administrator first: earmark user admin NAME",
  };
  return texts[refusal.reason] ?? "The account has been deleted.";
}
