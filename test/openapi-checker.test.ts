import assert from "node:assert/strict";
import { test } from "node:test";
import { type ActualResponse, checkResponse } from "./support/openapi.ts";
import { ATOMIC, newId, PLAIN } from "./support/server.ts";

const id = newId();
const path = `/v1/subscriptions/${id}`;
const headers = {
  vary: "Accept",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "content-type": PLAIN,
};
const jsonapi = { version: "1.1" };
const data = {
  type: "subscription",
  id,
  attributes: { feed_url: "https://feeds.example/", user_subscribed_at: "2026-11-15T09:30:00.000Z" },
  links: { self: path },
};
const error = { status: "404", code: "not-found", title: "Subscription not found", detail: "Not found." };
const found: ActualResponse = { status: 200, headers, text: JSON.stringify({ jsonapi, data }) };
const missing: ActualResponse = { status: 404, headers, text: JSON.stringify({ jsonapi, errors: [error] }) };
const withHeaders = (more: ActualResponse["headers"]): ActualResponse => ({
  ...found,
  headers: { ...headers, ...more },
});
const withDocument = (document: object): ActualResponse => ({ ...found, text: JSON.stringify(document) });
const withData = (more: object) => withDocument({ jsonapi, data: { ...data, ...more } });
const withError = (more: object): ActualResponse => ({
  ...missing,
  text: JSON.stringify({ jsonapi, errors: [{ ...error, ...more }] }),
});

test("checker: documented responses → accepted", () => {
  checkResponse("GET", path, "", found);
  checkResponse("GET", path, "", missing);
  checkResponse("HEAD", path, "", { ...found, text: "" });
  checkResponse("GET", `/pods${path}?fields[subscription]=`, "/pods", found);
});

const FAULTS: Readonly<
  Record<string, readonly [method: string, path: string, actual: ActualResponse, message: RegExp]>
> = {
  "missing member": ["GET", path, withDocument({ data }), /must have required property 'jsonapi'/],
  "additional member": ["GET", path, withData({ links: { self: path, related: null } }), /\/data\/links must NOT have/],
  "wrong type": ["GET", path, withData({ id: 1 }), /\/data\/id must be string/],
  "id in upper case": ["GET", path, withData({ id: id.replace("8", "A") }), /\/data\/id must match/],
  "impossible date": [
    "GET",
    path,
    withData({ attributes: { user_subscribed_at: "2026-13-15T09:30:00.000Z" } }),
    /user_subscribed_at must match format/,
  ],
  "invalid JSON": ["GET", path, { ...found, text: "{" }, /must be object/],
  "undocumented status": ["GET", path, { ...found, status: 202 }, /undocumented/],
  "other media type": ["GET", path, withHeaders({ "content-type": "application/json" }), /Content-Type/],
  charset: ["GET", path, withHeaders({ "content-type": `${PLAIN}; charset=utf-8` }), /Content-Type/],
  "other dialect": ["GET", path, withHeaders({ "content-type": ATOMIC }), /Content-Type/],
  "missing header": ["GET", path, withHeaders({ vary: undefined }), /header vary/],
  "header with another value": ["GET", path, withHeaders({ "cache-control": "public" }), /header cache-control/],
  "undocumented cookie": ["GET", path, withHeaders({ "set-cookie": ["a=b"] }), /header set-cookie is undocumented/],
  "body of a HEAD response": ["HEAD", path, found, /body must be empty/],
  "body of a 204 response": ["DELETE", path, { ...found, status: 204 }, /Content-Type/],
  "unknown code": ["GET", path, withError({ code: "no-such-code" }), /code must be equal/],
  "code of another status": ["GET", path, withError({ code: "invalid-id" }), /undocumented here/],
  "title of another error": ["GET", path, withError({ code: "unknown-path", title: "Gone" }), /the title of/],
  "status as a number": ["GET", path, withError({ status: 404 }), /\/errors\/0\/status must be string/],
  "other status in the document": ["GET", path, withError({ status: "409" }), /the status in the document is 409/],
  "404 instead of 405": ["PUT", path, missing, /undocumented here/],
  "200 for an unknown path": ["GET", "/v1/nothing", found, /undocumented/],
};
for (const [name, [method, target, actual, message]] of Object.entries(FAULTS))
  test(`checker: ${name} → rejected`, () => assert.throws(() => checkResponse(method, target, "", actual), message));
