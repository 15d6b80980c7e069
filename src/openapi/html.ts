/** Text that is HTML already. Only `html` makes it, so that nothing gets in that was not escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A template whose values are escaped, unless they are HTML or lists of it. */
export function html(strings: TemplateStringsArray, ...parts: readonly unknown[]): Html {
  let text = strings[0] ?? "";
  for (const [index, part] of parts.entries()) text += write(part) + (strings[index + 1] ?? "");
  return new Html(text);
}

function write(part: unknown): string {
  if (part instanceof Html) return part.text;
  return Array.isArray(part) ? part.map(write).join("") : escapeHtml(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** The little of Markdown that our descriptions use: paragraphs, lists, `code` and **strong**. */
export function markdown(text: string): Html {
  const blocks = text.split("\n\n").map((block) => {
    const lines = block.split("\n");
    if (!lines.every((line) => line.startsWith("- "))) return html`<p>${inline(block)}</p>`;
    return html`<ul>${lines.map((line) => html`<li>${inline(line.slice(2))}</li>`)}</ul>`;
  });
  return html`${blocks}`;
}

function inline(text: string): Html {
  // Every other piece stood between the marks.
  const pieces = text.split("`").map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : strong(piece)));
  return html`${pieces}`;
}

function strong(text: string): Html {
  return html`${text.split("**").map((piece, index) => (index % 2 === 1 ? html`<strong>${piece}</strong>` : html`${piece}`))}`;
}
