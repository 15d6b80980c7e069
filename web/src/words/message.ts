export type Values = Readonly<Record<string, string | number>>;

/** A message about a number: one text for each plural form, in which `#` is the number. */
const PLURAL = /^\{(\w+), plural, (.+)\}$/;
const FORM = /(=\d|zero|one|two|few|many|other) \{((?:[^{}]|\{\w+\})*)\}/g;

/**
 * Fills in a message, which is written in a small part of ICU MessageFormat: `{name}` stands for a value, and a whole
 * message can be a plural: `{n, plural, =0 {None} one {# feed} other {# feeds}}`.
 */
export function formatMessage(message: string, values: Values, language: string, thousands: string): string {
  const [, name = "", forms] = PLURAL.exec(message) ?? [];
  const text =
    forms === undefined ? message : choosePlural(forms, Number(values[name]), language).replaceAll("#", `{${name}}`);
  return text.replace(/\{(\w+)\}/g, (placeholder, name: string) => {
    const value = values[name] ?? placeholder;
    return typeof value === "number" ? separateThousands(value, thousands) : value;
  });
}

function choosePlural(forms: string, n: number, language: string): string {
  const texts = new Map([...forms.matchAll(FORM)].map(([, form, text]) => [form, text]));
  return texts.get(`=${n}`) ?? texts.get(new Intl.PluralRules(language).select(n)) ?? texts.get("other") ?? "";
}

/** Not `Intl.NumberFormat`: its first use takes a browser 20 ms or more, which was most of the start-up time. */
export function separateThousands(value: number, separator: string): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, separator);
}
