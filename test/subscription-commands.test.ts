import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { add, callServer, newId, temporaryFolder } from "./harness.ts";
import { startPostgres } from "./postgres.ts";
import { type Ended, run, start } from "./process.ts";

const ATOMIC = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
const OPML = `<opml version="2.0"><body><outline text="a" xmlUrl="https://a.example/1"/><outline text="b" xmlUrl="nonsense"/>
  <outline text="c" xmlUrl="http://A.example/1/"/><outline text="d" xmlUrl="feed://a.example/2"/></body></opml>`;

const lines = ({ stdout }: Ended) => stdout.split("\n").filter((line) => line !== "");
const postgres = await startPostgres();

for (const engine of ["SQLite", "PostgreSQL", "a server", "a server with accounts"] as const) {
  describe(`the list on the command line, on ${engine}`, async () => {
    const folder = temporaryFolder();
    const file = join(folder, "podcasts.opml");
    writeFileSync(file, OPML);
    const DATABASE_URL = engine === "PostgreSQL" ? await postgres.database() : `file:${join(folder, "earmark.db")}`;
    const settings: Record<string, string> = { DATABASE_URL };
    const place: string[] = [];
    if (engine.startsWith("a server")) {
      const accounts = engine.endsWith("accounts") ? { EARMARK_ACCOUNTS: "on" } : {};
      if (engine.endsWith("accounts")) {
        await run(["user", "add", "ann", "--password-stdin"], settings, folder, "a good password");
        const { stdout } = await run(["token", "create", "ann", "--label", "cli"], settings, folder);
        settings["EARMARK_TOKEN"] = stdout.trim();
      }
      const { url } = await start({ DATABASE_URL, ...accounts });
      place.push("--server", url);
    }
    const earmark = (...args: string[]) => run([...args, ...place], settings, folder);

    test("feeds are added, listed and removed", async () => {
      const added = await earmark("add", "https://podnews.net/rss", "http://Podnews.net/rss/", "nonsense");
      assert.equal(added.code, 1, "one was refused");
      assert.deepEqual(
        lines(added).map((line) => line.split("\t")[0]),
        ["added", "already-subscribed", "refused"],
      );
      assert.match(added.stderr, /1 added, 1 already there, 1 refused/);
      const listed = await earmark("list");
      assert.match(
        listed.stdout,
        /^9b024349-ccf0-5f69-a609-6b82873eab3c\t20\d\d-[\d:.TZ-]+\thttps:\/\/podnews\.net\/rss\n$/,
      );
      const json = lines(await earmark("list", "--json")).map((line) => JSON.parse(line));
      assert.equal(json[0].feed_url, "https://podnews.net/rss");
      const asked = await earmark("remove", "http://podnews.net/rss/");
      assert.equal(asked.code, 64, "nobody is there to ask");
      assert.equal(lines(await earmark("list")).length, 1);
      assert.equal((await earmark("remove", "http://PODNEWS.net/rss/", "--yes")).code, 0);
      assert.equal((await earmark("remove", "http://podnews.net/rss", "--yes")).code, 1);
      assert.equal((await earmark("list")).stdout, "");
    });

    test("a file is looked at, imported, and exported", async () => {
      const look = await earmark("import", file, "--dry-run", "--json");
      assert.deepEqual(
        lines(look).map((line) => JSON.parse(line).outcome),
        ["added", "refused", "already-subscribed", "added"],
      );
      assert.match(look.stderr, /Nothing was changed/);
      assert.equal((await earmark("list")).stdout, "");
      const done = await earmark("import", file);
      assert.equal(done.code, 1);
      assert.match(done.stdout, /^refused\tnonsense\t.* must start with http/m);
      const exported = await earmark("export");
      assert.equal(exported.code, 0);
      assert.match(exported.stdout, /xmlUrl="http:\/\/a\.example\/2"/);
      const again = await run(["import", "-", "--quiet", ...place], settings, folder, exported.stdout);
      assert.deepEqual([again.code, again.stderr], [0, ""]);
      assert.deepEqual(
        lines(again).map((line) => line.split("\t")[0]),
        ["already-subscribed", "already-subscribed"],
      );
      const from = await run(
        ["add", "-", ...place],
        settings,
        folder,
        "https://a.example/7\n\n  https://a.example/8  \n",
      );
      assert.equal(lines(from).length, 2);
    });

    test("what is no file, or no OPML file, is said to be none", async () => {
      assert.match((await earmark("import", "nowhere.opml")).stderr, /nowhere\.opml cannot be read/);
      const wrong = await run(["import", "-", ...place], settings, folder, "<html/>");
      assert.deepEqual([wrong.code, wrong.stdout], [1, ""]);
      assert.match(wrong.stderr, /not an OPML file/);
    });
  });
}

