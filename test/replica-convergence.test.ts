import assert from "node:assert/strict";
import { test } from "node:test";
import { newPerson, serverUrl } from "./support/client.ts";
import { SEED } from "./support/properties.ts";
import { MortalStorage, runDevices, type ServerList } from "./support/replica-runs.ts";

/** To repeat a failure: SEED=… RUNS=1. */
const seed = SEED;
const runs = Number(process.env["RUNS"] ?? 25);
const ACCOUNTS = 8;
console.log(`replicas run with SEED=${seed}`);

async function newList(): Promise<ServerList> {
  const { token } = await newPerson();
  return { url: serverUrl, token, fetch };
}

test(`replicas: ${runs} random runs of 2 to 4 devices → equal, and equal to the server`, async () => {
  let next = 0;
  const work = async () => {
    const list = await newList();
    while (next < runs) {
      const current = seed + next;
      next += 1;
      await runDevices(list, current).catch((cause) => {
        next = runs;
        throw new Error(`failed with SEED=${current} RUNS=1: ${cause.message}`, { cause });
      });
    }
  };
  await Promise.all(Array.from({ length: ACCOUNTS }, work));
});

/** Fails if none of 50 runs fails. */
async function assertFound(list: ServerList, openStorage?: () => MortalStorage): Promise<void> {
  for (let run = 0; run < 50; run += 1) {
    try {
      await runDevices(list, seed + run, openStorage);
    } catch (error) {
      assert.ok(error instanceof assert.AssertionError, String(error));
      return;
    }
  }
  assert.fail("no run found the fault");
}

/** Loses every fifth edit. */
class ForgetfulStorage extends MortalStorage {
  #updates = 0;

  override async update(key: string, change: (saved: string | undefined) => string): Promise<string> {
    this.#updates += 1;
    if (key === "base" || this.#updates % 5 !== 0) return super.update(key, change);
    return change(this.texts.get(key));
  }
}

test("replicas: storage that forgets → the check detects it", async () => {
  await assertFound(await newList(), () => new ForgetfulStorage());
});

test("replicas: server that does not report removals → the check detects it", async () => {
  const list = await newList();
  await assertFound({
    ...list,
    async fetch(url, init) {
      const response = await fetch(url, init);
      if (!response.ok || !url.includes("/v1/changes")) return response;
      const { meta, ...document } = (await response.json()) as { readonly meta: object };
      return Response.json({ ...document, meta: { ...meta, removed: [] } });
    },
  });
});
