import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { test } from "node:test";
import "../../test/support/fast-passwords.ts";
import { HashQueueFull, hashPassword, type PasswordProblem, validatePassword, verifyPassword } from "./passwords.ts";

const PASSWORD = "correct horse battery staple";
/** A hash of "password" that is cheap to verify. */
const CHEAP = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

test("hash: the same password twice → different hashes that both verify", async () => {
  const [one, other] = await Promise.all([hashPassword(PASSWORD), hashPassword(PASSWORD)]);
  assert.notEqual(one, other);
  assert.equal(await verifyPassword(PASSWORD, one), true);
  assert.equal(await verifyPassword(PASSWORD, other), true);
});

/** The first two come from argon2-cffi 25.1.0, the others from the tests of the reference implementation. */
const FROM_OTHER_TOOLS: readonly (readonly [password: string, hash: string])[] = [
  [PASSWORD, "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$gy5SuVm5Z7Vw7keB9se9p87QGcomaseB/S2U1OhTsM0"],
  ["p\u00e4ssw\u00f6rd 🎧\0 ", "$argon2id$v=19$m=8192,t=3,p=2$ZWFybWFyay1zYWx0$vcA9Vpo8KOoBTJrvXAMedPo5TRA+iJ6K"],
  ["password", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"],
  ["password", CHEAP],
];
for (const [password, hash] of FROM_OTHER_TOOLS) {
  test(`verify: hash of another implementation, ${hash.slice(0, 32)} → accepted`, async () => {
    assert.equal(await verifyPassword(password, hash), true);
    assert.equal(await verifyPassword(`${password}x`, hash), false);
    const last = hash.length - 5;
    const changed = hash.slice(0, last) + (hash[last] === "A" ? "B" : "A") + hash.slice(last + 1);
    assert.equal(await verifyPassword(password, changed), false);
  });
}

const SIMILAR: Record<string, readonly [string, string]> = {
  case: ["Correct horse", "correct horse"],
  "a leading space": [" correct horse", "correct horse"],
  "a trailing space": ["correct horse ", "correct horse"],
  "a trailing newline": ["correct horse\n", "correct horse"],
  "the part after a NUL": ["correct\0horse", "correct\0mouse"],
  "a trailing NUL": ["correct horse\0", "correct horse"],
  "the part after 72 bytes": [`${"0123456789".repeat(8)}a`, `${"0123456789".repeat(8)}b`],
  "the part after 255 bytes": [`${"é".repeat(200)}a`, `${"é".repeat(200)}b`],
  "an emoji": ["🎧 and 🎤", "🎧 and 🎧"],
  "the skin tone of an emoji": ["waving 👋🏽👋🏽", "waving 👋👋"],
  "Unicode composition": ["caf\u00e9 cr\u00e8me", "cafe\u0301 cre\u0300me"],
  "full-width letters": ["ｃｏｒｒｅｃｔ", "correct"],
};
for (const [what, [one, other]] of Object.entries(SIMILAR)) {
  test(`verify: a password that differs in ${what} → wrong`, async () => {
    const hashed = await hashPassword(one);
    assert.equal(await verifyPassword(one, hashed), true);
    assert.equal(await verifyPassword(other, hashed), false);
  });
}

test("verify: an empty password → wrong", async () => {
  assert.equal(await verifyPassword("", await hashPassword(PASSWORD)), false);
});

test("verify: no hash → wrong", async () => {
  for (const none of [undefined, ""])
    for (const password of [PASSWORD, "", "undefined"]) assert.equal(await verifyPassword(password, none), false);
});

test("verify: an unreadable hash → an error", async () => {
  const hashed = await hashPassword(PASSWORD);
  for (const broken of [
    "x",
    PASSWORD,
    hashed.slice(1),
    ` ${hashed}`,
    `${hashed}\n`,
    `${hashed}=`,
    hashed.slice(0, hashed.lastIndexOf("$")),
    hashed.replace("argon2id", "argon2i"),
    hashed.replace("v=19", "v=16"),
  ])
    await assert.rejects(verifyPassword(PASSWORD, broken), /unknown format/);
});

/** `count` characters that are not all the same. */
const long = (count: number, characters = ["x", "y", "z"]) =>
  Array.from({ length: count }, (_, index) => characters[index % characters.length]).join("");
const EMOJI = ["🎧", "🎤", "🎙"];

const ALLOWED: Record<string, string> = {
  "has 8 characters": "kv7-Qz!m",
  "has 8 characters outside the BMP": long(8, EMOJI),
  "has 256 characters": long(256),
  "has 256 characters outside the BMP": long(256, EMOJI),
  "has a leading and a trailing space": " kv7-Qz ",
  "has a NUL": "kv7-\0-Qz",
  "has non-Latin letters": "пароль мой",
  "contains the name": "annabelle2",
  "begins with a common password": "password-7q",
};
for (const [what, password] of Object.entries(ALLOWED)) {
  test(`new password: ${what} → accepted`, async () =>
    assert.equal(await validatePassword(password, "annabelle"), undefined));
}

const REFUSED: Record<string, readonly [PasswordProblem, ...string[]]> = {
  "is too short": ["too-short", "", "kv7-Qz!", long(7, EMOJI)],
  "is too long": ["too-long", long(257), long(257, EMOJI), long(100_000)],
  "has a lone surrogate": ["lone-surrogates", "kv7-Qz!\ud83c", "\udfa7kv7-Qz!", "kv7\udfa7\ud83cQz!"],
  "is the name": ["same-as-name", "annabelle", "AnnaBelle", "ANNABELLE"],
  "is common": ["too-common", "password", "PassWord", "QWERTYUIOP", "1234567890", "1Qaz2Wsx", "Baseball"],
  "is one repeated character": ["too-common", "zzzzzzzz", "aAaAaAaAaA", "        ", "🎧".repeat(8), "\0".repeat(8)],
};
for (const [what, [problem, ...passwords]] of Object.entries(REFUSED)) {
  test(`new password: ${what} → rejected`, async () => {
    for (const password of passwords)
      assert.equal(await validatePassword(password, "annabelle"), problem, JSON.stringify(password.slice(0, 20)));
  });
}

test("new password: the name in capitals → rejected", async () => {
  assert.equal(await validatePassword("annabelle", "AnnaBelle"), "same-as-name");
});

/** The maximum number of concurrent hashes during `work`. */
async function maxConcurrentHashes(work: () => Promise<void>): Promise<number> {
  const running = new Set<number>();
  let most = 0;
  const hook = createHook({
    init(id, type) {
      if (type !== "ARGON2REQUEST") return;
      running.add(id);
      most = Math.max(most, running.size);
    },
    before: (id) => running.delete(id),
  });
  hook.enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  assert.ok(most > 0, "no hash was counted");
  return most;
}

test("hashing: too many at once → two run, thirty wait, the others are rejected", async () => {
  const attempts = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? "password" : `password ${index}`));
  const most = await maxConcurrentHashes(async () => {
    const outcomes = await Promise.allSettled(attempts.map((password) => verifyPassword(password, CHEAP)));
    const refused = outcomes.filter(({ status }) => status === "rejected");
    assert.ok(refused.length > 0 && refused.length < 20, `${refused.length} refused`);
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === "rejected") assert.ok(outcome.reason instanceof HashQueueFull);
      else assert.equal(outcome.value, attempts[index] === "password");
    }
  });
  assert.ok(most <= 2, `${most} at a time`);

  const again = await Promise.all(Array.from({ length: 20 }, () => verifyPassword("password", CHEAP)));
  assert.ok(again.every(Boolean), "a refused attempt keeps no slot");
});

