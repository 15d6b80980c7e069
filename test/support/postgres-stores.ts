import { after } from "node:test";
import type { SubscriptionStore } from "../../src/lists/list-store.ts";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import type { StoreOptions } from "../../src/store/shared/options.ts";
import { StoreUnavailable } from "../../src/util/store-unavailable.ts";
import { CONNECT_TIMEOUT, type SharedPostgres } from "./postgres.ts";
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
  connectTimeout = CONNECT_TIMEOUT,
): Promise<{ store: Store; other: Store; proxy: Wire; url: string }> {
  const proxy = await startProxy(server.port);
  const url = await server.migratedDatabase();
  const proxied = url.replace(`:${server.port}`, `:${proxy.port}`).replace(CONNECT_TIMEOUT, connectTimeout);
  const store = await open(proxied);
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
