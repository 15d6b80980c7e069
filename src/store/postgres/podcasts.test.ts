import { sharedPostgres } from "../../../test/support/postgres.ts";
import { openStore } from "../open.ts";
import { describeDuplicates } from "../suites/duplicates.suite.ts";
import { describePodcasts } from "../suites/podcasts.suite.ts";
import { describeTitles } from "../suites/titles.suite.ts";

const server = await sharedPostgres();

describePodcasts("PostgreSQL", async () => openStore(await server.migratedDatabase(), { connections: 4 }));
describeDuplicates("PostgreSQL", async () => openStore(await server.migratedDatabase(), { connections: 4 }));
describeTitles("PostgreSQL", async () => openStore(await server.migratedDatabase(), { connections: 4 }));