test("hashing: new attempts while others wait → still two at a time", async () => {
  const hashFourTimes = async () => {
    for (let count = 0; count < 4; count += 1) assert.equal(await verifyPassword("password", CHEAP), true);
  };
  const most = await maxConcurrentHashes(async () => {
    await Promise.all(Array.from({ length: 6 }, hashFourTimes));
  });
  assert.ok(most <= 2, `${most} at a time`);
});

test("hashing: a failure → frees its slot", async () => {
  const impossible = "$argon2id$v=19$m=1,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
  for (let count = 0; count < 5; count += 1)
    await assert.rejects(verifyPassword(PASSWORD, impossible), (error) => !(error instanceof HashQueueFull));
  assert.equal(await verifyPassword(PASSWORD, await hashPassword(PASSWORD)), true);
});

test("hashing: a network that floods the queue → attempts of other networks succeed, and take turns with it", async () => {
  const order: string[] = [];
  const attempt = async (network: string) => {
    const isRight = await verifyPassword("password", CHEAP, network);
    order.push(network);
    return isRight;
  };
  const flood = Promise.allSettled(Array.from({ length: 60 }, () => attempt("flood")));
  const others = Array.from({ length: 10 }, (_, index) => attempt(`network ${index}`));
  assert.deepEqual(await Promise.all(others), new Array(10).fill(true));
  const outcomes = await flood;
  const served = outcomes.filter(({ status }) => status === "fulfilled").length;
  assert.equal(served, 2 + 30 - others.length, "the flood gets the slots that nobody else needs");
  // Two hashes run at a time, and one of them can take long.
  const late = order.slice(20).filter((network) => network !== "flood");
  assert.ok(late.length <= 1, order.join());
});

test("hashing: more waiting networks than slots → the newest are rejected", async () => {
  const attempts = Array.from({ length: 40 }, (_, index) => verifyPassword("password", CHEAP, `network ${index}`));
  const outcomes = (await Promise.allSettled(attempts)).map(({ status }) => status);
  assert.deepEqual(outcomes, [...new Array(32).fill("fulfilled"), ...new Array(8).fill("rejected")]);
});
