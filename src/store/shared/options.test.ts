import assert from "node:assert/strict";
import { test } from "node:test";
import { displayNameOf } from "./options.ts";

test("database name: a URL → without user, password and parameters", () => {
  assert.equal(displayNameOf("file:/var/lib/earmark.db"), "/var/lib/earmark.db");
  assert.equal(displayNameOf("/srv/file:x"), "/srv/file:x");
  assert.equal(displayNameOf("postgres://ann:secret@db.example:5432/earmark"), "postgres://db.example:5432/earmark");
  assert.equal(displayNameOf("postgres://db.example/earmark?password=secret\n&x=1"), "postgres://db.example/earmark");
  assert.equal(displayNameOf("postgres://db.example/earmark"), "postgres://db.example/earmark");
  assert.equal(displayNameOf("postgres://db.example/a@b"), "postgres://db.example/a@b");
  assert.equal(displayNameOf("postgres://db.example?user=a@b"), "postgres://db.example");
  assert.equal(displayNameOf("postgres://a:1,b:2/earmark"), "postgres://a:1,b:2/earmark");
  assert.equal(displayNameOf("file:C:/x?y"), "C:/x?y");
});