test("a server that cannot be reached, or refuses the token, is said to be so in one line", async () => {
  const away = await run(["list", "--server", "http://127.0.0.1:9"], {});
  assert.equal(away.code, 1);
  assert.match(away.stderr, /trying again/);
  assert.doesNotMatch(away.stderr, /at .*\.ts/);
  const folder = temporaryFolder();
  const { url } = await start({ DATABASE_URL: `file:${folder}/e.db`, EARMARK_ACCOUNTS: "on" });
  const refused = await run(["list", "--server", url], { EARMARK_TOKEN: "emk_wrong" });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /401/);
  assert.doesNotMatch(refused.stderr, /emk_wrong|at .*\.ts/);
});

test("in a database with accounts it must be said whose list", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/e.db` };
  await run(["user", "add", "ann", "--password-stdin"], settings, undefined, "a good password");
  const asked = await run(["list"], settings);
  assert.deepEqual([asked.code, asked.stdout], [1, ""]);
  assert.match(asked.stderr, /--user NAME/);
  assert.equal((await run(["add", "https://a.example/1", "--user", "ANN"], settings)).code, 0);
  assert.equal(lines(await run(["list", "--user", "ann"], settings)).length, 1);
  assert.match((await run(["list", "--user", "bob"], settings)).stderr, /There is no account "bob"/);
});

test("a database with accounts is not served without them by mistake", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/e.db`, PORT: "0" };
  await run(["user", "add", "ann", "--password-stdin"], settings, undefined, "a good password");
  const refused = await run(["serve"], settings);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /There are accounts .*EARMARK_ACCOUNTS=on/);
  const meant = await start({ ...settings, EARMARK_OPEN: "1" });
  assert.equal((await callServer(meant.port, "GET", "/v1/subscriptions")).status, 200);
});

