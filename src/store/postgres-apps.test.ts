import { startPostgres, suiteDatabase } from "../../test/support/postgres.ts";
import { open } from "../../test/support/postgres-stores.ts";
import { runs } from "../../test/support/properties.ts";
import { describeConvergence } from "./app-convergence.suite.ts";
import { describeApps } from "./apps.suite.ts";
import { describeAppLimits } from "./apps-limits.suite.ts";

const server = await startPostgres();
const store = await open(await suiteDatabase(server));

describeApps("PostgreSQL", store);
describeAppLimits("PostgreSQL", () => suiteDatabase(server));
describeConvergence("PostgreSQL", store, runs(50));
