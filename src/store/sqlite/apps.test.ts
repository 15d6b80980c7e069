import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after } from "node:test";
import { runs } from "../../../test/support/properties.ts";
import { temporaryFolder } from "../../../test/support/server.ts";
import { openStore } from "../open.ts";
import { describeConvergence, describeFaults } from "../suites/app-convergence.suite.ts";
import { describeApps } from "../suites/apps.suite.ts";
import { describeAppAccess } from "../suites/apps-access.suite.ts";
import { describeAppLimits } from "../suites/apps-limits.suite.ts";
import { describeAppRemovals } from "../suites/apps-removals.suite.ts";
import { describeBringIn } from "../suites/bring-in.suite.ts";
import { describeHistory } from "../suites/history.suite.ts";
import { describeMoveStories } from "../suites/move-stories.suite.ts";
import { describeMoves } from "../suites/moves.suite.ts";

const file = join(temporaryFolder(), "earmark.db");
const store = await openStore(`file:${file}`, { connections: 1 });
const database = new DatabaseSync(file);
after(async () => {
  database.close();
  await store.close();
});

describeApps("SQLite", store);
describeAppRemovals("SQLite", store);
describeAppAccess("SQLite", store);
describeAppLimits("SQLite", store, {
  run: async (sql) => database.prepare(sql).all(),
  key: "cast(printf('%016d', n) as blob)",
});
describeHistory("SQLite", store);
describeMoves("SQLite", store);
describeBringIn("SQLite", store);
describeConvergence("SQLite", store, runs(20));
describeMoveStories("SQLite", store, runs(30));
describeFaults(store);
