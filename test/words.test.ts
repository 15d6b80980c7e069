import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { ERRORS } from "../src/errors/catalog.ts";
import { FAILURE_CODES } from "../src/podcasts/failure.ts";
import { formatMessage } from "../web/src/words/message.ts";
import { en } from "./support/words.ts";

/** Every message of a language by its path, such as `list.title`. */
type Messages = ReadonlyMap<string, string>;

const SOURCE = new URL("../web/src/", import.meta.url);

/** Texts that are the same in these languages as in English. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  Podcast: ["de", "es", "fr"],
  Podcasts: ["de", "es", "fr"],
  Details: ["de"],
  Server: ["de"],
  Version: ["de", "fr"],
  "{n} min": ["es", "fr"],
  "{n} h": ["es", "fr"],
  "{h} h {m} min": ["es", "fr"],
  API: ["de", "es", "fr", "zh"],
  App: ["de"],
  Link: ["de"],
  Apps: ["de", "es"],
  Token: ["de", "es"],
  Import: ["de"],
  Passkeys: ["de"],
  System: ["de"],
  Name: ["de"],
  Website: ["de"],
  "{what}: {name}": ["de", "es"],
};

function flatten(words: object, path = ""): [string, string][] {
  return Object.entries(words).flatMap(([key, value]) =>
    typeof value === "object" ? flatten(value, `${path}${key}.`) : [[path + key, value]],
  );
}

/** Formats rather than texts, with a test of their own. */
const FORMS = ["thousands", "months", "day"];

const languages = readdirSync(new URL("words/", SOURCE))
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.replace(".json", ""));
const readWords = (language: string): typeof en =>
  JSON.parse(readFileSync(new URL(`words/${language}.json`, SOURCE), "utf8"));
const known: ReadonlyMap<string, Messages> = new Map(
  languages.map((language) => [
    language,
    new Map(flatten(readWords(language)).filter(([path]) => !FORMS.includes(path))),
  ]),
);

function messagesOf(language: string): Messages {
  const messages = known.get(language);
  assert.ok(messages, language);
  return messages;
}
const english = messagesOf("en");

/** The names of the values that a message is given. */
function placeholdersOf(message = ""): string[] {
  const [, counted, forms = ""] = /^\{(\w+), plural, (.+)\}$/.exec(message) ?? [];
  const texts = [...forms.matchAll(/(?:=\d+|[a-z]+) \{((?:[^{}]|\{\w+\})*)\}/g)].map(([, text = ""]) => text);
  const names = (counted === undefined ? [message] : texts).flatMap((text) =>
    [...text.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name),
  );
  return [...new Set(counted === undefined ? names : [counted, ...names])].toSorted();
}

/** A number, and different texts that contain it. */
const valuesFor = (message: string, n: number) =>
  Object.fromEntries(placeholdersOf(message).map((name) => [name, name === "n" ? n : `<${name} ${n}>`]));
const render = (message = "", n = 2, language = "en") => formatMessage(message, valuesFor(message, n), language, "");

assert.deepEqual(languages.toSorted(), ["de", "en", "es", "fr", "zh"]);

test("messages: values and plural forms → filled in once", () => {
  const format = (message: string, values: Readonly<Record<string, string | number>>, language = "en") =>
    formatMessage(message, values, language, ",");
  const feeds = "{n, plural, =0 {No feeds} one {# feed of {name}} other {# feeds of {name}}}";
  assert.equal(format(feeds, { n: 0, name: "Ann" }), "No feeds");
  assert.equal(format(feeds, { n: 1, name: "{n}" }), "1 feed of {n}");
  assert.equal(format(feeds, { n: 1_234_567, name: "#" }), "1,234,567 feeds of #");
  assert.equal(format("{n, plural, one {# flux} other {# flux !}}", { n: 0 }, "fr"), "0 flux");
  assert.equal(format("{n, plural, other {# 个}}", { n: 1 }, "zh"), "1 个");
  assert.equal(format("{name} $& {other}", { name: "$1" }), "$1 $& {other}");
});

test("words: translated errors → each is a code of the server", () => {
  const all = [en.errors, en.administration.errors, en.accountImport.errors];
  const unknown = all.flatMap(Object.keys).filter((code) => !Object.hasOwn(ERRORS, code));
  assert.deepEqual(unknown, []);
});

