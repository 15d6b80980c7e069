import { join } from "node:path";
import { after } from "node:test";
import { temporaryFolder } from "../../../test/support/server.ts";
import { openStore } from "../open.ts";
import { describeLinks } from "../suites/links.suite.ts";

const store = await openStore(`file:${join(temporaryFolder(), "earmark.db")}`, { connections: 1 });
after(() => store.close());

describeLinks("SQLite", store);
