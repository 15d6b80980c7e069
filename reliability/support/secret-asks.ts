import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { exchange, fromElsewhere, writeRequest } from "../../test/support/accounts.ts";
import { ATOMIC, newId, PLAIN } from "../../test/support/server.ts";
import { BASE_HEADERS, MALFORMED, type Row, TABLES } from "./secret-requests.ts";
import { assertWithout, CANARY, canaries, canary, type Headers } from "./secret-search.ts";

export interface Person {
  readonly name: string;
  readonly password: string;
  readonly cookie: string;
  readonly token: string;
  readonly agent: string;
  readonly label: string;
}

export interface Ask {
  /** The request before its canaries are filled in. */
  readonly what: string;
  readonly status: number | undefined;
  readonly bytes: string | Buffer;
  readonly says: readonly string[];
  readonly remembers: RegExp | undefined;
}

/** Fills in canaries, the same one for the same name, and properties of the person. */
function createFill(person: Partial<Person>): (text: string) => string {
  const values = new Map<string, string>(Object.entries(person));
  const fixed = (key: string, create: () => string) => {
    const value = values.get(key) ?? create();
    values.set(key, value);
    return value;
  };
  const head = `\r\nHost: localhost\r\nCookie: ${person.cookie}\r\n`;
  return (text) =>
    text
      .replaceAll("{post}", `POST /v1/operations HTTP/1.1|Content-Type: ${ATOMIC}\r\n`)
      .replace("|", head)
      .replace("{address}", fromElsewhere()["X-Forwarded-For"] ?? "")
      .replace("{basic}", () => btoa(`${canary("user of Basic")}:${canary("password of Basic")}`))
      .replaceAll(/§([^§*]+)(?:\*(\d+))?§/g, (_, name: string, times = "1") => {
        const value = fixed(`canary ${name}`, () => canary(name));
        return (/^[A-Z]+$/.test(name) ? value.toUpperCase() : value).repeat(Number(times));
      })
      .replaceAll(/\{(name|password|cookie|token|agent|label|id\d)\}/g, (_, key: string) => fixed(key, newId));
}

/** Headers that every client sends, full of canaries. */
export function baseHeaders(agent = canary("User-Agent")): Headers {
  const fill = createFill({});
  const filled = Object.entries(BASE_HEADERS).map(([name, value]) => [fill(name), fill(value)]);
  return { ...Object.fromEntries(filled), "User-Agent": agent };
}

export function asksOf(person: Person, rows: readonly Row[]): Ask[] {
  const fill = createFill(person);
  return rows.map(([status, request, headers = {}, body, says = [], remembers]) => {
    const [method = "", target = ""] = request.split(/ (.*)/s);
    const all = Object.entries({ ...BASE_HEADERS, ...headers }).map(([name, value]) => [fill(name), fill(value)]);
    const bytes = writeRequest(method, fill(target), Object.fromEntries(all), body && fill(body));
    return { what: `${request} ${body ?? ""}`, status, bytes, says: says.map(fill), remembers };
  });
}

/** What the parser of HTTP gives up on. */
export function malformedAsks(person: Person): Ask[] {
  const fill = createFill(person);
  return MALFORMED.map(([status, text]) => {
    const bytes = Buffer.from(fill(text), "latin1");
    return { what: text, status, bytes, says: [], remembers: undefined };
  });
}

/** Each JWT as a credential. */
export function asksWithJwts(person: Person, jwts: readonly string[]): Ask[] {
  const rows = jwts.map((jwt): Row => [401, "GET /v1/me", { Authorization: `Bearer ${jwt}` }]);
  return asksOf(person, rows);
}

/** Begins a request and goes away. */
export async function abandon(port: number, cookie: string): Promise<void> {
  const head = `POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${PLAIN}\r\nCookie: ${cookie}\r\n`;
  const body = `Content-Length: 1000\r\n\r\n{"${canary("half a body")}":`;
  for (const more of [body, `X-Half: ${canary("half a header")}`]) {
    const socket = connect(port, "127.0.0.1");
    socket.write(head + more);
    await once(socket, "connect");
    setTimeout(() => socket.resetAndDestroy(), 50);
    await once(socket, "close");
  }
}

/** Sends a request and checks what the response repeats. Returns its status. */
export async function carryOut(
  port: number,
  { what, bytes, status, says, remembers }: Ask,
  isHealthy: boolean,
): Promise<number> {
  const response = await exchange(port, bytes);
  const found = Number(/^HTTP\/1\.1 (\d{3}) /.exec(response)?.[1] ?? 0);
  if (isHealthy && status !== undefined) assert.equal(found, status, `${what}:\n${bytes}\n\n${response}`);
  for (const text of response.match(CANARY) ?? []) {
    const sentAs = canaries.get(text.toLowerCase()) ?? "";
    const isAllowed = says.includes(text) || remembers?.test(sentAs);
    assert.ok(isAllowed, `the response to ${what} contains ${sentAs}: ${response}`);
  }
  assertWithout(response.replaceAll(CANARY, "…"), `the response to ${what}`);
  // Otherwise the exception would not be one.
  if (isHealthy) for (const text of says) assert.ok(response.includes(text), `${what}, ${text}: ${response}`);
  return found;
}

/** Sends one request after the other, and counts the statuses. */
export async function askInOrder(
  port: number,
  asks: readonly Ask[],
  statuses: Map<number, number>,
  isHealthy: boolean,
): Promise<void> {
  for (const one of asks) {
    const status = await carryOut(port, one, isHealthy);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
}

/** Sends everything at once to a server that fails: statuses may differ, but no response may say more. */
export async function askInTrouble(port: number, person: Person, jwts: readonly string[]) {
  const statuses = new Map<number, number>();
  const tables = Object.values(TABLES).flatMap((rows) => asksOf(person, rows));
  const all = [...tables, ...asksWithJwts(person, jwts)];
  await Promise.all(all.map((one) => askInOrder(port, [one], statuses, false)));
  return statuses;
}
