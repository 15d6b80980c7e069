import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { document, fromElsewhere, newToken, signIn, signUp, writeRequest } from "../test/accounts.ts";
import { ATOMIC, add, callServer, newId, PLAIN } from "../test/harness.ts";
import { startPostgres } from "../test/postgres.ts";
import { run as runProgram } from "../test/process.ts";
import { withDefect } from "./faults/settings.ts";
import { type Findings, type Proof, type Run, serve } from "./proof.ts";

const WRITERS = 4;
/** Requests of a round whose last byte is held back. */
const HELD_BACK = 4;
/** A command takes as long to start as a round does. */
const COMMAND_EVERY = 8;

/** One request that would change something, under the credential of its round. */
export interface Write {
  /** What it adds, or removes. */
  readonly what: string;
  readonly kind: "add" | "remove";
  /** When its last byte was sent. */
  readonly sentAt: number;
  /** Of the answer; undefined when none came. */
  readonly status: number | undefined;
}

/** What was written under one credential, and what its user had when the revocation was answered and in the end. */
export interface Round {
  readonly revokedAt: number;
  readonly writes: readonly Write[];
  readonly atAnswer: ReadonlySet<string>;
  readonly atEnd: ReadonlySet<string>;
}

type Settings = Readonly<Record<string, string>>;

export const accessEnds: Proof = {
  name: "revocation",
  promises: ["P11"],
  async prove(run) {
    const rounds: Round[] = [];
    const file = { DATABASE_URL: `file:${run.folder}/earmark.db` };
    rounds.push(...(await revokeAgainAndAgain(run, file, 1, run.isQuick ? 6 : 100)));
    const postgres = await startPostgres([], run.later);
    const shared = { DATABASE_URL: await postgres.database() };
    rounds.push(...(await revokeAgainAndAgain(run, shared, 2, run.isQuick ? 4 : 60)));
    return judge(rounds);
  },
  control: {
    name: "the credential is not checked again",
    async prove(run) {
      const settings = { DATABASE_URL: `file:${run.folder}/earmark.db`, ...withDefect("stale credential") };
      return judge(await revokeAgainAndAgain(run, settings, 1, 4));
    },
  },
};

export function judge(rounds: readonly Round[]): Findings {
  const violations = rounds.flatMap(violationsOf);
  const writes = rounds.flatMap((round) => round.writes);
  const count = (test: (write: Write) => boolean) => writes.filter(test).length.toLocaleString("en");
  return {
    figures: `${rounds.length} revocations, ${count(isDone)} writes before, ${count(({ status }) => status === 401)} refused after: ${violations.length} violations`,
    violations,
  };
}

function isDone({ status }: Write): boolean {
  return status !== undefined && status >= 200 && status < 300;
}

function violationsOf({ revokedAt, writes, atAnswer, atEnd }: Round): string[] {
  const removed = new Set(writes.flatMap((write) => (write.kind === "remove" && isDone(write) ? [write.what] : [])));
  return [
    ...[...atEnd].flatMap((what) => (atAnswer.has(what) ? [] : [`${what} appeared after the revocation was answered`])),
    ...[...atAnswer].flatMap((what) => (atEnd.has(what) ? [] : [`${what} vanished after the revocation was answered`])),
    ...writes.flatMap((write) => {
      const { what, kind, sentAt, status } = write;
      if (sentAt > revokedAt && status !== 401)
        return [`${kind} ${what}: sent after the revocation, answered ${status}`];
      if (kind === "remove") return isDone(write) && atEnd.has(what) ? [`${what}: told removed, and it is there`] : [];
      if (isDone(write) && !atEnd.has(what) && !removed.has(what)) return [`${what}: told done, and it is not there`];
      return status === 401 && atEnd.has(what) ? [`${what}: refused, and it is there`] : [];
    }),
  ];
}

/** Lets clients write with tokens and sessions, and revokes these at moments of chance. */
async function revokeAgainAndAgain(run: Run, settings: Settings, processes: number, count: number): Promise<Round[]> {
  const open = {
    EARMARK_ACCOUNTS: "true",
    EARMARK_SIGN_UP: "true",
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    EARMARK_REQUESTS_PER_MINUTE: "1000000",
  };
  const servers = await Promise.all(Array.from({ length: processes }, () => serve(run, { ...settings, ...open })));
  const [port = 0, other = port] = servers.map((server) => server.port);
  const rounds: Round[] = [];
  for (let number = 0; number < count; number += 1) {
    rounds.push(await oneRound(run, settings, [port, other], number));
    if (number % 20 === 19) run.say(`${number + 1} of ${count} revocations on ${processes} processes`);
  }
  for (const { child } of servers) child.kill("SIGKILL");
  return rounds;
}

