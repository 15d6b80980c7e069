import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, runs } from "./support/properties.ts";
import { oddBodies } from "./support/properties-documents.ts";
import { ATOMIC, add, type HttpResponse, newId, startServer, statusOf, type TestServer } from "./support/server.ts";

const IDS = Array.from({ length: 4 }, newId);
const FEEDS = [
  "https://a.example/f",
  "HTTP://A.example/f/",
  "https://a.example/g",
  "https://b.example:443/f#x",
  "http://b.example/f",
];

/** Operations that often collide, and broken ones of every kind. */
const goodOperation = fc.tuple(fc.constantFrom(...IDS), fc.constantFrom(...FEEDS)).map(([id, feed]) => add(id, feed));
const badOperation = fc.oneof(
  fc.constantFrom<unknown>(null, 1, "add", [], {}, { op: "remove" }, { op: "add" }, { op: "add", data: [] }),
  fc.tuple(fc.string(), fc.constantFrom(...FEEDS)).map(([id, feed]) => add(`x${id}`, feed)),
  fc.tuple(fc.constantFrom(...IDS), fc.string()).map(([id, feed]) => add(id, `x${feed}`)),
  // A document with these keys is refused as a whole.
  fc
    .jsonValue()
    .filter((data) => !/__proto__|constructor/.test(JSON.stringify(data)))
    .map((data) => ({ op: "add", data: { type: "podcast", data } })),
);
const operation: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: goodOperation },
  { weight: 1, arbitrary: badOperation },
);
const operations = fc.array(operation, { maxLength: 12 });

async function list({ call }: TestServer): Promise<HttpResponse["json"]["data"]> {
  return (await call("GET", "/v1/subscriptions?page[size]=100")).json.data;
}

async function clear(server: TestServer): Promise<void> {
  for (const { links } of await list(server)) await server.call("DELETE", links.self);
}

/** What of a result does not depend on when and where its operation stood. */
function essence(result: HttpResponse["json"]): unknown {
  if (result.data !== undefined) return { id: result.data.id, feed: result.data.attributes.feed_url };
  const { source: _, ...error } = result.errors[0];
  return error;
}

test("properties: random document → no 5xx", async () => {
  const { call, operate } = await startServer();
  const headers = { "Content-Type": ATOMIC, Accept: ATOMIC };
  await fc.assert(
    fc.asyncProperty(oddBodies([...IDS, ...FEEDS]), async (bytes) => {
      const response = await call("POST", "/v1/operations", { headers, body: bytes });
      assert.ok(response.status === 200 || response.status === 400, response.text);
      assert.ok("atomic:results" in response.json || "errors" in response.json);
      if (response.status === 200)
        assert.equal(response.json["atomic:results"].length, JSON.parse(String(bytes))["atomic:operations"].length);
    }),
    { numRuns: runs(60) },
  );
  assert.equal((await operate([add(newId(), "https://alive.example/")])).map(statusOf)[0], "added");
});

test("properties: independent operations reordered → same results, reordered", async () => {
  const server = await startServer();
  const independent = fc
    .uniqueArray(fc.nat({ max: 1_000 }), { maxLength: 10 })
    .chain((numbers) => fc.tuple(fc.constant(numbers), fc.shuffledSubarray(numbers, { minLength: numbers.length })));
  const operationOf = (number: number) =>
    add(
      number % 5 === 0 ? `bad-${number}` : `10000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
      `https://p.example/${number}`,
    );
  await fc.assert(
    fc.asyncProperty(independent, async ([numbers, shuffled]) => {
      const results = (await server.operate(numbers.map(operationOf))).map(essence);
      await clear(server);
      const again = (await server.operate(shuffled.map(operationOf))).map(essence);
      await clear(server);
      assert.deepEqual(
        again,
        shuffled.map((number) => results[numbers.indexOf(number)]),
      );
    }),
    { numRuns: runs(10) },
  );
});

test("properties: invalid operation among others → others unaffected", async () => {
  const server = await startServer();
  await fc.assert(
    fc.asyncProperty(operations, badOperation, fc.nat(), async (others, bad, at) => {
      const expected = (await server.operate(others)).map(essence);
      await clear(server);
      const place = at % (others.length + 1);
      const results = (await server.operate(others.toSpliced(place, 0, bad))).map(essence);
      await clear(server);
      assert.deepEqual(results.toSpliced(place, 1), expected);
    }),
    { numRuns: runs(10) },
  );
});

test("properties: document split in two → same list and results", async () => {
  const server = await startServer();
  const outline = async () =>
    (await list(server)).map(({ id, attributes }: HttpResponse["json"]) => [id, attributes.feed_url]);
  await fc.assert(
    fc.asyncProperty(operations, fc.nat(), async (whole, at) => {
      const results = (await server.operate(whole)).map(essence);
      const expected = await outline();
      await clear(server);
      const place = at % (whole.length + 1);
      const halves = [
        ...(await server.operate(whole.slice(0, place))),
        ...(await server.operate(whole.slice(place))),
      ].map(essence);
      assert.deepEqual(await outline(), expected);
      await clear(server);
      assert.deepEqual(halves, results);
    }),
    { numRuns: runs(10) },
  );
});

/** The whole product in a few lines: a list of pairs, and what stands against a new one. */
class Model {
  readonly items: { id: string; feed: string }[] = [];

  add(id: string, feed: string): string {
    const key = (address: string) =>
      address
        .toLowerCase()
        .replace(/^https?:\/\//, "")
        .replace(/#.*|:443/g, "")
        .replace(/\/+$/, "");
    if (this.items.some((item) => key(item.feed) === key(feed))) return "Already Subscribed";
    if (this.items.some((item) => item.id === id)) return "Identifier In Use";
    this.items.push({ id, feed });
    return "added";
  }

  remove(id: string): number {
    const at = this.items.findIndex((item) => item.id === id);
    if (at !== -1) this.items.splice(at, 1);
    return at === -1 ? 404 : 204;
  }

  page(number: number, size: number): string[] {
    return this.items.slice((number - 1) * size, number * size).map(({ id }) => id);
  }
}

test("properties: random commands → server agrees with a simple model", async () => {
  const server = await startServer();
  const command = fc.oneof(
    fc
      .array(fc.tuple(fc.constantFrom(...IDS), fc.constantFrom(...FEEDS)), { minLength: 1, maxLength: 4 })
      .map((pairs) => ({ pairs })),
    fc.constantFrom(...IDS).map((id) => ({ id })),
    fc
      .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 }))
      .map(([number, size]) => ({ number, size })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 20 }), async (commands) => {
      const model = new Model();
      for (const step of commands) {
        if ("pairs" in step) {
          const results = await server.operate(step.pairs.map(([id, feed]) => add(id, feed)));
          assert.deepEqual(
            results.map((result) => result.errors?.[0].title ?? "added"),
            step.pairs.map(([id, feed]) => model.add(id, feed)),
          );
        } else if ("id" in step) {
          assert.equal((await server.call("DELETE", `/v1/subscriptions/${step.id}`)).status, model.remove(step.id));
        } else {
          const { json } = await server.call(
            "GET",
            `/v1/subscriptions?page[number]=${step.number}&page[size]=${step.size}`,
          );
          assert.deepEqual(
            json.data.map(({ id }: { id: string }) => id),
            model.page(step.number, step.size),
          );
          assert.equal(json.meta.total, model.items.length);
        }
      }
      await clear(server);
    }),
    { numRuns: runs(15) },
  );
});