describe("backups", () => {
  test("a backup is taken while the server writes, is whole, and can be restored with the server stopped", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    const server = await start(settings);
    let isStopped = false;
    let written = 0;
    const writing = (async () => {
      while (!isStopped) {
        const operations = Array.from({ length: 50 }, () => add(newId(), `https://a.example/${newId()}`));
        const { status } = await callServer(server.port, "POST", "/v1/operations", {
          headers: { "Content-Type": ATOMIC, Accept: ATOMIC },
          body: JSON.stringify({ "atomic:operations": operations }),
        });
        if (status === 200) written += 50;
      }
    })();
    const copy = join(folder, "copy.db");
    for (let tries = 0; tries < 100 && written < 500; tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 20));
    const before = written;
    const taken = await run(["backup", copy], settings);
    assert.deepEqual([taken.code, taken.stdout], [0, ""], taken.stderr);
    const rows = Number(/: (\d+) subscriptions/.exec(taken.stderr)?.[1]);
    assert.ok(rows >= before && rows % 50 === 0, `${rows} of one instant, after ${before} were answered`);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith("copy")),
      ["copy.db"],
    );
    assert.match((await run(["backup", copy], settings)).stderr, /is there already/);
    const refused = await run(["restore", copy, "--yes"], settings);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Another Earmark is running/);
    isStopped = true;
    await writing;
    server.child.kill();
    await server.ended;
    assert.ok(written > rows);
    assert.equal((await run(["restore", copy], settings)).code, 64, "nobody is there to ask");
    const restored = await run(["restore", copy, "--yes"], settings);
    assert.equal(restored.code, 0, restored.stderr);
    assert.equal(lines(await run(["list"], settings)).length, rows);
    const [kept = ""] = readdirSync(folder).filter((name) => name.startsWith("earmark.db-before-"));
    const old = await run(["list"], { DATABASE_URL: `file:${join(folder, kept)}` });
    assert.equal(lines(old).length, written, "what was there is kept");
  });

  test("a backup of PostgreSQL is a file that any engine takes back", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: await postgres.database() };
    await run(["add", "https://a.example/1", "https://a.example/2"], settings);
    const copy = join(folder, "copy.db");
    assert.equal((await run(["backup", copy], settings)).code, 0);
    assert.deepEqual(readdirSync(folder), ["copy.db"]);
    const listed = (await run(["list"], settings)).stdout;
    for (const DATABASE_URL of [`file:${join(folder, "other.db")}`, await postgres.database()]) {
      const restored = await run(["restore", copy, "--yes"], { DATABASE_URL });
      assert.equal(restored.code, 0, restored.stderr);
      assert.equal((await run(["list"], { DATABASE_URL })).stdout, listed);
    }
    assert.match((await run(["restore", copy, "--yes"], settings)).stderr, /not empty/);
  });

  for (const engine of ["SQLite", "PostgreSQL"])
    test(`restore on ${engine}: a backup with tokens and sessions → they are valid only with --keep-access`, async () => {
      const folder = temporaryFolder();
      const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
      const target = async (name: string) => ({
        DATABASE_URL: engine === "SQLite" ? `file:${join(folder, name)}` : await postgres.database(),
      });
      await run(["user", "add", "ann", "--password-stdin"], settings, undefined, "a good password");
      await run(["token", "create", "ann", "--label", "phone"], settings);
      await run(["user", "invite"], settings);
      const copy = join(folder, "copy.db");
      await run(["backup", copy], settings);
      const revived = "1 tokens, 0 sessions, 1 invitations";

      const untold = await target("untold.db");
      const refused = await run(["restore", copy, "--yes"], untold);
      assert.equal(refused.code, 64);
      assert.ok(refused.stderr.includes(`The backup has ${revived}`), refused.stderr);
      assert.match(refused.stderr, /--keep-access or --end-access/);
      assert.equal((await run(["user", "list"], untold)).stdout, "", "nothing was restored");
      const both = await run(["restore", copy, "--yes", "--keep-access", "--end-access"], untold);
      assert.equal(both.code, 64);

      for (const [flag, count] of [
        ["--keep-access", 1],
        ["--end-access", 0],
      ] as const) {
        const restored = await target(`${flag}.db`);
        const { code, stderr } = await run(["restore", copy, "--yes", flag], restored);
        assert.equal(code, 0, stderr);
        assert.ok(stderr.includes(revived), stderr);
        assert.match((await run(["user", "list"], restored)).stdout, /ann/);
        assert.equal(lines(await run(["token", "list", "ann"], restored)).length, count);
      }
    });

  test("restore: a trigger in the backup → refused, and nothing is changed", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    await run(["add", "https://a.example/1"], settings);
    const copy = join(folder, "copy.db");
    await run(["backup", copy], settings);
    const database = new DatabaseSync(copy);
    database.exec("create trigger spy after insert on subscriptions begin delete from gaps; end");
    database.close();
    await run(["add", "https://a.example/2"], settings);
    const { code, stderr } = await run(["restore", copy, "--yes"], settings);
    assert.equal(code, 1);
    assert.match(stderr, /has a trigger spy that Earmark did not create/);
    assert.equal(lines(await run(["list"], settings)).length, 2);
  });

  test("what is no backup, or a damaged one, is not restored", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    await run(["add", ...Array.from({ length: 200 }, (_, index) => `https://a.example/${index}`)], settings);
    const [copy, damaged, foreign] = ["copy.db", "damaged.db", "foreign.db"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await run(["backup", copy], settings);
    const bytes = readFileSync(copy);
    bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 6_000);
    writeFileSync(damaged, bytes);
    writeFileSync(foreign, "no database");
    const live = join(folder, "live.db");
    writeFileSync(live, readFileSync(copy));
    writeFileSync(`${live}-wal`, "what is not in the file yet");
    for (const path of [damaged, foreign, live, folder, join(folder, "nowhere.db")]) {
      const { code, stderr } = await run(["restore", path, "--yes"], settings);
      assert.equal(code, 1, path);
      assert.match(stderr, /damaged|not a database|not a backup|no file|malformed/i);
    }
    assert.equal(lines(await run(["list"], settings)).length, 200);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes("before")),
      [],
    );
  });

  test("a backup that fails leaves nothing behind", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    await run(["add", "https://a.example/1"], settings);
    const { code } = await run(["backup", join(folder, "nowhere", "copy.db")], settings);
    assert.equal(code, 1);
    assert.ok(!existsSync(join(folder, "nowhere")));
  });
});

describe("the doctor", () => {
  test("says what is well, and what to do about what is not", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "earmark.db");
    const settings = { DATABASE_URL: `file:${path}` };
    const fresh = await run(["doctor"], { ...settings, PORT: "9" });
    assert.equal(fresh.code, 0, fresh.stdout);
    assert.match(fresh.stdout, /no database at .* yet/);
    await run(["add", "https://a.example/1"], settings);
    chmodSync(path, 0o644);
    const found = await run(["doctor", "--json"], { ...settings, PORT: "9" });
    const states = lines(found).map((line) => JSON.parse(line));
    assert.ok(states.some(({ state, advice }) => state === "warning" && /chmod 600/.test(advice ?? "")));
    assert.ok(states.some(({ what }) => /journal_mode wal, synchronous full/.test(what)));
    writeFileSync(path, "no database");
    const broken = await run(["doctor"], { ...settings, PORT: "9" });
    assert.equal(broken.code, 1);
    assert.match(broken.stdout, /^wrong +.*not a database of Earmark\n +Set DATABASE_URL/m);
  });

  test("looks at PostgreSQL, and at a server and through its proxy", async () => {
    const settings = { DATABASE_URL: await postgres.database() };
    const server = await start(settings);
    const proxy = createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end());
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    after(() => proxy.close());
    const wrong = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const well = await run(["doctor", "--server", server.url], { ...settings, PORT: String(server.port) });
    assert.equal(well.code, 0, well.stdout);
    assert.match(well.stdout, /^ok +PostgreSQL \d+/m);
    assert.match(well.stdout, /^ok +A server is ready/m);
    assert.match(well.stdout, /leads to Earmark/);
    assert.match((await run(["doctor", "--server", wrong], settings)).stdout, /The proxy changes content-type/);
    const away = await run(["doctor", "--server", "http://127.0.0.1:9"], {
      DATABASE_URL: "postgres://x:secret@127.0.0.1:9/y",
    });
    assert.equal(away.code, 1);
    assert.doesNotMatch(away.stdout + away.stderr, /secret/);
  });
});

