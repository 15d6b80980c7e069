import { describeArchive } from "../../src/store/suites/archive.suite.ts";
import { describeStore } from "../../src/store/suites/contract.suite.ts";
import { createDistributedDatabase, overAllNodes } from "../support/citus.ts";
import { open } from "../support/postgres-stores.ts";

describeStore("a cluster's coordinator", await open(await createDistributedDatabase()));
describeStore(
  "all nodes of a cluster",
  await open(overAllNodes(await createDistributedDatabase()), { connections: 9 }),
);
describeArchive("a cluster", createDistributedDatabase);
