import { sharedPostgres } from "../../../test/support/postgres.ts";
import { open } from "../../../test/support/postgres-stores.ts";
import { describeLinks } from "../suites/links.suite.ts";

const server = await sharedPostgres();

describeLinks("PostgreSQL", await open(await server.migratedDatabase()));
