import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  addUser,
  CONCURRENT,
  createToken,
  ENGINES,
  earmark,
  list,
  OTHER_PASSWORD,
} from "../../test/support/account-commands.ts";

const URL = { EARMARK_PUBLIC_URL: "https://pods.example/ear", EARMARK_BASE_PATH: "/ear" };

for (const [engine, newDatabase] of ENGINES) {
  describe(`administration commands on ${engine}`, CONCURRENT, () => {
    test("administration commands: each command → has its effect and is in the audit log", async () => {
      const database = await newDatabase();
      for (const name of ["ann", "bob"]) await addUser(database, name);
      const run = async (args: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
        const { code, stdout, stderr } = await earmark(database, args, { settings });
        assert.equal(code, 0, stderr);
        return { stdout, said: stderr.split("\n").at(-2) };
      };
      const fail = async (args: readonly string[], message: RegExp) => {
        const { code, stderr } = await earmark(database, args);
        assert.equal(code, 1);
        assert.match(stderr, message);
      };
      const states = async () =>
        (await list(database, "user", "list")).map(({ name, role, state }) => [name, role, state]);

      await fail(["user", "admin", "ann", "--revoke"], /only administrator/);
      await fail(["user", "disable", "ann"], /only administrator/);
      await fail(["user", "delete", "ann", "--yes"], /only administrator/);
      assert.equal((await run(["user", "admin", "bob"])).said, '"bob" is now an administrator.');
      assert.equal((await run(["user", "admin", "ann", "--revoke"])).said, '"ann" is no longer an administrator.');
      await run(["user", "disable", "ann"]);
      assert.deepEqual(await states(), [
        ["ann", "member", "disabled"],
        ["bob", "administrator", "enabled"],
      ]);
      await fail(["user", "reset-password", "ann"], /disabled/);
      await fail(["token", "create", "ann", "--label", "x"], /disabled/);
      await run(["user", "enable", "ann"]);
      assert.match((await run(["user", "reset-password", "ann"])).stdout, /^\/reset-password#emr_[\w-]{43}\n$/);
      const reset = await run(["user", "reset-password", "ann"], URL);
      assert.match(reset.stdout, /^https:\/\/pods\.example\/ear\/reset-password#emr_[\w-]{43}\n$/);

      const invited = await run(["user", "invite", "--days", "2", "--note", "for Carol"], URL);
      assert.match(invited.stdout, /^https:\/\/pods\.example\/ear\/join#emi_[\w-]{43}\n$/);
      const [invitation] = await list(database, "user", "invitations");
      assert.equal(invitation?.["note"], "for Carol");
      await run(["user", "revoke-invitation", String(invitation?.["id"])]);
      assert.deepEqual(await list(database, "user", "invitations"), []);
      await fail(["user", "revoke-invitation", String(invitation?.["id"])], /No invitation/);
      await fail(["user", "revoke-invitation", "1"], /No invitation/);

      await createToken(database, "ann");
      const input = { input: OTHER_PASSWORD };
      const changed = await earmark(database, ["user", "passwd", "ann", "--password-stdin", "--revoke-tokens"], input);
      assert.equal(changed.code, 0, changed.stderr);
      assert.deepEqual(await list(database, "token", "list", "ann"), []);
      const withoutApp = await run(["user", "reset-second-factor", "ann"]);
      assert.match(String(withoutApp.said), /^"ann" has no authenticator app/);
      await run(["user", "delete", "ann", "--yes"]);

      const entries = await list(database, "audit");
      assert.ok(entries.every(({ actor, address }) => actor === "command line" && address === null));
      assert.deepEqual(entries.map(({ action, target }) => `${action} ${target}`).toReversed(), [
        "account-created ann",
        "account-created bob",
        "administrator-added bob",
        "administrator-removed ann",
        "account-disabled ann",
        "account-enabled ann",
        "reset-link-created ann",
        "reset-link-created ann",
        "invitation-created for Carol",
        "invitation-revoked for Carol",
        "password-reset ann",
        "account-deleted ann",
      ]);
    });
  });
}
