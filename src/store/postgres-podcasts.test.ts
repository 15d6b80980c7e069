import { sharedPostgres } from "../../test/support/postgres.ts";
import { openStore } from "./engines.ts";
import { describePodcasts } from "./podcasts.suite.ts";

const server = await sharedPostgres();

describePodcasts("PostgreSQL", async () => openStore(await server.migratedDatabase(), { connections: 4 }));
