import { join } from "node:path";
import { after } from "node:test";
import { runs } from "../../test/support/properties.ts";
import { temporaryFolder } from "../../test/support/server.ts";
import { describeConvergence, describeFaults } from "./app-convergence.suite.ts";
import { describeApps } from "./apps.suite.ts";
import { describeAppAccess } from "./apps-access.suite.ts";
import { describeAppLimits } from "./apps-limits.suite.ts";
import { openStore } from "./engines.ts";

const store = await openStore(`file:${join(temporaryFolder(), "earmark.db")}`, { connections: 1 });
after(() => store.close());

describeApps("SQLite", store);
describeAppAccess("SQLite", store);
describeAppLimits("SQLite", async () => `file:${join(temporaryFolder(), "earmark.db")}`);
describeConvergence("SQLite", store, runs(40));
describeFaults(store);
