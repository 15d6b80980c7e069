import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf } from "../../../../test/support/jsonapi.ts";
import type { Credential } from "../../../accounts/account-store.ts";
import { writeOne, writePageOf } from "../../../jsonapi/document.ts";
import {
  credentialResource,
  ownAccountResource,
  readFollowMoves,
  readNewPassword,
  readNewToken,
  readSignIn,
  readSignUp,
} from "./accounts.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");

const document = (type: string, attributes: unknown) => ({ data: { type, attributes } });

test("account documents: valid → attributes are read", () => {
  assert.deepEqual(readSignIn(document("session", { name: "ann", password: "p" })), {
    kind: "password",
    name: "ann",
    password: "p",
    oneTimeCode: undefined,
  });
  assert.deepEqual(readSignUp(document("account", { name: "ann", password: "p" })), {
    name: "ann",
    password: "p",
    invitation: undefined,
  });
  assert.deepEqual(readSignUp(document("account", { name: "ann", password: "p", invitation: "i" })), {
    name: "ann",
    password: "p",
    invitation: "i",
  });
  assert.deepEqual(readNewPassword(document("account", { current_password: "c", password: "p" })), {
    current: "c",
    password: "p",
    revokesTokens: false,
  });
});

test("account documents: follow_moves → read, unless the password is to be changed", () => {
  const read = (attributes: object) => readFollowMoves(document("account", attributes));
  assert.deepEqual([read({ follow_moves: true }), read({ follow_moves: false })], [true, false]);
  assert.equal(read({ current_password: "c", password: "p" }), undefined);
  for (const attributes of [{ follow_moves: null }, { follow_moves: "true" }, { follow_moves: true, password: "p" }]) {
    const { status, code, source } = failureOf(() => read(attributes));
    assert.deepEqual([status, code, source], [422, "invalid-attribute", { pointer: "/data/attributes/follow_moves" }]);
  }
});

test("account documents: malformed → 400 with a pointer to the value", () => {
  const read = (given: unknown) => failureOf(() => readSignIn(given));
  const malformed = (detail: string, pointer: string) => ({
    status: 400,
    code: "malformed-document",
    title: "Malformed Document",
    detail,
    source: { pointer },
  });
  const noData = "The document must have a `data` member with exactly one resource object.";
  assert.deepEqual(read([]), malformed("The document must be a JSON object.", ""));
  assert.deepEqual(read({}), malformed(noData, ""));
  assert.deepEqual(read({ data: [] }), malformed(noData, "/data"));
  assert.deepEqual(read({ data: {} }), malformed('`type` must be "session".', "/data"));
  assert.deepEqual(read({ data: { type: "account" } }), {
    status: 409,
    code: "type-mismatch",
    title: "Type Mismatch",
    detail: 'Invalid `type`: it must be "session".',
    source: { pointer: "/data/type" },
  });
  const invalid = {
    status: 422,
    code: "invalid-attribute",
    title: "Validation Failed",
    detail: "`attributes` must be an object.",
  };
  assert.deepEqual(read({ data: { type: "session" } }), { ...invalid, source: { pointer: "/data" } });
  assert.deepEqual(read(document("session", [])), { ...invalid, source: { pointer: "/data/attributes" } });
});

test("account documents: text missing, not a string or too long → rejected, names the attribute", () => {
  const LONGEST: readonly (readonly [name: string, length: number, read: (given: unknown) => unknown, type: string])[] =
    [
      ["name", 256, readSignIn, "session"],
      ["password", 512, readSignIn, "session"],
      ["name", 256, readSignUp, "account"],
      ["password", 512, readSignUp, "account"],
      ["invitation", 256, readSignUp, "account"],
      ["current_password", 512, readNewPassword, "account"],
      ["password", 512, readNewPassword, "account"],
    ];
  for (const [name, length, read, type] of LONGEST) {
    const all = { name: "ann", password: "p", current_password: "c", invitation: "i" };
    const withValue = (value: unknown) => () => read(document(type, { ...all, [name]: value }));
    withValue("x".repeat(length))();
    const invalid = (code: string, detail: string, pointer: string) => ({
      status: 422,
      code,
      title: "Validation Failed",
      detail,
      source: { pointer },
    });
    const code = name === "invitation" ? "invalid-attribute" : `invalid-${name.replace("current_", "")}`;
    const pointer = `/data/attributes/${name}`;
    assert.deepEqual(failureOf(withValue("x".repeat(length + 1))), invalid(code, `\`${name}\` is too long.`, pointer));
    assert.deepEqual(failureOf(withValue(null)), invalid(code, `\`${name}\` must be a string.`, pointer));
    if (name !== "invitation")
      assert.deepEqual(
        failureOf(withValue(undefined)),
        invalid("attribute-missing", `Missing attribute: \`${name}\` is required.`, "/data/attributes"),
      );
  }
});

const newToken = (more: object) => readNewToken(document("token", { label: "phone", scope: "read", ...more }), NOW);

test("new token: label, scope, optional expiry → read", () => {
  assert.deepEqual(newToken({}), { label: "phone", scope: "read", expiresAt: undefined });
  assert.deepEqual(newToken({ scope: "write", expires_at: null }), {
    label: "phone",
    scope: "write",
    expiresAt: undefined,
  });
  for (const expires_at of ["2026-01-02T03:04:05.679Z", "2026-01-02T03:04:06Z", "2026-01-02T03:04:06.1Z"])
    assert.deepEqual(newToken({ expires_at }).expiresAt, new Date(expires_at));
});

