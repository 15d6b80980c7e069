import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "../config/config.ts";
import { rejectReservedPath } from "./serve.ts";

const ROUTES = ["/", "/v1/subscriptions/:id", "/docs", "/healthz", "/openapi.json", "/login/v2", "/index.php/login/v2"];

test("base path: starts with a path of the server → rejected", () => {
  for (const path of ["/v1", "/docs", "/healthz/x", "/openapi.json", "/index.php"])
    assert.throws(() => rejectReservedPath(path, ROUTES), ConfigError, path);
});

test("base path: any other → accepted", () => {
  for (const path of ["", "/earmark", "/v1x", "/pods/v1", "/docs-of-mine", "/login"]) rejectReservedPath(path, ROUTES);
});
