import { readFileSync } from "node:fs";
import { Marked } from "marked";

/** The documents of the page, in this order. */
const NAMES = ["api", "accounts"];

interface Heading {
  readonly id: string;
  readonly html: string;
  readonly depth: number;
}

/** Renders Markdown documents of a folder, one after another, as a page with a table of contents. */
export function renderPage(folder: URL): string {
  const documents = Object.fromEntries(
    NAMES.map((name) => [name, readFileSync(new URL(`${name}.md`, folder), "utf8")]),
  );
  const headings: Heading[] = [];
  const parts = Object.entries(documents).map(([name, text]) => renderDocument(name, text, documents, headings));
  const contents = headings
    .filter(({ depth }) => depth <= 2)
    .map(({ id, html, depth }) => `<li class="level-${depth}"><a href="#${id}">${html}</a></li>`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Earmark API</title>
<link rel="stylesheet" href="docs.css">
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<nav aria-label="Contents">
<ul>
${contents.join("\n")}
<li class="level-1"><a href="openapi.json">OpenAPI document</a></li>
</ul>
</nav>
<main id="content" tabindex="-1">
${parts.join("\n")}
</main>
</body>
</html>
`;
}

/** Heading ids begin with the name of the document, because two documents may have the same headings. */
function renderDocument(
  name: string,
  text: string,
  documents: Readonly<Record<string, string>>,
  headings: Heading[],
): string {
  const marked = new Marked({
    renderer: {
      heading({ tokens, text, depth }) {
        const id = `${name}-${slugOf(text)}`;
        const html = this.parser.parseInline(tokens);
        headings.push({ id, html, depth });
        return `<h${depth} id="${id}">${html}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const target = targetOf(href, name, documents);
        const html = this.parser.parseInline(tokens);
        return target === undefined ? html : `<a href="${target}">${html}</a>`;
      },
    },
  });
  return (
    marked
      .parse(text, { async: false })
      // Wide tables scroll, so the keyboard must reach them.
      .replaceAll("<table>", '<table tabindex="0">')
      .replaceAll("<th></th>", "<td></td>")
  );
}

/** Undefined for a link to a file that the server does not serve. */
function targetOf(href: string, name: string, documents: Readonly<Record<string, string>>): string | undefined {
  if (/^https?:/.test(href)) return href;
  const [, file = name, anchor] = /^(?:([\w-]+)\.md)?(?:#(.*))?$/.exec(href) ?? [];
  const document = documents[file];
  if (document === undefined || !/^([\w-]+\.md)?(#|$)/.test(href)) return undefined;
  return `#${file}-${anchor ?? slugOf(/^# (.*)$/m.exec(document)?.[1] ?? "")}`;
}

/** The anchor that GitHub gives a heading. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}
