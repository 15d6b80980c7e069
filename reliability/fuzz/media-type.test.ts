import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { ATOMIC, type MediaType, PLAIN } from "../../src/jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../../src/jsonapi/negotiation.ts";
import { MEDIA_TYPES } from "./corpora.ts";
import { fuzz } from "./fuzz.ts";
import { inputs } from "./inputs.ts";

const TYPE = "application/vnd.api+json";
const URI = "https://jsonapi.org/ext/atomic";

test("fuzz: any media type → accepted as RFC 9110 and JSON:API say", () =>
  fuzz(MEDIA_TYPES, inputs(MEDIA_TYPES), check));

function check(input: string): void {
  const ranges = readRanges(input);
  for (const media of [ATOMIC, PLAIN]) {
    compare(() => requireContentType(input, media), 415, isReadable(input, ranges, media), "Content-Type");
    compare(() => requireAccept(input, media), 406, isAdmitted(input, ranges, media), "Accept");
  }
}

function compare(read: () => void, status: number, expected: boolean, header: string): void {
  let isTaken = true;
  try {
    read();
  } catch (failure) {
    if (!(failure instanceof RequestFailure)) throw failure;
    assert.equal(failure.error.status, status);
    assert.deepEqual(failure.error.source, { header });
    isTaken = false;
  }
  assert.equal(isTaken, expected, `should be ${expected ? "accepted" : "rejected"} as ${header}`);
}

interface Range {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const START = /[ \t,]*(?:$|([^ \t;,]*)[ \t]*)/y;
const PARAMETER = /;[ \t]*(?:([^ \t;,=]+)=(?:"((?:\\[\s\S]|[^"\\])*)"|(?!")([^ \t;,]*)))?[ \t]*/y;

/** RFC 9110 by regular expressions; the parser under test scans characters. */
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

/** The media type that the parameters select; undefined when it is not supported. */
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

/** The most specific matching range decides; in JSON:API a range without the extension matches both media types. */
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
