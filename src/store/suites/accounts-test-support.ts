import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { TestContext } from "node:test";
import { addTo, removeFrom } from "../../../test/support/lists.ts";
import {
  type Account,
  type AccountStore,
  type Credential,
  type NewAccount,
  type NewCredential,
  NOBODY,
} from "../../accounts/account-store.ts";
import type { AdministrationStore } from "../../accounts/administration-store.ts";
import { AccessRevoked, asUser, type UserId } from "../../accounts/caller.ts";
import { hashSecret } from "../../accounts/hash-secret.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { Addition } from "../../lists/subscription.ts";

export const NOW = new Date("2026-01-02T03:04:05.678Z");
/** A caller that adds credentials without having one itself. */
export const SERVER = asUser(NOBODY);

export interface Stores {
  readonly accounts: AccountStore;
  readonly administration: AdministrationStore;
  readonly subscriptions: SubscriptionStore;
}

/** Neither an administrator nor disabled, as most accounts are. */
export const MEMBER = { isAdmin: false, disabledAt: undefined };

export const later = (ms: number, from = NOW) => new Date(from.getTime() + ms);
export const newHash = () => hashSecret(randomUUID());
export const ZERO_HASH = Buffer.alloc(32).toString("base64url");
export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
export const countOf = <T>(values: readonly T[], wanted: T) => values.filter((value) => value === wanted).length;

export function addition(number: number): Addition {
  const id = `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
  return { kind: "add", id, feedUrl: `https://feeds.example/${number}/`, normalizedUrl: `feeds.example/${number}` };
}

export const additions = (from: number, count: number) => times(count, (index) => addition(from + index));

/** Every password hash is different, as real ones are: an engine may use them to detect a repeated attempt. */
export function newAccountNamed(name: string, more: Partial<NewAccount> = {}): NewAccount {
  return {
    name,
    issuer: "",
    passwordHash: `hash ${randomUUID()}`,
    isCreatedByOperator: true,
    invitationHash: undefined,
    ...more,
  };
}

export function credential(user: UserId, more: Partial<Credential> = {}): NewCredential {
  return {
    credential: {
      id: randomUUID(),
      kind: "token",
      user,
      scope: "write",
      label: "",
      createdAt: NOW,
      usedAt: undefined,
      expiresAt: undefined,
      ...more,
    },
    hash: newHash(),
  };
}

/** A store with a first account, and helpers to fill it. */
export async function createContext(open: () => Promise<Stores>) {
  const { accounts, administration, subscriptions } = await open();
  let users = 2 ** 40;
  // The first account is special and tested separately.
  await accounts.create(newUser(), newAccountNamed("first"), NOW);

  async function openForTest(context: TestContext): Promise<Stores> {
    const stores = await open();
    context.after(() => stores.subscriptions.close());
    return stores;
  }

  function newUser(): UserId {
    users += 1;
    return users;
  }

  async function newAccount(more: Partial<NewAccount> = {}): Promise<Account & { passwordHash: string }> {
    const user = newUser();
    const account = newAccountNamed(`name-${user}`, more);
    assert.equal(await accounts.create(user, account, NOW), user);
    return {
      user,
      name: account.name,
      issuer: account.issuer,
      createdAt: NOW,
      ...MEMBER,
      passwordHash: account.passwordHash,
    };
  }

  async function add(user: UserId, more: Partial<Credential> = {}): Promise<NewCredential> {
    const added = credential(user, more);
    assert.equal(await accounts.addCredential(SERVER, added), "added");
    return added;
  }

  const invite = (kind: "invitation" | "setup" = "invitation") => add(NOBODY, { kind });
  const idsOf = async (user: UserId, kind: Credential["kind"]) =>
    (await accounts.listCredentials(user, kind)).map(({ id }) => id);
  const listOf = (user: UserId, stores = subscriptions) => stores.page(user, { offset: 0, size: 10_000 });
  const EMPTY = { items: [], total: 0, sequence: 0 };

  async function everythingOf(user: UserId) {
    return {
      account: await accounts.get(user),
      list: await listOf(user),
      tokens: await accounts.listCredentials(user, "token"),
      sessions: await accounts.listCredentials(user, "session"),
    };
  }

  /** An account with some of everything: items, removals, tokens, sessions. */
  async function newAccountWithData(): Promise<{ account: Account; token: NewCredential; session: NewCredential }> {
    const account = await newAccount();
    await addTo(subscriptions, asUser(account.user), additions(0, 20), NOW);
    for (const { id } of additions(5, 3)) await removeFrom(subscriptions, asUser(account.user), id, NOW);
    const token = await add(account.user, { label: "a player" });
    const session = await add(account.user, { kind: "session" });
    return { account, token, session };
  }

  const isAccessRevoked = (error: unknown) => error instanceof AccessRevoked;

  function assertDoneOrRevoked(outcomes: readonly PromiseSettledResult<unknown>[]): void {
    for (const outcome of outcomes)
      if (outcome.status === "rejected") assert.ok(isAccessRevoked(outcome.reason), `${outcome.reason}`);
  }

  return {
    accounts,
    administration,
    subscriptions,
    openForTest,
    newUser,
    newAccount,
    add,
    invite,
    idsOf,
    listOf,
    EMPTY,
    everythingOf,
    newAccountWithData,
    isAccessRevoked,
    assertDoneOrRevoked,
  };
}

export type AccountsContext = Awaited<ReturnType<typeof createContext>>;
