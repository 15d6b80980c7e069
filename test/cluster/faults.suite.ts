import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createDistributedDatabase, NODES, overAllNodes } from "../support/citus.ts";
import { ClusterLoad } from "../support/cluster-load.ts";
import { NodeProcess } from "../support/node-process.ts";

/**
 * Nodes fail while users write. It needs the data folders of the nodes (TEST_CITUS_DATA, in the order of TEST_CITUS_URLS)
 * and PostgreSQL's programs (TEST_POSTGRES_BIN) to stop and start them.
 */
const folders = (process.env["TEST_CITUS_DATA"] ?? assert.fail("TEST_CITUS_DATA is not set")).split(",");
const [coordinator, worker] = folders.map((folder) => new NodeProcess(folder)) as [NodeProcess, NodeProcess];
const workerHost = new URL(NODES[1] ?? "").host;

const USERS = 12;
const BEFORE_MS = 1_000;
const LASTING_MS = 6_000;
/** How soon after the end of a fault every user can write again. */
const AGAIN_MS = 2_000;

const FAULTS = [
  { name: "worker killed", node: worker, stops: workerHost, begin: () => worker.kill(), end: () => worker.start() },
  { name: "worker frozen", node: worker, stops: workerHost, begin: () => worker.freeze(), end: () => worker.thaw() },
  {
    name: "worker frozen, with the coordinator's URL only",
    isOverCoordinator: true,
    node: worker,
    stops: workerHost,
    begin: () => worker.freeze(),
    end: () => worker.thaw(),
  },
  {
    name: "coordinator killed",
    node: coordinator,
    stops: undefined,
    begin: () => coordinator.kill(),
    end: () => coordinator.start(),
  },
];

for (const { name, isOverCoordinator, stops, begin, end } of FAULTS)
  test(`faults: ${name} → users on other nodes keep writing, the others soon after; nothing confirmed is lost`, async () => {
    const url = await createDistributedDatabase();
    const load = await ClusterLoad.start(url, isOverCoordinator ? url : overAllNodes(url), USERS);
    const affected = stops === undefined ? new Set<string>() : await load.usersOn(stops);
    assert.ok(stops === undefined || (affected.size > 0 && affected.size < USERS));
    await sleep(BEFORE_MS);
    const began = performance.now();
    await begin();
    await sleep(LASTING_MS);
    await end();
    const ended = performance.now();
    const againMs = await load.recovered(ended, 60_000);
    const [hit, others] = [true, false].map((isHit) =>
      load.experience((user) => affected.has(user) === isHit, began, ended),
    );
    const { acknowledged, refused, violations } = await load.finish();
    process.stdout.write(
      `measured: ${name}: users on it ${hit?.requests} requests, ${hit?.refused} refused, slowest ${hit?.slowestMs} ms; ` +
        `others ${others?.requests} requests, ${others?.refused} refused, slowest ${others?.slowestMs} ms; ` +
        `again after ${againMs} ms; ${acknowledged} confirmed, ${violations.length} violations, ${refused} refusals\n`,
    );
    assert.deepEqual(violations, []);
    assert.equal(others?.refused, 0, "users on other nodes are refused");
    assert.ok(againMs <= AGAIN_MS, `again after ${againMs} ms`);
  });
