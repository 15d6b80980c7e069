/** The languages of all texts for people: those of the web interface. */
export const LANGUAGES = ["en", "de", "es", "fr", "zh"] as const;
export type Language = (typeof LANGUAGES)[number];

export function isLanguage(value: unknown): value is Language {
  return LANGUAGES.some((language) => language === value);
}

/** The supported language that an Accept-Language header prefers; English without one. */
export function preferredLanguage(header: string | undefined): Language {
  const wanted = (header ?? "")
    .slice(0, 1_000)
    .split(",")
    .map((item) => {
      const [tag = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return { language: tag.split("-")[0], weight: weight === undefined ? 1 : Number(weight.slice(2)) || 0 };
    })
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight);
  return wanted.map(({ language }) => language).find(isLanguage) ?? "en";
}
