import de from "../../web/src/words/de.json" with { type: "json" };
import en from "../../web/src/words/en.json" with { type: "json" };
import es from "../../web/src/words/es.json" with { type: "json" };
import fr from "../../web/src/words/fr.json" with { type: "json" };
import { formatMessage, type Values } from "../../web/src/words/message.ts";
import zh from "../../web/src/words/zh.json" with { type: "json" };

export { de, en, es, fr, zh };
export type Words = typeof en;

/** Fills in a message of any language, with the plural rules and the thousands separator of English. */
export const format = (message: string, values: Values): string => formatMessage(message, values, "en", ",");
