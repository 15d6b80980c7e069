import assert from "node:assert/strict";

export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[];
  /** All text in it. */
  text: string;
}

const NAME = "[A-Za-z_][\\w.:-]*";
const TOKEN = new RegExp(
  `<(${NAME})((?:\\s+${NAME}="[^"<]*")*)\\s*(/?)>|</(${NAME})\\s*>|((?:[^<&]|&(?:amp|lt|gt|quot|apos|#\\d+|#x[0-9a-fA-F]+);)+)`,
  "y",
);
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
/** What XML 1.0 allows. */
const CHARACTERS = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;

/** Reads a document with only elements, attributes and text. Throws unless it is well-formed XML 1.0. */
export function readStrictXml(document: string): XmlElement {
  assert.match(document, CHARACTERS);
  const [declaration = ""] = /^<\?xml version="1\.0" encoding="utf-8"\?>\n/i.exec(document) ?? [];
  assert.notEqual(declaration, "", "no XML declaration");
  const root: XmlElement = { name: "", attributes: {}, children: [], text: "" };
  const path = [root];
  TOKEN.lastIndex = declaration.length;
  while (TOKEN.lastIndex < document.length) {
    const at = TOKEN.lastIndex;
    const [, opened, attributes = "", isEmpty, closed, text] = TOKEN.exec(document) ?? assert.fail(`not XML at ${at}`);
    const parent = path.at(-1) ?? root;
    if (opened !== undefined) {
      const element = { name: opened, attributes: readAttributes(attributes), children: [], text: "" };
      parent.children.push(element);
      if (isEmpty === "") path.push(element);
    } else if (closed !== undefined) {
      assert.equal(path.pop()?.name, closed, "an element ends that was not open");
    } else for (const element of path) element.text += decode(text ?? "");
  }
  assert.equal(path.length, 1, "an element is not closed");
  const [only, another] = root.children;
  assert.ok(
    only !== undefined && another === undefined && root.text.trim() === only.text.trim(),
    "not one root element",
  );
  return only;
}

function readAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(/([\w.:-]+)="([^"]*)"/g)) {
    assert.ok(!(name in attributes), `${name} is repeated`);
    assert.match(value, /^(?:[^&]|&(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)*$/);
    attributes[name] = decode(value);
  }
  return attributes;
}

function decode(text: string): string {
  return text.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (_, hex, decimal, name) =>
    name === undefined
      ? String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16))
      : (ENTITIES[name] ?? assert.fail(`&${name};`)),
  );
}
