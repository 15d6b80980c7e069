import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";

type Speak = (...args: readonly unknown[]) => string;
/** Every text of a language, by where it stands. */
type Texts = ReadonlyMap<string, string | Speak>;

const FOLDER = new URL("../web/src/words/", import.meta.url);

/** What is the same word in these languages as in English. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  // The technical term of every language.
  API: ["de", "es", "fr", "zh"],
  // Borrowed long ago; no podcast app calls them anything else.
  Apps: ["de", "es"],
  Token: ["de", "es"],
  // A noun of German too.
  Import: ["de"],
};

/** What somebody who writes another language would type. */
const FOREIGN: Readonly<Record<string, RegExp>> = {
  en: /[„«»]/,
  de: /[”«»]|(?<!„[^“]*)“/,
  es: /[„“”]|^[^¿]*\?|^[^¡]*!|\s…/,
  // A narrow no-break space before each of ; : ! ? » and after «, so that none begins a line.
  fr: /[„“”]|(?<!\u202f)[;!?»]|(?<!\u202f|https?):|«(?!\u202f)|\s…/,
  zh: /[„«»]|\p{Script=Han}[,.;:!?()]|[，。：；] /u,
};

function flatten(words: object, path = ""): [string, string | Speak][] {
  return Object.entries(words).flatMap(([key, value]) =>
    typeof value === "object" ? flatten(value, `${path}${key}.`) : [[path + key, value]],
  );
}

/** How numbers and days are written is no text, and is checked by itself. */
const FORMS = ["thousands", "months", "day"];

const languages = readdirSync(FOLDER)
  .map((file) => file.replace(/\.ts$/, ""))
  .filter((name) => name !== "index");
const known: ReadonlyMap<string, Texts> = new Map(
  await Promise.all(
    languages.map(async (language) => {
      const { [language]: words } = await import(new URL(`${language}.ts`, FOLDER).href);
      return [language, new Map(flatten(words).filter(([path]) => !FORMS.includes(path)))] as const;
    }),
  ),
);

function textsOf(language: string): Texts {
  const texts = known.get(language);
  assert.ok(texts, language);
  return texts;
}
const english = textsOf("en");

/** The arguments: a number, and texts that all have it in them and are told apart. */
const given = (n: number) => [n, `<${n}>`, `<${n}b>`];
const say = (text: string | Speak | undefined, n = 2) =>
  typeof text === "function" ? text(...given(n)) : (text ?? "");
const kindOf = (text: string | Speak) => (typeof text === "function" ? `function of ${text.length}` : "text");

assert.deepEqual(languages.toSorted(), ["de", "en", "es", "fr", "zh"]);

for (const language of languages) {
  describe(`the page in "${language}"`, () => {
    const texts = textsOf(language);
    /** The sentence around the number, which alone depends on how many there are. */
    const form = (path: string, n: number) => say(texts.get(path), n).replaceAll(/<?\d+>?/g, "#");

    test("says everything that it says in English", () => {
      const kinds = (of: Texts) => [...of].map(([path, text]) => [path, kindOf(text)]);
      assert.deepEqual(kinds(texts), kinds(english));
    });

    test("leaves nothing empty", () => {
      for (const [path, text] of texts) assert.match(say(text), /^\S(.*\S)?$/, path);
    });

    test("gives every number and every name that it is given", () => {
      for (const [path, text] of texts) {
        if (typeof text !== "function") continue;
        for (const n of [0, 1, 2, 1_234]) {
          const said = say(text, n);
          assert.doesNotMatch(said, /undefined|NaN/, path);
          const expected = given(n).filter((each) => say(english.get(path), n).includes(`${each}`));
          for (const each of expected) assert.ok(said.includes(`${each}`), `${path} of ${n}: ${said}`);
        }
        assert.ok(say(text, 1_234).includes("1234"), path);
      }
    });

    test("knows one from many as the language does", () => {
      const rules = new Intl.PluralRules(language);
      for (const n of [0, 1, 2, 5, 21]) {
        for (const m of [0, 1, 2, 5, 21]) {
          const isSame = rules.select(n) === rules.select(m);
          for (const path of ["count", "import.start"]) {
            assert.equal(form(path, n) === form(path, m), isSame, `${path} of ${n} and ${m}`);
          }
          if (isSame) assert.equal(form("list.found", n), form("list.found", m));
        }
      }
      for (const path of ["add.submit", "add.retry", "list.removed"]) {
        assert.notEqual(form(path, 1), form(path, 2), path);
      }
    });

    test("has the punctuation of the language", () => {
      const foreign = FOREIGN[language];
      assert.ok(foreign);
      for (const [path, text] of texts) {
        for (const n of [1, 2]) {
          const said = say(text, n);
          assert.doesNotMatch(said, /["'`´]|\.\.\.| {2}/, path);
          assert.doesNotMatch(said, foreign, path);
        }
      }
    });

    // Who speaks to the browser says what they see.
    test("calls a button by what stands on it", () => {
      for (const [name, seen] of [
        ["apps.revokeOf", "apps.revoke"],
        ["account.endSession", "account.signOut"],
      ] as const) {
        assert.ok(
          say(texts.get(name))
            .toLowerCase()
            .includes(say(texts.get(seen)).toLowerCase()),
          name,
        );
      }
    });

    test("writes numbers and days as the language does", async () => {
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

    test("leaves nothing in English", () => {
      const left = [...texts].filter(([path, text]) => say(text) === say(english.get(path)));
      const unexpected = left.filter(([, text]) => !SAME[say(text)]?.includes(language));
      assert.deepEqual(unexpected, []);
      const unneeded = Object.keys(SAME).filter(
        (same) => SAME[same]?.includes(language) && !left.some(([, text]) => text === same),
      );
      assert.deepEqual(unneeded, []);
    });

    test("fits the foot of a telephone", () => {
      const labels = [...texts].filter(([path]) => path.startsWith("views."));
      assert.equal(labels.length, 5);
      for (const [path, text] of labels) assert.ok(say(text).length <= 11, path);
    });
  });
}
