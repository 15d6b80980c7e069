import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { ERRORS } from "../src/errors/catalog.ts";
import { en as people } from "../web/src/words/accounts.en.ts";
import { en } from "../web/src/words/en.ts";

type TextFunction = (...args: readonly unknown[]) => string;
/** Every text of a language by its path, such as `list.title`. */
type Texts = ReadonlyMap<string, string | TextFunction>;

const FOLDER = new URL("../web/src/words/", import.meta.url);

/** Texts that are the same in these languages as in English. */
const SAME: Readonly<Record<string, readonly string[]>> = {
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
};

/** Punctuation that belongs to other languages. */
const FOREIGN: Readonly<Record<string, RegExp>> = {
  en: /[„«»]/,
  de: /[”«»]|(?<!„[^“]*)“/,
  es: /[„“”]|^[^¿]*\?|^[^¡]*!|\s…/,
  // French has a narrow no-break space before ; : ! ? » and after «.
  fr: /[„“”]|(?<!\u202f)[;!?»]|(?<!\u202f|https?):|«(?!\u202f)|\s…/,
  zh: /[„«»]|\p{Script=Han}[,.;:!?()]|[，。：；] /u,
};

function flatten(words: object, path = ""): [string, string | TextFunction][] {
  return Object.entries(words).flatMap(([key, value]) =>
    typeof value === "object" ? flatten(value, `${path}${key}.`) : [[path + key, value]],
  );
}

/** Formats rather than texts, with a test of their own. */
const FORMS = ["thousands", "months", "day"];

const languages = readdirSync(FOLDER)
  .filter((file) => /^[a-z]{2}\.ts$/.test(file))
  .map((file) => file.replace(".ts", ""));
const known: ReadonlyMap<string, Texts> = new Map(
  await Promise.all(
    languages.map(async (language) => {
      const { [language]: words } = await import(new URL(`${language}.ts`, FOLDER).href);
      const { [language]: podcasts } = await import(new URL(`podcasts.${language}.ts`, FOLDER).href);
      const { [language]: people } = await import(new URL(`accounts.${language}.ts`, FOLDER).href);
      const { [language]: feeds } = await import(new URL(`feeds.${language}.ts`, FOLDER).href);
      return [
        language,
        new Map(flatten({ ...words, podcasts, feeds, people }).filter(([path]) => !FORMS.includes(path))),
      ] as const;
    }),
  ),
);

function textsOf(language: string): Texts {
  const texts = known.get(language);
  assert.ok(texts, language);
  return texts;
}
const english = textsOf("en");

/** Arguments for a text function: a number, and two different texts that contain it. */
const argumentsFor = (n: number) => [n, `<${n}>`, `<${n}b>`];
const render = (text: string | TextFunction | undefined, n = 2) =>
  typeof text === "function" ? text(...argumentsFor(n)) : (text ?? "");
const kindOf = (text: string | TextFunction) => (typeof text === "function" ? `function of ${text.length}` : "text");

assert.deepEqual(languages.toSorted(), ["de", "en", "es", "fr", "zh"]);

test("words: translated errors → each is a code of the server", () => {
  const unknown = [...Object.keys(en.errors), ...Object.keys(people.errors)].filter(
    (code) => !Object.hasOwn(ERRORS, code),
  );
  assert.deepEqual(unknown, []);
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
    ...["invalid-expiry"],
  ],
  "the page asks to sign in": ["unauthenticated", "invalid-credentials"],
  "the replica reads the list again, or polls": ["state-expired", "too-many-streams"],
  "a result of its own": ["already-subscribed"],
};

test("words: every error that the page can show → translated, or explained by its status", () => {
  const exempt = Object.values(UNTRANSLATED).flat();
  const isTranslated = (code: string) =>
    ["errors", "people.errors", "feeds.reasons"].some((place) => english.has(`${place}.${code}`));
  const untranslated = Object.entries(ERRORS).flatMap(([code, { status }]) =>
    // `explainError` has a text for each of these two statuses.
    isTranslated(code) || status === 403 || status === 503 ? [] : code,
  );
  assert.deepEqual(untranslated.toSorted(), exempt.toSorted());
});

