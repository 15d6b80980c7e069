import assert from "node:assert/strict";
import { test } from "node:test";
import { createError, ERRORS, failure, RequestFailure } from "./catalog.ts";

test("errors: every code → kebab-case, a 4xx or 5xx status, a title and a detail that is a sentence", () => {
  for (const [code, { status, title, detail }] of Object.entries(ERRORS)) {
    assert.match(code, /^[a-z]+(-[a-z]+)*$/);
    assert.ok(status >= 400 && status < 600, code);
    assert.notEqual(title, "", code);
    assert.match(detail, /\.$/, code);
  }
});

test("errors: a placeholder in title and detail → filled with the value", () => {
  assert.equal(createError("not-found", { resource: "Token" }).title, "Token not found");
  const { detail } = createError("invalid-query", { parameter: "{reason}", reason: "must not be repeated" });
  assert.equal(detail, "The query parameter `{reason}` must not be repeated.");
});

test("errors: source, meta and id → part of the error; absent when not given", () => {
  const [source, meta] = [{ header: "Host" }, { max: 1 }];
  const { status, title, detail } = ERRORS["unknown-host"];
  const plain = { status, code: "unknown-host", title, detail };
  assert.deepEqual(createError("unknown-host"), plain);
  assert.deepEqual(createError("unknown-host", { id: "x", source, meta }), { id: "x", ...plain, source, meta });
});

test("errors: a failure → has the headers of its code and those given", () => {
  const thrown = failure("rate-limited", { limit: 1, unit: "requests", seconds: 2, headers: { "retry-after": "2" } });
  assert.ok(thrown instanceof RequestFailure);
  assert.equal(thrown.message, "Too Many Requests");
  assert.deepEqual(thrown.headers, { "retry-after": "2" });
  assert.deepEqual(failure("server-overloaded").headers, { "retry-after": "1" });
  assert.deepEqual(failure("server-overloaded", { headers: { a: "b" } }).headers, { "retry-after": "1", a: "b" });
});
