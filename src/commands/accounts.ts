import { type Account, isAlive, type Store } from "../account-store.ts";
import { type AccountRefusal, Accounts, INVITATION_DAYS, isRefused, readName } from "../accounts.ts";
import { faultOfLabel, writeEverything } from "../jsonapi/accounts.ts";
import { openStore } from "../store/engines.ts";
import { nameOf } from "../store/store-options.ts";
import { asUser, everySubscription } from "../subscriptions.ts";
import { UserError } from "../user-error.ts";
import type { Terminal } from "./terminal.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const MAX_DAYS = 3_650;
const LISTED_AT_A_TIME = 500;

export async function addUser(terminal: Terminal, name: string, fromInput: boolean): Promise<void> {
  const password = await terminal.password(fromInput);
  await withAccounts(terminal, async (accounts) => {
    const made = await accounts.create(name, password, terminal.world.now());
    if (isRefused(made)) throw new UserError(explain(made));
    terminal.say(`"${readName(name)}" can sign in, wherever the server runs with EARMARK_ACCOUNTS=on.`);
  });
}

export async function listUsers(terminal: Terminal, asJson: boolean): Promise<void> {
  await withAccounts(terminal, async (accounts, store) => {
    for (let after = 0; ; ) {
      const some = await accounts.list(after, LISTED_AT_A_TIME);
      for (const { user, name, issuer, createdAt } of some) {
        const { total } = await store.page(user, { offset: 0, size: 1 });
        const created_at = createdAt.toISOString();
        await terminal.line({ name, created_at, subscriptions: total, issuer: issuer === "" ? null : issuer }, asJson);
      }
      if (some.length < LISTED_AT_A_TIME) return;
      after = some.at(-1)?.user ?? after;
    }
  });
}

export async function changePassword(terminal: Terminal, name: string, fromInput: boolean): Promise<void> {
  // Whether there is such an account is said before anything is asked.
  await withAccounts(terminal, async (accounts) => requirePassword(await accountOf(terminal, accounts, name)));
  const password = await terminal.password(fromInput);
  await withAccounts(terminal, async (accounts) => {
    const account = await accountOf(terminal, accounts, name);
    requirePassword(account);
    const refused = await accounts.setPassword(account, password, terminal.world.now());
    if (refused !== undefined) throw new UserError(explain(refused));
    terminal.say(`The password of "${name}" is changed, and every session has ended. Tokens of apps go on working.`);
  });
}

function requirePassword({ name, issuer }: Account): void {
  if (issuer !== "") throw new UserError(`"${name}" signs in with ${issuer}: there is no password here.`);
}

export async function deleteUser(terminal: Terminal, name: string, isSaid: boolean): Promise<void> {
  const total = await withAccounts(terminal, async (accounts, store) => {
    const { user } = await accountOf(terminal, accounts, name);
    return (await store.page(user, { offset: 0, size: 1 })).total;
  });
  const question = `Delete "${name}" with ${total} subscriptions, all tokens and sessions? It cannot be undone.`;
  await terminal.confirm(question, isSaid);
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    await accounts.delete(asUser(user), terminal.world.now());
    terminal.say(`"${name}" is deleted, with everything.`);
  });
}

export async function exportUser(terminal: Terminal, name: string): Promise<void> {
  await withAccounts(terminal, async (accounts, store) => {
    const account = await accountOf(terminal, accounts, name);
    const credentials = [
      ...(await accounts.listCredentials(account.user, "token")),
      ...(await accounts.listCredentials(account.user, "session")),
    ].filter((credential) => isAlive(credential, terminal.world.now()));
    const list = everySubscription(store, account.user);
    const { basePath } = terminal.world.config();
    for await (const piece of writeEverything(account, credentials, list, basePath)) await terminal.writeJson(piece);
  });
}

export async function invite(terminal: Terminal, days: string | undefined): Promise<void> {
  const length = readDays(days) ?? INVITATION_DAYS;
  await withAccounts(terminal, async (accounts) => {
    const opened = await accounts.invite(length, terminal.world.now());
    if (isRefused(opened)) throw new UserError(explain(opened));
    terminal.say(`Whoever opens this path of your server within ${length} days can make one account:`);
    await terminal.write(`${terminal.world.config().basePath}/join#${opened.secret}\n`);
  });
}

export async function createToken(
  terminal: Terminal,
  name: string,
  { label, readOnly, days }: { label: string | undefined; readOnly: boolean; days: string | undefined },
): Promise<void> {
  const fault = faultOfLabel(label ?? "");
  if (label === undefined || fault !== undefined)
    throw new UserError(`--label ${label === undefined ? "must say which app the token is for" : fault}.`);
  const length = readDays(days);
  const expiresAt = length === undefined ? undefined : new Date(terminal.world.now().getTime() + length * DAY_MS);
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    const opened = await accounts.createToken(
      asUser(user),
      { label, scope: readOnly ? "read" : "write", expiresAt },
      terminal.world.now(),
    );
    if (isRefused(opened)) throw new UserError(explain(opened));
    terminal.say("This is the only time that the token is shown:");
    await terminal.write(`${opened.secret}\n`);
  });
}

export async function listTokens(terminal: Terminal, name: string, asJson: boolean): Promise<void> {
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    for (const token of await accounts.listCredentials(user, "token")) {
      const { id, label, scope } = token;
      const [used, expires] = [token.usedAt?.toISOString() ?? null, token.expiresAt?.toISOString() ?? null];
      const state = isAlive(token, terminal.world.now()) ? "valid" : "expired";
      await terminal.line({ id, scope, state, last_used_at: used, expires_at: expires, label }, asJson);
    }
  });
}

export async function revokeToken(terminal: Terminal, name: string, id: string): Promise<void> {
  await withAccounts(terminal, async (accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
    const now = terminal.world.now();
    if (!isId || !(await accounts.removeCredential(asUser(user), "token", id.toLowerCase(), now)))
      throw new UserError(`"${name}" has no token with the id ${id}. See: earmark token list ${name}`);
    terminal.say("Revoked: no server accepts it any more.");
  });
}

/** Works on the database for a moment, whether a server is running or not. */
async function withAccounts<T>(terminal: Terminal, work: (accounts: Accounts, store: Store) => Promise<T>): Promise<T> {
  const { databaseUrl } = terminal.world.config();
  const store = await openStore(databaseUrl, { connections: 1, beside: true });
  try {
    return await work(new Accounts(store.accounts, { signUp: false }), store);
  } finally {
    await store.close();
  }
}

async function accountOf(terminal: Terminal, accounts: Accounts, name: string): Promise<Account> {
  const config = terminal.world.config();
  const account = await accounts.findByName(name, config.accounts?.oidc?.issuer);
  if (account !== undefined) return account;
  throw new UserError(`There is no account "${name}" at ${nameOf(config.databaseUrl)}. See: earmark user list`);
}

function readDays(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const days = /^\d+$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > MAX_DAYS) throw new UserError(`--days must be a whole number from 1 to ${MAX_DAYS}.`);
  return days;
}

function explain(refusal: AccountRefusal): string {
  if (refusal.refused === "invalid") return `${refusal.detail}.`;
  const words: Partial<Record<AccountRefusal["refused"], string>> = {
    "name-taken": "There is an account of this name already.",
    full: "There are too many already; revoke one that is not used any more.",
  };
  return words[refusal.refused] ?? "The account was deleted meanwhile.";
}