test("new token: label with 0 or over 100 characters, or with control characters → rejected", () => {
  const reason = (label: unknown) => {
    const { status, detail, source } = failureOf(() => newToken({ label }));
    assert.equal(status, 422);
    assert.deepEqual(source, { pointer: "/data/attributes/label" });
    return detail;
  };
  for (const label of ["x", "x".repeat(100), "🎧".repeat(100), "👩‍👩‍👧"])
    assert.equal(newToken({ label }).label, label);
  for (const label of ["", "x".repeat(101), "🎧".repeat(101), "x".repeat(400)])
    assert.equal(reason(label), "`label` must have 1 to 100 characters.");
  assert.equal(reason("x".repeat(401)), "`label` is too long.");
  for (const label of ["a\nb", "\u0000", "\ud800"])
    assert.equal(reason(label), "`label` must not contain control characters or lone surrogates.");
});

test("new token: scope other than read or write → rejected", () => {
  const given = (scope: unknown) => {
    const { code, source } = failureOf(() => newToken({ scope }));
    return [code, source];
  };
  assert.deepEqual(given(undefined), ["attribute-missing", { pointer: "/data/attributes" }]);
  for (const scope of ["", "admin", null, ["read"]])
    assert.deepEqual(given(scope), ["invalid-scope", { pointer: "/data/attributes/scope" }]);
});

test("new token: expiry not a valid future timestamp → rejected", () => {
  for (const expires_at of [
    "2026-01-02T03:04:05.678Z",
    "2026-01-02T03:04:05Z",
    "2026-02-30T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2027-01-01",
    "2027-01-01T00:00Z",
    "2027-01-01T00:00:00+00:00",
    "2027-01-01T00:00:00.1234Z",
    " 2027-01-01T00:00:00Z",
    "+002027-01-01T00:00:00Z",
    "2027-01-01T00:00:00Z (noon)",
    "x",
    "",
    0,
    1_900_000_000_000,
    {},
  ]) {
    assert.deepEqual(
      failureOf(() => newToken({ expires_at })),
      {
        status: 422,
        code: "invalid-expiry",
        title: "Validation Failed",
        detail: "Invalid expiry: `expires_at` must be a future timestamp (YYYY-MM-DDTHH:mm:ss.sssZ) or null.",
        source: { pointer: "/data/attributes/expires_at" },
      },
      JSON.stringify(expires_at),
    );
  }
});

const ANN = { user: 7, name: "ann", issuer: "", createdAt: NOW, isAdmin: true, followsMoves: true };
const TOKEN: Credential = {
  id: "t",
  kind: "token",
  user: 7,
  scope: "read",
  label: "phone",
  createdAt: NOW,
  usedAt: undefined,
  expiresAt: undefined,
};

test("account document: written → no internal fields", () => {
  assert.deepEqual(ownAccountResource(ANN, "/p"), {
    type: "account",
    id: "7",
    attributes: {
      name: "ann",
      issuer: null,
      role: "administrator",
      created_at: "2026-01-02T03:04:05.678Z",
      follow_moves: true,
    },
    links: { self: "/p/v1/me" },
  });
  assert.deepEqual(
    ownAccountResource(
      { ...ANN, issuer: "https://id.example", createdAt: undefined, isAdmin: undefined, followsMoves: false },
      "",
    ).attributes,
    {
      name: "ann",
      issuer: "https://id.example",
      role: null,
      created_at: null,
      follow_moves: false,
    },
  );
});

test("credential document: token → has a scope; session → has none; other attributes only if given", () => {
  const attributes = {
    label: "phone",
    created_at: "2026-01-02T03:04:05.678Z",
    last_used_at: null,
    expires_at: null,
  };
  assert.deepEqual(credentialResource(TOKEN, "/p"), {
    type: "token",
    id: "t",
    attributes: { ...attributes, scope: "read" },
    links: { self: "/p/v1/tokens/t" },
  });
  const session = { ...TOKEN, kind: "session", usedAt: NOW, expiresAt: NOW } as const;
  assert.deepEqual(credentialResource(session, "", { current: true }), {
    type: "session",
    id: "t",
    attributes: {
      ...attributes,
      last_used_at: "2026-01-02T03:04:05.678Z",
      expires_at: "2026-01-02T03:04:05.678Z",
      current: true,
    },
    links: { self: "/v1/sessions/t" },
  });
});

test("account documents: one resource → document; many → page with links", () => {
  const resources = ["a", "b", "c", "d", "e"].map((id) => credentialResource({ ...TOKEN, id }, ""));
  const [first = assert.fail()] = resources;
  assert.deepEqual(JSON.parse(writeOne(first)), { jsonapi: { version: "1.1" }, data: first });
  assert.deepEqual(JSON.parse(writeOne(first, { x: 1 })).meta, { x: 1 });
  const page = (number: number) => JSON.parse(writePageOf(resources, "/v1/tokens", { number, size: 2 }));
  assert.deepEqual(page(1).data, resources.slice(0, 2));
  assert.deepEqual(page(2).data, resources.slice(2, 4));
  assert.deepEqual(page(3).data, resources.slice(4));
  assert.deepEqual(page(4).data, []);
  assert.deepEqual(page(2).meta, { total: 5 });
  assert.deepEqual(page(2).jsonapi, { version: "1.1" });
  assert.equal(page(2).links.next, "/v1/tokens?page[number]=3&page[size]=2");
  assert.equal(page(3).links.next, null);
});
