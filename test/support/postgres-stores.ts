import assert from "node:assert/strict";
import { after } from "node:test";
import type { Store } from "../../src/account-store.ts";
import { openStore } from "../../src/store/engines.ts";
import type { StoreOptions } from "../../src/store/store-options.ts";
import { asUser, type Caller, StoreUnavailable, type SubscriptionStore } from "../../src/subscriptions.ts";
import { additionsOf, addTo, idOf } from "./lists.ts";
import type { SharedPostgres } from "./postgres.ts";
import { startProxy, type Wire } from "./proxy.ts";

export const NOW = new Date();
export const USER = 1;

/** Closed after the tests of the file. */
export async function open(url: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openStore(url, { connections: 5, ...options });
  after(() => store.close());
  return store;
}

/** A store that reaches its server over a connection that can be cut, and one that reaches it directly. */
export async function openOverProxy(
  server: SharedPostgres,
): Promise<{ store: Store; other: Store; proxy: Wire; url: string }> {
  const proxy = await startProxy(server.port);
  const url = await server.database();
  const store = await open(url.replace(`:${server.port}`, `:${proxy.port}`));
  return { store, other: await open(url), proxy, url };
}

export async function total(store: SubscriptionStore, user = USER): Promise<number> {
  return (await store.page(user, { offset: 0, size: 1 })).total;
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof StoreUnavailable;
}

export function isKnownFailure(error: unknown): boolean {
  return error instanceof StoreUnavailable && !error.isOutcomeUnknown;
}

export function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** How many statements `work` sends over the proxy. */
export async function statementsOf(proxy: Wire, work: () => Promise<unknown>): Promise<number> {
  const before = proxy.statements();
  await work();
  return proxy.statements() - before;
}

/** Makes every insert of subscriptions run some PL/pgSQL, either at the insert or at commit. */
export async function onInsert(
  server: SharedPostgres,
  url: string,
  when: "at insert" | "at commit",
  code: string,
): Promise<void> {
  const trigger =
    when === "at insert"
      ? "trigger trouble before insert on earmark.subscriptions for each statement"
      : "constraint trigger trouble after insert on earmark.subscriptions deferrable initially deferred for each row";
  await server.query(
    `create sequence tries;
     create function trouble() returns trigger language plpgsql as $$ begin ${code}; return new; end $$;
     create ${trigger} execute function trouble()`,
    databaseOf(url),
  );
}

export function raise(code: string): string {
  return `raise exception 'no' using errcode = '${code}'`;
}

/** An account with three subscriptions and two tokens, and the callers that use them. */
export async function newCallers(store: Store): Promise<{ first: Caller; second: Caller }> {
  const account = {
    name: "ann",
    issuer: "",
    passwordHash: "hash",
    isCreatedByOperator: false,
    invitationHash: undefined,
  };
  assert.equal(await store.accounts.create(4_711, account, NOW), 4_711);
  const callerOf = async (number: number) => {
    const credential = { id: idOf(number), kind: "token", user: 4_711, scope: "write", label: "" } as const;
    const token = { ...credential, createdAt: NOW, usedAt: undefined, expiresAt: undefined };
    const hash = Buffer.alloc(32, number).toString("base64url");
    assert.equal(await store.accounts.addCredential(asUser(4_711), { credential: token, hash, atMost: 9 }), "added");
    return { ...asUser(4_711), credentialHash: hash };
  };
  // One after the other, over one connection: a second one would not notice that the first is cut.
  const callers = { first: await callerOf(1), second: await callerOf(2) };
  await addTo(store, asUser(4_711), additionsOf(0, 3), NOW);
  return callers;
}
