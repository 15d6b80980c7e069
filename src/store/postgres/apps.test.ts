import { sharedPostgres } from "../../../test/support/postgres.ts";
import { query } from "../../../test/support/postgres-cluster.ts";
import { open } from "../../../test/support/postgres-stores.ts";
import { runs } from "../../../test/support/properties.ts";
import { describeConvergence } from "../suites/app-convergence.suite.ts";
import { describeApps } from "../suites/apps.suite.ts";
import { describeAppAccess } from "../suites/apps-access.suite.ts";
import { describeAppLimits } from "../suites/apps-limits.suite.ts";
import { describeAppRemovals } from "../suites/apps-removals.suite.ts";
import { describeBringIn } from "../suites/bring-in.suite.ts";
import { describeHistory } from "../suites/history.suite.ts";
import { describeMoveStories } from "../suites/move-stories.suite.ts";
import { describeMoves } from "../suites/moves.suite.ts";

const server = await sharedPostgres();
const url = await server.migratedDatabase();
const store = await open(url);
const direct = new URL(url);
direct.searchParams.set("options", "-csearch_path=earmark");

describeApps("PostgreSQL", store);
describeAppRemovals("PostgreSQL", store);
describeAppAccess("PostgreSQL", store);
describeAppLimits("PostgreSQL", store, {
  run: (sql) => query(direct.href, sql),
  key: "lpad(n::text, 32, '0')::uuid",
});
describeHistory("PostgreSQL", store);
describeMoves("PostgreSQL", store);
describeBringIn("PostgreSQL", store);
describeConvergence("PostgreSQL", store, runs(10));
describeMoveStories("PostgreSQL", store, runs(5));
