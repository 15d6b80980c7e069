import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, readAnswers } from "./bad-input.ts";
import { KINDS } from "./bad-input-requests.ts";
import { randomFrom } from "./proof.ts";

const answer = (status: number, body = "") =>
  Buffer.from(`HTTP/1.1 ${status} Words\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
const results = (count: number) => JSON.stringify({ "atomic:results": Array(count).fill({ data: {} }) });
const bytes = Buffer.from("");
const two = { bytes, document: Buffer.from('{"atomic:operations":[1,2]}') };
const refusal = (status: number) => answer(status, JSON.stringify({ errors: [{ status: "400" }] }));

test("a good answer is good, and so is a refusal with its document", () => {
  assert.equal(judge({ bytes }, answer(204)), undefined);
  assert.equal(judge({ bytes }, refusal(400)), undefined);
  assert.equal(judge(two, answer(200, results(2))), undefined);
  assert.equal(judge({ bytes, mayGoUnanswered: true }, Buffer.alloc(0)), undefined);
  assert.equal(judge({ bytes }, Buffer.concat([answer(100), answer(200, "é"), refusal(400)])), undefined);
});

test("a failure, silence, too few results and a refusal in other words are found", () => {
  assert.match(judge({ bytes }, answer(500)) ?? "", /500/);
  assert.match(judge({ bytes }, Buffer.concat([answer(200, "x"), answer(503)])) ?? "", /503/);
  assert.match(judge({ bytes }, undefined) ?? "", /no end/);
  assert.match(judge({ bytes }, Buffer.alloc(0)) ?? "", /no answer/);
  assert.match(judge({ bytes }, Buffer.from("what?")) ?? "", /NaN/);
  assert.match(judge(two, answer(200, results(1))) ?? "", /1 results for 2/);
  assert.match(judge(two, answer(200, results(3))) ?? "", /3 results for 2/);
  assert.match(judge({ bytes, document: Buffer.from("{}") }, answer(200, results(0))) ?? "", /0 results for undefined/);
  assert.match(judge({ bytes }, answer(400, "<html>")) ?? "", /without an error document/);
  assert.match(judge({ bytes }, refusal(404)) ?? "", /without an error document/);
});

test("answers in chunks are read to their end", () => {
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
  assert.deepEqual(
    readAnswers(Buffer.concat([Buffer.from(chunked), answer(404)])).map(({ status }) => status),
    [200, 404],
  );
});

test("every kind of request is many different ones, and the same for the same seed", () => {
  for (const { name, make } of KINDS) {
    const [one, same] = [[...make(200, 1, randomFrom(1))], [...make(200, 1, randomFrom(1))]];
    assert.equal(one.length, 200, name);
    assert.deepEqual(one, same, name);
    assert.ok(new Set(one.map((request) => String(request.bytes))).size > 60, name);
  }
});