/** The calls of `format` in a source file: the end of the path of each message, and the names of its values. */
function formatsIn(source: string): { readonly path: string; readonly names: readonly string[] }[] {
  return [...source.matchAll(/(?<![.\w])format\(\s*([^,]+),\s*\{/g)].map((call) => {
    let depth = 1;
    let names = "";
    for (const character of source.slice(call.index + call[0].length)) {
      if ("{([`".includes(character) && (character !== "`" || depth === 1)) depth += 1;
      else if ("})]`".includes(character)) depth -= 1;
      if (depth === 0) break;
      if (depth === 1) names += character;
    }
    const path = (call[1] ?? "").trim().replace(/^.*\(\)\./, "");
    return {
      path,
      names: names
        .split(",")
        .flatMap((each) => /\w+/.exec(each) ?? [])
        .toSorted(),
    };
  });
}

/** Messages that are not named where they are filled in. */
const INDIRECT = ["account.removePasskey", "account.unlinkLabel"];

test("words: every message with placeholders → filled in with exactly its values", () => {
  const sources = readdirSync(SOURCE, { recursive: true })
    .map(String)
    .filter((file) => /\.tsx?$/.test(file));
  const calls = sources
    .filter((file) => !file.startsWith("words"))
    .flatMap((file) => formatsIn(readFileSync(new URL(file, SOURCE), "utf8")));
  assert.ok(calls.length > 80);
  const filled = new Set<string>();
  const isCall = (path: string, call: string) => path === call || path.endsWith(`.${call}`);
  for (const { path, names } of calls) {
    // A variable or a property of one: `words.found`, `appLogin.title`.
    const ends = path.includes(".") ? [path, path.slice(path.indexOf(".") + 1)] : [];
    const messages = [...english].filter(
      ([each, message]) => ends.some((end) => isCall(each, end)) && placeholdersOf(message).length > 0,
    );
    const fitting = messages.filter(([, message]) => placeholdersOf(message).join() === names.join());
    if (ends.length > 0) assert.ok(fitting.length > 0, `${path}: ${names}`);
    for (const [each] of fitting) filled.add(each);
  }
  const forgotten = [...english].filter(
    ([path, message]) =>
      placeholdersOf(message).length > 0 &&
      !filled.has(path) &&
      !INDIRECT.includes(path) &&
      !/^ago\.|^moment$|^administration\.actions\.|^history\.skipped\./.test(path),
  );
  assert.deepEqual(forgotten, []);
});

/** Errors that need no text of their own, and why. */
const UNTRANSLATED: Readonly<Record<string, readonly string[]>> = {
  "the page never sends such a request": [
    ...["invalid-operation", "unsupported-operation", "type-missing", "type-mismatch", "invalid-id", "id-mismatch"],
    ...["data-missing", "body-missing", "body-incomplete", "malformed-json", "malformed-document"],
    ...["document-too-complex", "too-many-operations", "chunk-extensions-too-large", "invalid-query", "not-acceptable"],
    ...["unsupported-media-type", "unsupported-content-encoding", "unknown-path", "method-not-allowed"],
    ...["malformed-request", "malformed-target", "invalid-host", "unsupported-transfer-encoding", "header-too-large"],
    ...["expectation-failed", "unsupported-http-version", "token-in-query", "attribute-missing", "invalid-scope"],
    ...["invalid-expiry", "invalid-former-feed-urls", "invalid-merge-target", "merge-into-itself"],
  ],
  "the page asks to sign in": ["unauthenticated", "invalid-credentials"],
  "the replica reads the list again, or polls": ["state-expired", "too-many-streams"],
  "a result of its own": ["already-subscribed"],
  "a text with the server's reason": ["import-server-failed"],
};

test("words: every error that the page can show → translated, or explained by its status", () => {
  const exempt = Object.values(UNTRANSLATED).flat();
  const isTranslated = (code: string) =>
    ["errors", "administration.errors", "accountImport.errors", "reasons"].some((place) =>
      english.has(`${place}.${code}`),
    );
  const untranslated = Object.entries(ERRORS).flatMap(([code, { status }]) =>
    // `explainError` has a text for each of these two statuses.
    isTranslated(code) || status === 403 || status === 503 ? [] : code,
  );
  assert.deepEqual(untranslated.toSorted(), exempt.toSorted());
});

for (const language of languages) {
  describe(`words in ${language}`, () => {
    const texts = messagesOf(language);
    const inLanguage = (message: string | undefined, n?: number) => render(message, n, language);
    /** The text around the number. */
    const form = (path: string, n: number) => inLanguage(texts.get(path), n).replaceAll(/\d+/g, "#");

    test(`words: ${language} → the same messages with the same placeholders as in English`, () => {
      const kinds = (of: Messages) => [...of].map(([path, message]) => [path, placeholdersOf(message)]);
      assert.deepEqual(kinds(texts), kinds(english));
    });

    test(`words: ${language} → every message can be parsed`, () => {
      for (const [path, message] of texts) {
        for (const n of [0, 1, 2]) assert.doesNotMatch(inLanguage(message, n), /[{}#]/, path);
        if (message.includes(", plural,")) assert.match(message, / other \{.*\}\}$/, path);
      }
    });

    test(`words: ${language} → no text is empty`, () => {
      for (const [path, text] of texts) assert.match(inLanguage(text), /^\S(.*\S)?$/, path);
    });

    test(`words: ${language} → every text contains the numbers and names it is given`, () => {
      for (const [path, text] of texts) {
        for (const n of [0, 1, 2, 1_234]) {
          const rendered = inLanguage(text, n);
          const given = Object.values(valuesFor(text, n)).map(String);
          const expected = given.filter((each) => render(english.get(path), n).includes(each));
          for (const each of expected) assert.ok(rendered.includes(each), `${path} of ${n}: ${rendered}`);
        }
        if (placeholdersOf(text).length > 0) assert.ok(inLanguage(text, 1_234).includes("1234"), path);
      }
    });

    test(`words: ${language} → plural forms of the language`, () => {
      const rules = new Intl.PluralRules(language);
      for (const n of [0, 1, 2, 5, 21]) {
        for (const m of [0, 1, 2, 5, 21]) {
          const isSame = rules.select(n) === rules.select(m);
          for (const path of [
            "count",
            "import.start",
            "apps.synced",
            "ago.minutes",
            "ago.hours",
            "administration.days",
            "administration.rows",
          ]) {
            assert.equal(form(path, n) === form(path, m), isSame, `${path} of ${n} and ${m}`);
          }
          if (isSame) assert.equal(form("list.found", n), form("list.found", m));
        }
      }
      for (const path of ["add.submit", "add.retry", "list.removed"]) {
        assert.notEqual(form(path, 1), form(path, 2), path);
      }
    });

    // Voice control needs it.
    test(`words: ${language} → the name of a button contains its visible text`, () => {
      for (const [name, visible] of [
        ["apps.revokeLabel", "apps.revoke"],
        ["apps.renameLabel", "apps.rename"],
        ["apps.forgetLabel", "apps.forget"],
        ["account.endSession", "account.signOut"],
        ["removed.restoreLabel", "removed.restore"],
        ["moves.useLabel", "moves.use"],
        ["moves.undoLabel", "list.undo"],
        ["feedSearch.useLabel", "feedSearch.use"],
        ["administration.manageLabel", "administration.manage"],
        ["administration.revokeLabel", "administration.revoke"],
      ] as const) {
        const label = inLanguage(texts.get(name)).toLowerCase();
        assert.ok(label.includes(inLanguage(texts.get(visible)).toLowerCase()), name);
      }
    });

    test(`words: ${language} → numbers and days as in Intl`, () => {
      const words = readWords(language);
      const days = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
      for (let month = 0; month < 12; month += 1) {
        for (const day of [1, 28]) {
          const name = words.months.split(" ")[month] ?? "";
          const values = { day, dd: String(day).padStart(2, "0"), month: name, year: "2026" };
          const written = formatMessage(words.day, values, language, words.thousands);
          assert.equal(written, days.format(new Date(2026, month, day)));
        }
      }
      const parts = new Intl.NumberFormat(language).formatToParts(12_345_678);
      assert.equal(words.thousands, parts.find(({ type }) => type === "group")?.value);
    });

    if (language === "en") return;

    test(`words: ${language} → nothing is left in English`, () => {
      const left = [...texts].filter(([path, text]) => inLanguage(text) === render(english.get(path)));
      const unexpected = left.filter(([, text]) => !SAME[text]?.includes(language));
      assert.deepEqual(unexpected, []);
      const unneeded = Object.keys(SAME).filter(
        (same) => SAME[same]?.includes(language) && !left.some(([, text]) => text === same),
      );
      assert.deepEqual(unneeded, []);
    });
  });
}

test("words: every reason why a feed cannot be read → has a text, except the unknown one", () => {
  const reasons = FAILURE_CODES.filter((code) => code !== "unknown");
  assert.deepEqual(Object.keys(en.podcasts.failure).sort(), reasons.sort());
});
