import { sharedPostgres } from "../../test/support/postgres.ts";
import { open } from "../../test/support/postgres-stores.ts";
import { runs } from "../../test/support/properties.ts";
import { describeConvergence } from "./app-convergence.suite.ts";
import { describeApps } from "./apps.suite.ts";
import { describeAppAccess } from "./apps-access.suite.ts";
import { describeAppLimits } from "./apps-limits.suite.ts";

const server = await sharedPostgres();
const store = await open(await server.database());

describeApps("PostgreSQL", store);
describeAppAccess("PostgreSQL", store);
describeAppLimits("PostgreSQL", () => server.database());
describeConvergence("PostgreSQL", store, runs(20));
