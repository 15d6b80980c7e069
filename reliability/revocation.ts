import { setTimeout as sleep } from "node:timers/promises";
import { document, fromElsewhere, holdBack, newToken, signIn, signUp, writeRequest } from "../test/support/accounts.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { run as runProgram } from "../test/support/process.ts";
import { ATOMIC, add, callServer, newId, PLAIN } from "../test/support/server.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";

const WRITERS = 4;
/** Requests per round whose last byte is sent only after the revocation. */
const DELAYED_WRITES = 4;
/** Rarely, because starting a command takes as long as a whole round. */
const COMMAND_EVERY = 8;

/** One write request with the credential of its round. */
export interface Write {
  /** The id of the subscription, or the label of the token. */
  readonly target: string;
  readonly kind: "add" | "remove";
  /** Time at which the last byte was sent. */
  readonly sentAt: number;
  /** Undefined without a response. */
  readonly status: number | undefined;
}

/** The writes with one credential, and what its user had right after the revocation and at the end. */
export interface Round {
  readonly revokedAt: number;
  readonly writes: readonly Write[];
  readonly afterRevocation: ReadonlySet<string>;
  readonly atEnd: ReadonlySet<string>;
}

type Settings = Readonly<Record<string, string>>;

export const accessEnds: ReliabilityTest = {
  name: "revocation",
  promises: ["P11"],
  async check(run) {
    const rounds: Round[] = [];
    const file = { DATABASE_URL: `file:${run.folder}/earmark.db` };
    rounds.push(...(await revokeRepeatedly(run, file, 1, run.isQuick ? 6 : 100)));
    const postgres = await startPostgres([], run.onEnd);
    const shared = { DATABASE_URL: await postgres.database() };
    rounds.push(...(await revokeRepeatedly(run, shared, 2, run.isQuick ? 4 : 60)));
    return judge(rounds);
  },
  control: {
    name: "a server that confirms a revocation too early",
    check: async (run) =>
      judge(await revokeRepeatedly(run, { DATABASE_URL: `file:${run.folder}/earmark.db` }, 1, 4, 100)),
  },
};

export function judge(rounds: readonly Round[]): Findings {
  const violations = rounds.flatMap(violationsOf);
  const writes = rounds.flatMap((round) => round.writes);
  const count = (test: (write: Write) => boolean) => writes.filter(test).length.toLocaleString("en");
  return {
    figures: `${rounds.length} revocations, ${count(succeeded)} writes before, ${count(({ status }) => status === 401)} refused after: ${violations.length} violations`,
    violations,
  };
}

function succeeded({ status }: Write): boolean {
  return status !== undefined && status >= 200 && status < 300;
}

function violationsOf({ revokedAt, writes, afterRevocation, atEnd }: Round): string[] {
  const removed = new Set(
    writes.flatMap((write) => (write.kind === "remove" && succeeded(write) ? [write.target] : [])),
  );
  return [
    ...[...atEnd].flatMap((id) => (afterRevocation.has(id) ? [] : [`${id} appeared after the revocation`])),
    ...[...afterRevocation].flatMap((id) => (atEnd.has(id) ? [] : [`${id} disappeared after the revocation`])),
    ...writes.flatMap((write) => {
      const { target, kind, sentAt, status } = write;
      const exists = atEnd.has(target);
      if (sentAt > revokedAt && status !== 401) return [`${kind} ${target}: sent after the revocation, got ${status}`];
      if (kind === "remove") return succeeded(write) && exists ? [`${target}: removal confirmed, but it exists`] : [];
      if (succeeded(write) && !exists && !removed.has(target)) return [`${target}: add confirmed, but it is missing`];
      return status === 401 && exists ? [`${target}: add refused, but it exists`] : [];
    }),
  ];
}

/** Clients write with tokens and sessions, which are revoked at random times. */
async function revokeRepeatedly(
  run: Run,
  settings: Settings,
  processes: number,
  count: number,
  lateMs = 0,
): Promise<Round[]> {
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
    rounds.push(await oneRound(run, settings, [port, other], number, lateMs));
    if (number % 20 === 19) run.log(`${number + 1} of ${count} revocations on ${processes} processes`);
  }
  for (const { child } of servers) child.kill("SIGKILL");
  return rounds;
}

