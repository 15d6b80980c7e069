import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, runs } from "../../test/support/properties.ts";
import { RequestFailure } from "../errors/catalog.ts";
import { ATOMIC, type MediaType, PLAIN } from "./media-type.ts";
import { namesEvents, requireAccept, requireContentType } from "./negotiation.ts";

const TYPE = "application/vnd.api+json";
const URI = "https://jsonapi.org/ext/atomic";

function errorOf(check: () => void): RequestFailure["error"] | undefined {
  try {
    check();
    return undefined;
  } catch (failure) {
    assert.ok(failure instanceof RequestFailure, String(failure));
    return failure.error;
  }
}
const statusOf = (check: () => void) => errorOf(check)?.status ?? 200;
const contentType = (header: string | undefined, media: MediaType = ATOMIC) =>
  statusOf(() => requireContentType(header, media));
const accept = (header: string | undefined, media: MediaType = ATOMIC) => statusOf(() => requireAccept(header, media));

test("Content-Type: atomic media type in any spelling → accepted", () => {
  for (const header of [
    `${TYPE};ext="${URI}"`,
    `${TYPE}; ext="${URI}"`,
    `${TYPE} ; ext="${URI}" `,
    `Application/VND.API+JSON; EXT="${URI}"`,
    `${TYPE};ext=${URI}`,
    `${TYPE};ext="  ${URI}   "`,
    `${TYPE};ext="\t${URI}"`,
    `\t${TYPE}\t;\text="${URI}"\t`,
    `${TYPE};ext="https:\\/\\/jsonapi.org/ext/atomic"`,
    `${TYPE};ext="${URI} ${URI}"`,
    `${TYPE};ext="${URI}";profile="https://example.org/p"`,
    `${TYPE};profile="https://example.org/p https://example.org/q";ext="${URI}"`,
    `${TYPE};ext="${URI}";`,
    `${TYPE};;ext="${URI}"`,
  ]) {
    assert.equal(contentType(header), 200, header);
  }
});

test("Content-Type: any other value → 415, names the header", () => {
  for (const header of [
    undefined,
    "",
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    TYPE,
    `${TYPE};ext=""`,
    `${TYPE};ext="https://example.org/other"`,
    `${TYPE};ext="${URI} https://example.org/other"`,
    `${TYPE};ext="${URI}";charset=utf-8`,
    `${TYPE};ext="${URI}";ext="${URI}"`,
    `${TYPE};ext='${URI}'`,
    `${TYPE};ext="HTTPS://JSONAPI.ORG/ext/atomic"`,
    `${TYPE};ext="${URI}`,
    `${TYPE};ext`,
    `${TYPE};ext="${URI}";q=1`,
    `${TYPE};ext="${URI}", ${TYPE};ext="${URI}"`,
    `${TYPE};ext="${URI}", application/json`,
    `${TYPE}${";a=b".repeat(2_000)}`,
  ]) {
    assert.equal(contentType(header), 415, header);
  }
  assert.deepEqual(
    errorOf(() => requireContentType(undefined, ATOMIC)),
    {
      status: 415,
      code: "unsupported-media-type",
      title: "Unsupported Media Type",
      detail: `The Content-Type must be ${TYPE};ext="${URI}", with no parameters other than ext and profile.`,
      source: { header: "Content-Type" },
    },
  );
});

test("negotiation: atomic extension on a plain endpoint → 415 or 406", () => {
  assert.equal(contentType(TYPE, PLAIN), 200);
  assert.equal(contentType(`${TYPE};profile="https://example.org/p"`, PLAIN), 200);
  assert.equal(contentType(`${TYPE};ext="${URI}"`, PLAIN), 415);
  assert.equal(contentType(`${TYPE};charset=utf-8`, PLAIN), 415);
  assert.equal(contentType(`${TYPE};ext=""`, PLAIN), 415);
  assert.equal(contentType(`${TYPE};ext=" "`, PLAIN), 415);
  assert.equal(accept(`${TYPE};ext="${URI}"`, PLAIN), 406);
  assert.equal(accept(`${TYPE};ext="${URI}", ${TYPE}`, PLAIN), 200);
  assert.equal(accept(`${TYPE};ext="${URI}", */*;q=0.1`, PLAIN), 200);
});

test("Accept: allows the response type → accepted", () => {
  for (const header of [
    undefined,
    "",
    "*/*",
    "application/*",
    "text/html, application/*;q=0.1",
    TYPE,
    `${TYPE};ext="${URI}"`,
    `${TYPE};profile="https://example.org/p"`,
    `${TYPE};v=2, ${TYPE}`,
    `${TYPE};v=2, */*`,
    `${TYPE};ext="https://example.org/other", ${TYPE}`,
    `${TYPE};q=0.001`,
    `${TYPE};q=1.0`,
    `${TYPE};q=10`,
    `${TYPE};q=abc`,
    `${TYPE};q=2`,
    `APPLICATION/VND.API+JSON`,
    `,, ${TYPE} ,`,
    `text/html,${TYPE}`,
    `text/html;,${TYPE}`,
    "text/html, image/gif, *; q=.2, */*; q=.2",
    `application/json;q=0, ${TYPE}`,
    `${Array.from({ length: 1_000 }, (_, n) => `text/x-${n}`).join(",")}, ${TYPE}`,
  ]) {
    assert.equal(accept(header), 200, header);
  }
});

test("Accept: does not allow the response type → 406, names the header", () => {
  for (const header of [
    "application/json",
    "text/*",
    `${TYPE};v=2`,
    `${TYPE};charset=utf-8`,
    `${TYPE};ext="https://example.org/other"`,
    `${TYPE};ext="${URI} https://example.org/other"`,
    `${TYPE};q=0`,
    `${TYPE};q=0.000`,
    `${TYPE};q=0, */*`,
    "*/*;q=0",
    "application/*;q=0, */*",
    "text/html;=x, */*",
    `${TYPE};ext="${URI}`,
    `${TYPE};q=0;q=1`,
    "*/*;q=1;q=1",
  ]) {
    assert.equal(accept(header), 406, header);
  }
  assert.deepEqual(
    errorOf(() => requireAccept("text/html", ATOMIC)),
    {
      status: 406,
      code: "not-acceptable",
      title: "Not Acceptable",
      detail: `The Accept header does not allow ${TYPE};ext="${URI}", the media type of the response.`,
      source: { header: "Accept" },
    },
  );
});

test("negotiation: random header → accepted, 406 or 415", () => {
  const piece = fc.constantFrom(
    TYPE,
    "*/*",
    ";",
    ",",
    "=",
    '"',
    "\\",
    " ",
    "\t",
    "ext",
    "q",
    "0",
    URI,
    "profile",
    "é",
    "\u0000",
  );
  const header = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join("")),
  );
  fc.assert(
    fc.property(header, (text) => {
      assert.ok([200, 415].includes(contentType(text)));
      assert.ok([200, 406].includes(accept(text)));
    }),
    { numRuns: runs(10_000) },
  );
});

test("Accept: names text/event-stream, without a weight of 0 → events; anything else → no events", () => {
  for (const header of ["text/event-stream", `${TYPE}, text/event-stream;q=0.1`, "TEXT/Event-Stream, */*"])
    assert.equal(namesEvents(header), true, header);
  for (const header of [
    undefined,
    "",
    "*/*",
    "text/*",
    TYPE,
    "text/event-stream;q=0",
    "text/event-stream;;=",
    "text/plain",
  ])
    assert.equal(namesEvents(header), false, header);
});
