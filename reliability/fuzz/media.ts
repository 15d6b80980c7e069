import assert from "node:assert/strict";
import { RequestFailure } from "../../src/errors.ts";
import { ATOMIC, type MediaType, PLAIN } from "../../src/jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../../src/jsonapi/negotiation.ts";
import type { Target } from "./target.ts";

const TYPE = "application/vnd.api+json";
const URI = "https://jsonapi.org/ext/atomic";

export const mediaTypes: Target = {
  name: "media type",
  isBytes: false,
  // As long as all headers of a request together may be.
  maxLength: 16_384,
  watches: ["/src/jsonapi/negotiation.ts"],
  seeds: [
    "",
    TYPE,
    `${TYPE};ext="${URI}"`,
    `${TYPE} ; EXT=${URI} ; profile="https://p.example/1 https://p.example/2"`,
    `${TYPE};ext="${URI}\\" \\\\ ${URI}"`,
    `${TYPE};ext="\t${URI} https://other.example/";charset=utf-8`,
    `${TYPE};ext="${URI}`,
    `${TYPE};ext`,
    `${TYPE};ext="${URI}";ext=""`,
    `text/html, application/*;q=0.1, */*;q=0.000`,
    `${TYPE};v=2, ${TYPE};q=0, , ${TYPE};ext="${URI}";q=1.000`,
    "*/*",
    "*/*; q=.2, *; q=abc; q=0",
    `${TYPE}${";a=b".repeat(50)}`,
    Array.from({ length: 50 }, (_, index) => `text/x-${index};q=0.${index}`).join(","),
  ],
  words: [TYPE, "application/*", "*/*", URI, ";", ",", "=", '"', "\\", " ", "\t", "ext", "profile", "q", "q=0", ";q=0."]
    .concat([`ext="${URI}"`, `;ext="${URI} `, ";q=0.000", ";q=1", "charset=utf-8", "é", "text/html", '""'])
    .concat(["application/vnd.api+json;ext=", "Application/VND.API+JSON"]),

  check(input) {
    const ranges = readRanges(input);
    const outcomes = [ATOMIC, PLAIN].flatMap((media) => [
      compare(() => requireContentType(input, media), 415, isReadable(input, ranges, media), "Content-Type"),
      compare(() => requireAccept(input, media), 406, isAdmitted(input, ranges, media), "Accept"),
    ]);
    return `${outcomes.map(Number).join("")} ${Math.min(3, ranges?.length ?? 9)}`;
  },
};

function compare(read: () => void, status: number, expected: boolean, header: string): boolean {
  let isTaken = true;
  try {
    read();
  } catch (failure) {
    if (!(failure instanceof RequestFailure)) throw failure;
    assert.equal(failure.error.status, status);
    assert.deepEqual(failure.error.source, { header });
    isTaken = false;
  }
  assert.equal(isTaken, expected, `as ${header} it should be ${expected ? "taken" : "refused"}`);
  return isTaken;
}

interface Range {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const START = /[ \t,]*(?:$|([^ \t;,]*)[ \t]*)/y;
const PARAMETER = /;[ \t]*(?:([^ \t;,=]+)=(?:"((?:\\[\s\S]|[^"\\])*)"|(?!")([^ \t;,]*)))?[ \t]*/y;

/** RFC 9110 by regular expressions, where the reader goes character by character. */
function readRanges(header: string): Range[] | undefined {
  const ranges: Range[] = [];
  for (let at = 0; at < header.length; ) {
    START.lastIndex = at;
    const start = START.exec(header);
    at += start?.[0].length ?? 0;
    if (start?.[1] === undefined) continue;
    const parameters = new Map<string, string>();
    for (;;) {
      PARAMETER.lastIndex = at;
      const found = PARAMETER.exec(header);
      if (found === null) break;
      at += found[0].length;
      const [, name, quoted, bare] = found;
      if (name === undefined) continue;
      if (parameters.has(name.toLowerCase())) return undefined;
      parameters.set(name.toLowerCase(), quoted?.replaceAll(/\\([\s\S])/g, "$1") ?? bare ?? "");
    }
    if (at < header.length && header[at] !== ",") return undefined;
    ranges.push({ type: start[1].toLowerCase(), parameters });
  }
  return ranges;
}

/** Which dialect the parameters ask for; undefined when it is none of ours. */
function dialectOf({ type, parameters }: Range): MediaType | undefined {
  const { ext, profile: _, q: __, ...others } = Object.fromEntries(parameters);
  if (type !== TYPE || Object.keys(others).length > 0) return undefined;
  if (ext === undefined) return PLAIN;
  const uris = ext.split(/[ \t]/).filter((uri) => uri !== "");
  return uris.length > 0 && uris.every((uri) => uri === URI) ? ATOMIC : undefined;
}

function isReadable(header: string, ranges: readonly Range[] | undefined, media: MediaType): boolean {
  const [only, ...more] = ranges ?? [];
  if (header.trim() === "" || only === undefined || more.length > 0 || only.parameters.has("q")) return false;
  return dialectOf(only) === media;
}

/** The most specific of the ranges that match decides; JSON:API lets a range without the extension stand for both. */
function isAdmitted(header: string, ranges: readonly Range[] | undefined, media: MediaType): boolean {
  if (header.trim() === "") return true;
  const specificity = (range: Range) => {
    if (range.type === "*/*") return 1;
    if (range.type === "application/*") return 2;
    const dialect = dialectOf(range);
    return dialect !== undefined && (dialect === media || dialect === PLAIN) ? 3 : 0;
  };
  const most = Math.max(0, ...(ranges ?? []).map(specificity));
  const deciding = most === 0 ? [] : (ranges ?? []).filter((range) => specificity(range) === most);
  return deciding.some(({ parameters }) => !/^0(\.0{0,3})?$/.test(parameters.get("q") ?? "1"));
}
