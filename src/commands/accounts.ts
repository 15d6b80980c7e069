import { type Account, Accounts, INVITATION_DAYS, isAlive, isNotDone, type NotDone, type Store } from "../accounts.ts";
import type { Config } from "../config.ts";
import { faultOfLabel, writeEverything } from "../jsonapi/accounts.ts";
import { openStore } from "../store/open.ts";
import { nameOf, StartFailure } from "../store/opening.ts";
import { everySubscription } from "../subscriptions.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const MAX_DAYS = 3_650;
const LISTED_AT_A_TIME = 500;

/** What a command about accounts works with. Data goes to `write`, words to `say`. */
export interface Workplace {
  readonly config: Config;
  readonly write: (data: string) => void;
  readonly say: (words: string) => void;
  /** Asks for a new password, or reads it from standard input. */
  readonly password: () => Promise<string>;
  readonly now: Date;
}

export async function addUser(work: Workplace, name: string): Promise<void> {
  const password = await work.password();
  await withAccounts(work, async (accounts) => {
    const made = await accounts.create(name, password, work.now);
    if (isNotDone(made)) throw new StartFailure(explain(made));
    work.say(`"${name}" can sign in now.`);
    if (work.config.accounts === undefined)
      work.say("This server is still for one person: set EARMARK_ACCOUNTS=on before you start it again.");
  });
}

export async function listUsers(work: Workplace, asJson: boolean): Promise<void> {
  await withAccounts(work, async ({ store: accounts }, store) => {
    for (let after = 0; ; ) {
      const some = await accounts.list(after, LISTED_AT_A_TIME);
      for (const { user, name, issuer, createdAt } of some) {
        const { total } = await store.page(user, { offset: 0, size: 1 });
        const created = createdAt.toISOString();
        const line = { name, issuer: issuer === "" ? null : issuer, created_at: created, subscriptions: total };
        work.write(asJson ? `${JSON.stringify(line)}\n` : `${name}\t${created}\t${total}\t${issuer}\n`);
      }
      if (some.length < LISTED_AT_A_TIME) return;
      after = some.at(-1)?.user ?? after;
    }
  });
}

export async function changePassword(work: Workplace, name: string): Promise<void> {
  // Whether there is such an account is said before anything is asked.
  await withAccounts(work, (accounts) => accountOf(work, accounts, name));
  const password = await work.password();
  await withAccounts(work, async (accounts) => {
    const account = await accountOf(work, accounts, name);
    if (account.issuer !== "")
      throw new StartFailure(`"${name}" signs in with ${account.issuer}: there is no password.`);
    const refused = await accounts.setPassword(account, password);
    if (refused !== undefined) throw new StartFailure(explain(refused));
    work.say(`The password of "${name}" is changed, and every session has ended. Tokens of apps go on working.`);
  });
}

export async function deleteUser(
  work: Workplace,
  name: string,
  confirm: (question: string) => Promise<boolean>,
): Promise<void> {
  const total = await withAccounts(work, async (accounts, store) => {
    const { user } = await accountOf(work, accounts, name);
    return (await store.page(user, { offset: 0, size: 1 })).total;
  });
  const question = `Delete "${name}" with ${total} subscriptions, all tokens and sessions? It cannot be undone.`;
  if (!(await confirm(question))) throw new StartFailure("Nothing was deleted.");
  await withAccounts(work, async (accounts) => {
    const { user } = await accountOf(work, accounts, name);
    await accounts.store.delete(user);
    work.say(`"${name}" is deleted, with everything.`);
  });
}

export async function exportUser(work: Workplace, name: string): Promise<void> {
  await withAccounts(work, async (accounts, store) => {
    const account = await accountOf(work, accounts, name);
    const credentials = [
      ...(await accounts.store.listCredentials(account.user, "token")),
      ...(await accounts.store.listCredentials(account.user, "session")),
    ].filter((credential) => isAlive(credential, work.now));
    const list = everySubscription(store, account.user);
    for await (const piece of writeEverything(account, credentials, list, work.config.basePath)) work.write(piece);
  });
}