for (const language of languages) {
  describe(`words in ${language}`, () => {
    const texts = textsOf(language);
    /** The text around the number. */
    const form = (path: string, n: number) => render(texts.get(path), n).replaceAll(/<?\d+>?/g, "#");

    test(`words: ${language} → the same texts as in English`, () => {
      const kinds = (of: Texts) => [...of].map(([path, text]) => [path, kindOf(text)]);
      assert.deepEqual(kinds(texts), kinds(english));
    });

    test(`words: ${language} → no text is empty`, () => {
      for (const [path, text] of texts) assert.match(render(text), /^\S(.*\S)?$/, path);
    });

    test(`words: ${language} → every text contains the numbers and names it is given`, () => {
      for (const [path, text] of texts) {
        if (typeof text !== "function") continue;
        for (const n of [0, 1, 2, 1_234]) {
          const rendered = render(text, n);
          assert.doesNotMatch(rendered, /undefined|NaN/, path);
          const expected = argumentsFor(n).filter((each) => render(english.get(path), n).includes(`${each}`));
          for (const each of expected) assert.ok(rendered.includes(`${each}`), `${path} of ${n}: ${rendered}`);
        }
        assert.ok(render(text, 1_234).includes("1234"), path);
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
            "people.days",
            "people.rows",
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

    test(`words: ${language} → punctuation of the language`, () => {
      const foreign = FOREIGN[language];
      assert.ok(foreign);
      for (const [path, text] of texts) {
        for (const n of [1, 2]) {
          const rendered = render(text, n);
          assert.doesNotMatch(rendered, /["'`´]|\.\.\.| {2}/, path);
          assert.doesNotMatch(rendered, foreign, path);
        }
      }
    });

    // Voice control needs it.
    test(`words: ${language} → the name of a button contains its visible text`, () => {
      for (const [name, visible] of [
        ["apps.revokeLabel", "apps.revoke"],
        ["apps.renameLabel", "apps.rename"],
        ["apps.forgetLabel", "apps.forget"],
        ["account.endSession", "account.signOut"],
        ["feeds.removed.restoreLabel", "feeds.removed.restore"],
        ["feeds.find.useLabel", "feeds.find.use"],
        ["people.manageLabel", "people.manage"],
        ["people.revokeLabel", "people.revoke"],
      ] as const) {
        assert.ok(
          render(texts.get(name))
            .toLowerCase()
            .includes(render(texts.get(visible)).toLowerCase()),
          name,
        );
      }
    });

    test(`words: ${language} → numbers and days as in Intl`, async () => {
      const { [language]: words } = await import(new URL(`${language}.ts`, FOLDER).href);
      const days = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
      for (let month = 0; month < 12; month += 1) {
        for (const day of [1, 28]) {
          const written = words.day(day, words.months.split(" ")[month], 2026);
          assert.equal(written, days.format(new Date(2026, month, day)));
        }
      }
      const parts = new Intl.NumberFormat(language).formatToParts(12_345_678);
      assert.equal(words.thousands, parts.find(({ type }) => type === "group")?.value);
    });

    if (language === "en") return;

    test(`words: ${language} → nothing is left in English`, () => {
      const left = [...texts].filter(([path, text]) => render(text) === render(english.get(path)));
      const unexpected = left.filter(([, text]) => !SAME[render(text)]?.includes(language));
      assert.deepEqual(unexpected, []);
      const unneeded = Object.keys(SAME).filter(
        (same) => SAME[same]?.includes(language) && !left.some(([, text]) => text === same),
      );
      assert.deepEqual(unneeded, []);
    });

    test(`words: ${language} → menu labels fit on a phone`, () => {
      const labels = [...texts].filter(([path]) => path.startsWith("views."));
      assert.equal(labels.length, 5);
      for (const [path, text] of labels) assert.ok(render(text).length <= 11, path);
    });
  });
}