async function oneRound(
  run: Run,
  settings: Settings,
  [port, other]: readonly [number, number],
  number: number,
): Promise<Round> {
  const name = `user-${processNumber}-${number}`;
  const observer = await signUp(other, name, "the password of somebody", fromElsewhere());
  const isSession = number % 3 === 2;
  const session = isSession ? await signIn(port, observer, fromElsewhere()) : undefined;
  const token = isSession ? undefined : await newToken(port, observer, { label: "app", scope: "write" });
  const headers = session ? { Cookie: session.cookie } : { Authorization: `Bearer ${token?.token}` };

  const revoke = async () => {
    if (token !== undefined && number % COMMAND_EVERY === 0) {
      const { code, stderr } = await runProgram(["token", "revoke", name, token.id], {
        DATABASE_URL: settings["DATABASE_URL"] ?? "",
      });
      if (code !== 0) throw new Error(stderr);
      return;
    }
    const own = { Cookie: observer.cookie, "Content-Type": PLAIN, ...fromElsewhere() };
    const password = { current_password: observer.password, password: "quite another password" };
    const [method, path, body] =
      session !== undefined && number % 2 === 0
        ? ["PATCH", "/v1/me", document("account", password)]
        : ["DELETE", session === undefined ? `/v1/tokens/${token?.id}` : `/v1/sessions/${session.id}`, undefined];
    const answer = await callServer(other, method, path, { headers: own, ...(body === undefined ? {} : { body }) });
    if (answer.status !== 204) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  };

  const writes: Write[] = [];
  const ports = [port, other];
  const writer = new Writer(headers, isSession, run.random);
  let isOver = false;
  const writing = Array.from({ length: WRITERS }, async (_, index) => {
    while (!isOver) writes.push(await writer.write(ports[index % 2] ?? port));
  });
  const released = Promise.withResolvers<void>();
  const held = Array.from({ length: HELD_BACK }, (_, index) =>
    writer.writeSlowly(ports[index % 2] ?? port, released.promise),
  );
  await sleep(20 + run.random() * 80);
  await revoke();
  const revokedAt = performance.now();
  released.resolve();
  const atAnswer = await possessions(other, observer.cookie);
  await sleep(30);
  isOver = true;
  await Promise.all(writing);
  writes.push(...(await Promise.all(held)));
  return { revokedAt, writes, atAnswer, atEnd: await possessions(port, observer.cookie) };
}

/** So that no two controls and proofs in one database share a name. */
const processNumber = process.pid;

/** Everything of a user that a write can add or remove. */
async function possessions(port: number, cookie: string): Promise<ReadonlySet<string>> {
  const { status, json } = await callServer(port, "GET", "/v1/me/export", { headers: { Cookie: cookie } });
  if (status !== 200) throw new Error(`the export was answered ${status}`);
  const items = json.data as { type: string; id: string; attributes: { label?: string } }[];
  return new Set(
    items.flatMap(({ type, id, attributes }) =>
      type === "subscription" ? [id] : type === "token" && attributes.label !== "app" ? [attributes.label ?? ""] : [],
    ),
  );
}

/** Sends requests of all kinds under one credential. */
class Writer {
  readonly #headers: Settings;
  readonly #mayAddTokens: boolean;
  readonly #random: () => number;
  readonly #added: string[] = [];
  #tokens = 0;

  constructor(headers: Settings, mayAddTokens: boolean, random: () => number) {
    this.#headers = headers;
    this.#mayAddTokens = mayAddTokens;
    this.#random = random;
  }

  async write(port: number): Promise<Write> {
    const { method, path, what, kind, type, body } = this.#next();
    const sentAt = performance.now();
    const headers = { ...this.#headers, "Content-Type": type };
    const answer = await callServer(port, method, path, { headers, ...(body === undefined ? {} : { body }) });
    const isRefused = answer.json?.["atomic:results"]?.[0].errors !== undefined;
    if (kind === "add" && answer.status < 300 && path !== "/v1/tokens") this.#added.push(what);
    return { what, kind, sentAt, status: isRefused ? 422 : answer.status };
  }

  /** Sends a request but for its last byte, and that one when it is released. */
  async writeSlowly(port: number, released: Promise<void>): Promise<Write> {
    const { method, path, what, kind, type, body } = this.#next(true);
    const bytes = writeRequest(method, path, { ...this.#headers, "Content-Type": type }, body);
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => (text += chunk)).on("error", () => undefined);
    const closed = once(socket, "close");
    socket.write(bytes.slice(0, -1));
    await released;
    const sentAt = performance.now();
    socket.write(bytes.slice(-1));
    await closed;
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1];
    return { what, kind, sentAt, status: status === undefined ? undefined : Number(status) };
  }

  #next(isAdding = false): Planned {
    const [chance, id] = [this.#random(), newId()];
    const removed = isAdding || chance >= 0.2 ? undefined : this.#added.pop();
    if (removed !== undefined)
      return { method: "DELETE", path: `/v1/subscriptions/${removed}`, what: removed, kind: "remove", type: PLAIN };
    // An account may have a hundred tokens.
    if (this.#mayAddTokens && chance < 0.5 && this.#tokens < 80) {
      this.#tokens += 1;
      const body = document("token", { label: id, scope: "write" });
      return { method: "POST", path: "/v1/tokens", what: id, kind: "add", type: PLAIN, body };
    }
    const operation = add(id, `https://feeds.example/${id}`);
    if (chance < 0.75) {
      const body = JSON.stringify({ "atomic:operations": [operation] });
      return { method: "POST", path: "/v1/operations", what: id, kind: "add", type: ATOMIC, body };
    }
    const body = JSON.stringify({ data: (operation as { data: unknown }).data });
    return { method: "POST", path: "/v1/subscriptions", what: id, kind: "add", type: PLAIN, body };
  }
}

interface Planned extends Pick<Write, "what" | "kind"> {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body?: string;
}