export async function invite(work: Workplace, days: string | undefined): Promise<void> {
  const length = readDays(days) ?? INVITATION_DAYS;
  await withAccounts(work, async (accounts) => {
    const opened = await accounts.invite(length, work.now);
    if (isNotDone(opened)) throw new StartFailure(explain(opened));
    work.say(`Whoever opens this path of your server within ${length} days can make one account:`);
    work.write(`${work.config.basePath}/join#${opened.secret}\n`);
  });
}

export async function createToken(
  work: Workplace,
  name: string,
  { label, readOnly, days }: { label: string | undefined; readOnly: boolean; days: string | undefined },
): Promise<void> {
  const fault = faultOfLabel(label ?? "");
  if (label === undefined || fault !== undefined)
    throw new StartFailure(`--label ${fault ?? "must say which app the token is for"}.`);
  const length = readDays(days);
  const expiresAt = length === undefined ? undefined : new Date(work.now.getTime() + length * DAY_MS);
  await withAccounts(work, async (accounts) => {
    const { user } = await accountOf(work, accounts, name);
    const opened = await accounts.createToken(user, { label, scope: readOnly ? "read" : "write", expiresAt }, work.now);
    if (isNotDone(opened)) throw new StartFailure(explain(opened));
    work.say("This is the only time that the token is shown:");
    work.write(`${opened.secret}\n`);
  });
}

export async function listTokens(work: Workplace, name: string, asJson: boolean): Promise<void> {
  await withAccounts(work, async (accounts) => {
    const { user } = await accountOf(work, accounts, name);
    for (const token of await accounts.store.listCredentials(user, "token")) {
      const { id, label, scope } = token;
      const [used, expires] = [token.usedAt?.toISOString() ?? null, token.expiresAt?.toISOString() ?? null];
      const state = isAlive(token, work.now) ? "valid" : "expired";
      const line = { id, label, scope, state, last_used_at: used, expires_at: expires };
      work.write(asJson ? `${JSON.stringify(line)}\n` : `${id}\t${scope}\t${state}\t${used ?? "never"}\t${label}\n`);
    }
  });
}

export async function revokeToken(work: Workplace, name: string, id: string): Promise<void> {
  await withAccounts(work, async (accounts) => {
    const { user } = await accountOf(work, accounts, name);
    const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
    if (!isId || !(await accounts.store.removeCredential(user, "token", id.toLowerCase())))
      throw new StartFailure(`"${name}" has no token with the id ${id}. See: earmark token list ${name}`);
    work.say("Revoked: no server accepts it any more.");
  });
}

/** Works on the database for a moment, whether a server is running or not. */
async function withAccounts<T>(
  { config }: Workplace,
  work: (accounts: Accounts, store: Store) => Promise<T>,
): Promise<T> {
  const store = await openStore(config.databaseUrl, { maxWaiting: 1_000, connections: 1, beside: true });
  try {
    return await work(new Accounts(store.accounts, { signUp: false }), store);
  } finally {
    await store.close();
  }
}

/** By its name, or by what the identity provider of the settings calls it. */
async function accountOf({ config }: Workplace, { store }: Accounts, name: string): Promise<Account> {
  const issuer = config.accounts?.oidc?.issuer;
  const found =
    (await store.find(name.normalize("NFKC").toLowerCase(), "")) ??
    (issuer === undefined ? undefined : await store.find(name, issuer));
  if (found === undefined)
    throw new StartFailure(`There is no account "${name}" at ${nameOf(config.databaseUrl)}. See: earmark user list`);
  return found.account;
}

function readDays(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const days = /^\d+$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > MAX_DAYS) throw new StartFailure(`--days must be a whole number from 1 to ${MAX_DAYS}.`);
  return days;
}

function explain(refusal: NotDone): string {
  if (refusal.refused === "invalid") return `${refusal.detail}.`;
  const words: Partial<Record<NotDone["refused"], string>> = {
    "name-taken": "There is an account of this name already.",
    full: "There are too many already; revoke one that is not used any more.",
  };
  return words[refusal.refused] ?? "The account was deleted meanwhile.";
}
