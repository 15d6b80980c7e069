import assert from "node:assert/strict";
import { test } from "node:test";
import { suggest } from "../util/suggest.ts";
import { readConfig } from "./config.ts";

const read = (environment: Record<string, string>) =>
  readConfig(environment, "/srv", { installation: "/srv", exists: () => false, read: () => "p" });

/** Each name and value of version 0.1, its successor, and what else is needed. */
const DEPRECATED: readonly (readonly [old: string, current: string, others?: string[]])[] = [
  ["EARMARK_OPEN=1", "EARMARK_ALLOW_ANONYMOUS=true"],
  ["EARMARK_OPEN=0", "EARMARK_ALLOW_ANONYMOUS=false"],
  ["EARMARK_OPEN=true", "EARMARK_ALLOW_ANONYMOUS=true"],
  ["EARMARK_ACCOUNTS=on", "EARMARK_ACCOUNTS=true"],
  ["EARMARK_ACCOUNTS=off", "EARMARK_ACCOUNTS=false"],
  ["EARMARK_METRICS=1", "EARMARK_METRICS=true"],
  ["EARMARK_METRICS=0", "EARMARK_METRICS=false"],
  ["EARMARK_SIGN_UP=open", "EARMARK_SIGN_UP=true", ["EARMARK_ACCOUNTS=true"]],
  ["EARMARK_SIGN_UP=closed", "EARMARK_SIGN_UP=false", ["EARMARK_ACCOUNTS=true"]],
  ["EARMARK_OIDC_SIGN_UP=closed", "EARMARK_OIDC_SIGN_UP=false"],
  [
    "EARMARK_OIDC_SIGN_UP=open",
    "EARMARK_OIDC_SIGN_UP=true",
    ["EARMARK_ACCOUNTS=true", "EARMARK_OIDC_ISSUER=https://id.example", "EARMARK_OIDC_AUDIENCE=x"],
  ],
  ["EARMARK_FIRST_USER=ann", "EARMARK_ADMIN_USER=ann", ["EARMARK_ACCOUNTS=true", "EARMARK_ADMIN_PASSWORD=p"]],
  ["EARMARK_FIRST_PASSWORD=p", "EARMARK_ADMIN_PASSWORD=p", ["EARMARK_ACCOUNTS=true", "EARMARK_ADMIN_USER=ann"]],
  [
    "EARMARK_FIRST_PASSWORD_FILE=/p",
    "EARMARK_ADMIN_PASSWORD_FILE=/p",
    ["EARMARK_ACCOUNTS=true", "EARMARK_ADMIN_USER=ann"],
  ],
];

for (const [old, current, others = []] of DEPRECATED) {
  test(`config: ${old} of version 0.1 → works like ${current}, with a warning`, () => {
    const readAll = (...settings: string[]) =>
      read(Object.fromEntries(settings.map((setting) => setting.split("=", 2))));
    const { warnings, ...config } = readAll(old, ...others);
    const { warnings: none, ...expected } = readAll(current, ...others);
    assert.deepEqual(config, expected);
    assert.deepEqual(none, []);
    assert.ok(
      warnings.some((warning) => warning.includes(`use ${current.split("=")[0]}`)),
      warnings.join(),
    );
  });
}

test("config: a setting that no longer has an effect → ignored, with a warning", () => {
  const { warnings, ...config } = read({ EARMARK_MAX_QUEUED_OPERATIONS: "1" });
  const { warnings: none, ...expected } = read({});
  assert.deepEqual([config, none], [expected, []]);
  assert.deepEqual(warnings, ["EARMARK_MAX_QUEUED_OPERATIONS no longer has an effect; remove it."]);
});

test("config: an old and a new name → the new one wins", () => {
  const { allowAnonymous, warnings } = read({ EARMARK_OPEN: "1", EARMARK_ALLOW_ANONYMOUS: "false" });
  assert.equal(allowAnonymous, false);
  assert.equal(warnings.length, 1);
});

test("config: a warning about an old password setting → does not contain the password", () => {
  const { warnings } = read({ EARMARK_ACCOUNTS: "on", EARMARK_FIRST_USER: "ann", EARMARK_FIRST_PASSWORD: "canary" });
  assert.equal(warnings.length, 3);
  assert.doesNotMatch(warnings.join(), /canary/);
});

test("suggest: a typo → the closest word; something else → nothing", () => {
  const words = ["list", "user list", "backup"];
  assert.equal(suggest("lst", words), "list");
  assert.equal(suggest("bakcup", words), "backup");
  assert.equal(suggest("usr list", words), "user list");
  assert.equal(suggest("frobnicate", words), undefined);
});