async function oneRound(
  run: Run,
  settings: Settings,
  [port, other]: readonly [number, number],
  number: number,
  lateMs: number,
): Promise<Round> {
  const name = `user-${processNumber}-${number}`;
  const observer = await signUp(other, name, "correct horse battery staple", fromElsewhere());
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
    const response = await callServer(other, method, path, { headers: own, ...(body === undefined ? {} : { body }) });
    if (response.status !== 204) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
  };

  const writes: Write[] = [];
  const ports = [port, other];
  const writer = new Writer(headers, isSession, run.random);
  let isStopped = false;
  const writing = Array.from({ length: WRITERS }, async (_, index) => {
    while (!isStopped) writes.push(await writer.write(ports[index % 2] ?? port));
  });
  const released = Promise.withResolvers<void>();
  const delayed = Array.from({ length: DELAYED_WRITES }, (_, index) =>
    writer.writeSlowly(ports[index % 2] ?? port, released.promise),
  );
  await sleep(20 + run.random() * 80);
  const revoked = sleep(lateMs).then(revoke);
  if (lateMs === 0) await revoked;
  const revokedAt = performance.now();
  released.resolve();
  const afterRevocation = await readState(other, observer.cookie);
  await sleep(30);
  isStopped = true;
  await Promise.all([revoked, ...writing]);
  writes.push(...(await Promise.all(delayed)));
  return { revokedAt, writes, afterRevocation, atEnd: await readState(port, observer.cookie) };
}

/** Part of user names, so that a test and its control never share one. */
const processNumber = process.pid;

/** The ids and labels of everything that a write can add or remove. */
async function readState(port: number, cookie: string): Promise<ReadonlySet<string>> {
  const { status, json } = await callServer(port, "GET", "/v1/me/export", { headers: { Cookie: cookie } });
  if (status !== 200) throw new Error(`the export returned ${status}`);
  const items = json.data as { type: string; id: string; attributes: { label?: string } }[];
  return new Set(
    items.flatMap(({ type, id, attributes }) =>
      type === "subscription" ? [id] : type === "token" && attributes.label !== "app" ? [attributes.label ?? ""] : [],
    ),
  );
}

/** Sends write requests of all kinds with one credential. */
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
    const { method, path, target, kind, type, body } = this.#next();
    const sentAt = performance.now();
    const headers = { ...this.#headers, "Content-Type": type };
    const response = await callServer(port, method, path, { headers, ...(body === undefined ? {} : { body }) });
    const isRefused = response.json?.["atomic:results"]?.[0].errors !== undefined;
    if (kind === "add" && response.status < 300 && path !== "/v1/tokens") this.#added.push(target);
    return { target, kind, sentAt, status: isRefused ? 422 : response.status };
  }

  /** Sends the last byte of the request only after `released` resolves. */
  async writeSlowly(port: number, released: Promise<void>): Promise<Write> {
    const { method, path, target, kind, type, body } = this.#next(true);
    const bytes = writeRequest(method, path, { ...this.#headers, "Content-Type": type }, body);
    let sentAt = 0;
    const { status } = await holdBack(port, bytes, async () => {
      await released;
      sentAt = performance.now();
    });
    return { target, kind, sentAt, status: status || undefined };
  }

  #next(isAdding = false): PlannedWrite {
    const [chance, id] = [this.#random(), newId()];
    const removed = isAdding || chance >= 0.2 ? undefined : this.#added.pop();
    if (removed !== undefined)
      return { method: "DELETE", path: `/v1/subscriptions/${removed}`, target: removed, kind: "remove", type: PLAIN };
    // The limit is 100 tokens per account.
    if (this.#mayAddTokens && chance < 0.5 && this.#tokens < 80) {
      this.#tokens += 1;
      const body = document("token", { label: id, scope: "write" });
      return { method: "POST", path: "/v1/tokens", target: id, kind: "add", type: PLAIN, body };
    }
    const operation = add(id, `https://feeds.example/${id}`);
    if (chance < 0.75) {
      const body = JSON.stringify({ "atomic:operations": [operation] });
      return { method: "POST", path: "/v1/operations", target: id, kind: "add", type: ATOMIC, body };
    }
    const body = JSON.stringify({ data: (operation as { data: unknown }).data });
    return { method: "POST", path: "/v1/subscriptions", target: id, kind: "add", type: PLAIN, body };
  }
}

interface PlannedWrite extends Pick<Write, "target" | "kind"> {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body?: string;
}
