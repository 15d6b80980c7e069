import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { ERRORS } from "../src/errors/catalog.ts";
import type { Access } from "../src/http/wire/access.ts";
import { bundleOpenApi } from "../web/docs/openapi.ts";
import { codesIn, compile, DOCUMENT, type Operation, resolveResponse, type Schema, TEXT } from "./support/openapi.ts";
import { startServer, temporaryFolder } from "./support/server.ts";

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const CODES = Object.keys(ERRORS).sort();
/** Pages are not part of the API. */
const PAGES = [
  "/",
  "/join",
  "/reset-password",
  "/l/{name}",
  "/l/{secret}/covers/{image}",
  "/assets/{name}",
  "/docs",
  "/docs.css",
  "/service-worker.js",
];

const operations = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
);

test("document: recommended rules → no problems", async () => {
  // Some operations can only fail in ways that every request can, which the default response describes.
  const config = await createConfig({ extends: ["recommended"], rules: { "operation-4xx-response": "off" } });
  const problems = await lintFromString({ source: TEXT, absoluteRef: "/openapi.json", config });
  assert.deepEqual(
    problems.map(({ ruleId, message, location: [place] }) => [ruleId, message, place?.pointer].join(" ")),
    [],
  );
});

test("document: the same member in two files → not built", () => {
  const folder = temporaryFolder();
  const bundle = (second: object) => {
    writeFileSync(join(folder, "base.json"), JSON.stringify({ openapi: "3.1.1" }));
    writeFileSync(join(folder, "a.json"), JSON.stringify({ paths: { "/a": {} }, components: { schemas: { A: {} } } }));
    writeFileSync(join(folder, "b.json"), JSON.stringify(second));
    return bundleOpenApi(pathToFileURL(`${folder}/`));
  };
  assert.deepEqual(bundle({ paths: { "/b": {} }, components: { schemas: { B: {} }, headers: { A: {} } } }), {
    openapi: "3.1.1",
    paths: { "/a": {}, "/b": {} },
    components: { schemas: { A: {}, B: {} }, headers: { A: {} } },
  });
  for (const [second, pointer] of [
    [{ openapi: "3.0.0" }, /b\.json has \/openapi,/],
    [{ paths: { "/a": {} } }, /b\.json has \/paths\/\/a,/],
    [{ components: { schemas: { A: {} } } }, /b\.json has \/components\/schemas\/A,/],
  ] as const)
    assert.throws(() => bundle(second), pointer);
});

test("document: version → that of the package", () => {
  assert.equal(DOCUMENT.info.version, JSON.parse(read("package.json")).version);
});

test("document: routes of the server → the same paths, methods and credentials", async () => {
  const { server } = await startServer({
    EARMARK_ACCOUNTS: "true",
    EARMARK_OIDC_ISSUER: "https://id.example",
    EARMARK_OIDC_CLIENT_ID: "earmark",
    EARMARK_METRICS: "true",
    EARMARK_METRICS_TOKEN: "x".repeat(32),
  });
  const accessOf = ({ security = DOCUMENT.security, responses }: Operation): Access | "read or write" => {
    const names = security.flatMap((requirement) => Object.keys(requirement));
    if (names.length === 0) return "open";
    if (names.includes("metricsToken")) return "metrics";
    if (names.includes("token")) return "read or write";
    return responses["403"] && codesIn(resolveResponse(responses["403"])).includes("admin-required")
      ? "admin"
      : "account";
  };
  const offered = server.routes
    .filter(({ dialect }) => dialect.app === undefined)
    .map(({ method, path, access }) => ({ method, path: path.replaceAll(/:(\w+)/g, "{$1}"), access }))
    .filter(({ path }) => !PAGES.includes(path))
    .map(({ method, path, access }) => [
      `${method} ${path}`,
      access === "read" || access === "write" ? "read or write" : access,
    ]);
  assert.deepEqual(
    Object.fromEntries(operations.map(({ name, operation }) => [name, accessOf(operation)])),
    Object.fromEntries(offered),
  );
});

test("document: examples → valid against their schemas", () => {
  let count = 0;
  for (const { name, operation } of operations) {
    for (const { schema, example } of Object.values(operation.requestBody?.content ?? {})) {
      if (example === undefined) continue;
      const validate = compile(schema);
      assert.ok(validate(example), `${name}: ${JSON.stringify(validate.errors)}`);
      count += 1;
    }
  }
  assert.ok(count >= 6, `only ${count} examples`);
});

test("document: schemas of responses → no undocumented members", () => {
  const schemas = DOCUMENT.components["schemas"] ?? {};
  const seen = new Set<string>();
  const walk = (schema: Schema): void => {
    const target = String(schema["$ref"] ?? "").replace("#/components/schemas/", "");
    if (target !== "" && !seen.has(target)) {
      seen.add(target);
      walk(schemas[target] as Schema);
    }
    if (schema["type"] === "object") assert.equal(schema["additionalProperties"], false, JSON.stringify(schema));
    for (const inner of Object.values(schema["properties"] ?? {})) walk(inner);
    for (const key of ["items", "prefixItems", "anyOf"])
      for (const inner of [schema[key] ?? []].flat()) walk(inner as Schema);
  };
  for (const { operation } of operations)
    for (const response of Object.values(operation.responses))
      for (const [type, { schema }] of Object.entries(resolveResponse(response).content ?? {}))
        if (type.includes("vnd.api")) walk(schema);
  assert.ok(seen.size > 25, `only ${seen.size} schemas`);
});

test("error codes: catalog → the same in document and client", () => {
  const schema = DOCUMENT.components["schemas"]?.["ErrorCode"];
  assert.deepEqual((schema as { enum: string[] }).enum.toSorted(), CODES);
  const [, union = ""] = /^export type ErrorCode =([^;]*);/m.exec(read("client/src/errors.ts")) ?? [];
  const inClient = [...union.matchAll(/"([^"]+)"/g)].map(([, code]) => code);
  const ofClient = ["endless-list", "invalid-response", "response-too-large"];
  assert.deepEqual(inClient.sort(), [...CODES, ...ofClient].sort());
});

test("error codes: catalog → one row each in docs/api.md, with the status", () => {
  const rows = [...read("docs/api.md").matchAll(/^\| `([a-z-]+)` \| (\d{3}(?:, \d{3})?|–) \|/gm)];
  // A full list has two statuses; a skipped entry of an import has none.
  const special: Record<string, string> = {
    "quota-exceeded": "422, 403",
    "duplicate-in-file": "–",
    "unsubscribed-in-file": "–",
  };
  const expected = Object.entries(ERRORS).map(([code, { status }]) => [code, special[code] ?? String(status)]);
  assert.equal(rows.length, expected.length);
  assert.deepEqual(Object.fromEntries(rows.map(([, code, status]) => [code, status])), Object.fromEntries(expected));
});

test("error codes: document → every code is listed for a response with its status", () => {
  const listed = operations.flatMap(({ operation }) =>
    Object.entries(operation.responses).flatMap(([status, response]) =>
      codesIn(resolveResponse(response)).map((code) => [status, code] as const),
    ),
  );
  for (const [status, code] of listed) {
    const expected = ERRORS[code as keyof typeof ERRORS].status;
    // A redirect to the page has the code in its URL.
    const isElsewhere = ["default", "200", "303"].includes(status) || code === "quota-exceeded";
    assert.ok(isElsewhere || status === String(expected), `${code} is listed for ${status}`);
  }
  const missing = CODES.filter((code) => !listed.some(([, name]) => name === code));
  assert.deepEqual(missing, []);
});