test("nothing in a file can steer the terminal that shows it", async () => {
  const settings = { DATABASE_URL: `file:${temporaryFolder()}/e.db` };
  const hostile = '<opml><body><outline text="x" xmlUrl="&#27;[2Jhttps://a.example/&#155;31m"/></body></opml>';
  const { stdout } = await run(["import", "-"], settings, undefined, hostile);
  assert.match(stdout, /^refused\t/);
  assert.doesNotMatch(stdout.replaceAll(/[\t\n]/g, ""), /\p{Cc}/u);
});

test("settings are shown as they are in force, and secrets are not", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "password"), "from a file\n");
  const settings = {
    PORT: "9000",
    DATABASE_URL: "postgres://me:s3cret@db.example/earmark",
    EARMARK_ACCOUNTS: "on",
    EARMARK_FIRST_USER: "ann",
    EARMARK_FIRST_PASSWORD_FILE: join(folder, "password"),
  };
  const shown = await run(["config"], settings);
  assert.match(shown.stdout, /^PORT\t9000\tenvironment$/m);
  assert.match(shown.stdout, /^HOST\t127\.0\.0\.1\tdefault$/m);
  assert.match(shown.stdout, /^DATABASE_URL\tpostgres:\/\/db\.example\/earmark\tenvironment$/m);
  assert.match(shown.stdout, /^EARMARK_FIRST_PASSWORD\t\(secret\)\tfile /m);
  assert.doesNotMatch(shown.stdout, /s3cret|from a file/);
  assert.equal((await run(["config"], { PORT: "x" })).code, 78);
});

test("a typing error is answered with what was probably meant", async () => {
  for (const [typed, meant] of [
    [["lst"], /Did you mean "list"\?/],
    [["improt", "x"], /Did you mean "import"\?/],
    [["usr", "add", "x"], /Did you mean "user add"\?/],
    [["user"], /"user" needs one of these after it: add, list/],
    [["add"], /it is: earmark add URL\.\.\./],
    [["list", "--dry-run"], /"list" has no option --dry-run/],
    [["list", "--nonsense"], /nonsense/],
  ] as const) {
    const { code, stdout, stderr } = await run(typed);
    assert.deepEqual([code, stdout], [64, ""], typed.join(" "));
    assert.match(stderr, meant);
  }
});

test("help has examples first, for everything and for each command", async () => {
  const all = await run(["--help"]);
  assert.equal(all.code, 0);
  assert.ok(all.stdout.indexOf("Examples") < all.stdout.indexOf("Commands"));
  for (const name of ["serve", "import FILE|-", "token revoke NAME ID", "completion bash|zsh|fish"])
    assert.ok(all.stdout.includes(`  ${name} `), name);
  const one = await run(["token", "create", "--help"]);
  assert.match(one.stdout, /^earmark token create NAME: .*\n\nExamples\n {2}earmark token create ann --label phone/);
  assert.match(one.stdout, /--read-only/);
});

test("there is completion for the shells that people use", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await run(["completion", shell]);
    assert.equal(code, 0);
    for (const word of ["serve", "import", "user", "revoke", "dry-run"])
      assert.ok(stdout.includes(word), `${shell}: ${word}`);
  }
  assert.equal((await run(["completion", "tcsh"])).code, 1);
  const { stdout: script } = await run(["completion", "bash"]);
  const complete = (...words: string[]) => {
    const test = `${script}\nCOMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${words.length - 1}; _earmark; echo "\${COMPREPLY[@]}"`;
    const { stdout, error } = spawnSync("bash", ["-c", test], { encoding: "utf8" });
    assert.equal(error, undefined, "bash comes with git on every system that git runs on");
    return stdout.trim().split(" ");
  };
  assert.deepEqual(complete("earmark", "im"), ["import"]);
  assert.deepEqual(complete("earmark", "token", ""), ["create", "list", "revoke"]);
  assert.deepEqual(complete("earmark", "token", "create", "--l"), ["--label"]);
  assert.deepEqual(complete("earmark", "import", "--d"), ["--dry-run"]);
});
