import { createHash } from "node:crypto";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { type Language, preferredLanguage } from "../../util/languages.ts";
import { type Dialect, JSON_API } from "../wire/dialect.ts";
import type { Request } from "../wire/exchange.ts";

const WORDS: Readonly<Record<Language, readonly [title: string, text: string, link: string]>> = {
  en: ["Page not found", "Nothing exists at this address.", "Open Earmark"],
  de: ["Seite nicht gefunden", "Unter dieser Adresse gibt es nichts.", "Earmark öffnen"],
  es: ["Página no encontrada", "No hay nada en esta dirección.", "Abrir Earmark"],
  fr: ["Page introuvable", "Il n’y a rien à cette adresse.", "Ouvrir Earmark"],
  zh: ["找不到页面", "此地址没有任何内容。", "打开 Earmark"],
};

const STYLE = `
:root{color-scheme:light dark;font-family:system-ui,sans-serif;line-height:1.5}
body{min-height:90vh;margin:0;display:grid;place-content:center;justify-items:center;padding:1rem;text-align:center;
background:light-dark(#fff,#14171c);color:light-dark(#1c2024,#e4e7eb)}
h1{margin:0;font-size:1.625rem}
a{color:light-dark(#1f5fbf,#8fb8ff)}
`;
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");
const HEADERS = {
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  vary: "Accept, Accept-Language",
};

/** For a browser that opens a path that does not exist: the error as a page. Undefined for anything else. */
export function toErrorPage(
  thrown: unknown,
  { method, headers }: Request,
  basePath: string,
): { readonly error: RequestFailure; readonly dialect: Dialect } | undefined {
  if (!(thrown instanceof RequestFailure) || thrown.error.code !== "unknown-path") return undefined;
  if ((method !== "GET" && method !== "HEAD") || !/\btext\/html\b/i.test(String(headers.accept ?? "")))
    return undefined;
  const language = preferredLanguage(headers["accept-language"]);
  const dialect = {
    ...JSON_API,
    contentType: "text/html; charset=utf-8",
    writeError: () => writePage(language, basePath),
  };
  return { error: failure("unknown-path", { headers: HEADERS }), dialect };
}

/** The base path is one that the settings allow, which needs no escaping. */
function writePage(language: Language, basePath: string): string {
  const [title, text, link] = WORDS[language];
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} – Earmark</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${text}</p>
<p><a href="${basePath}/">${link}</a></p>
</main>
</body>
</html>
`;
}
