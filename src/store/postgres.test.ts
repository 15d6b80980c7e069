import { after } from "node:test";
import { startPostgres } from "../../test/postgres.ts";
import { describeStore } from "./contract.suite.ts";
import { openStore, type StoreOptions } from "./open.ts";

const server = await startPostgres();

async function open(url: string, options: Partial<StoreOptions> = {}) {
  const store = await openStore(url, { maxWaiting: 50_000, connections: 5, ...options });
  after(() => store.close());
  return store;
}

describeStore("PostgreSQL", await open(await server.database()));
