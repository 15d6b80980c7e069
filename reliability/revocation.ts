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
interface Write {
  /** The id of the subscription, or the label of the token. */
  readonly target: string;
  readonly kind: "add" | "remove";
  /** Time at which the last byte was sent. */
  readonly sentAt: number;
  /** Undefined without a response. */
  readonly status: number | undefined;
}

/** The writes with one credential, and what its user had right after the revocation and at the end. */
interface Round {
  readonly revokedAt: number;
  readonly writes: readonly Write[];
  readonly afterRevocation: ReadonlySet<string>;
  readonly atEnd: ReadonlySet<string>;
}

type Settings = Readonly<Record<string, string>>;

export const revocation: ReliabilityTest = {
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

function judge(rounds: readonly Round[]): Findings {
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

  const writes: Write[] = [];
  const ports = [port, other];
  const writer = createWriter(headers, isSession, run.random);
  let isStopped = false;
  const writing = Array.from({ length: WRITERS }, async (_, index) => {
    while (!isStopped) writes.push(await writer.write(ports[index % 2] ?? port));
  });
  const released = Promise.withResolvers<void>();
  const delayed = Array.from({ length: DELAYED_WRITES }, (_, index) =>
    writer.writeSlowly(ports[index % 2] ?? port, released.promise),
  );
  await sleep(20 + run.random() * 80);
  const revoked = sleep(lateMs).then(() => revoke(other, { ...observer, name }, { session, token }, number, settings));
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

/** Revokes the credential: by a request, a password change or a command. */
async function revoke(
  port: number,
  { name, cookie, password }: { readonly name: string; readonly cookie: string; readonly password: string },
  { session, token }: { readonly session: { id: string } | undefined; readonly token: { id: string } | undefined },
  number: number,
  settings: Settings,
): Promise<void> {
  if (token !== undefined && number % COMMAND_EVERY === 0) {
    const database = { DATABASE_URL: settings["DATABASE_URL"] ?? "" };
    const { code, stderr } = await runProgram(["token", "revoke", name, token.id], database);
    if (code !== 0) throw new Error(stderr);
    return;
  }
  const headers = { Cookie: cookie, "Content-Type": PLAIN, ...fromElsewhere() };
  const isPasswordChange = session !== undefined && number % 2 === 0;
  const body = document("account", { current_password: password, password: "quite another password" });
  const path = session === undefined ? `/v1/tokens/${token?.id}` : `/v1/sessions/${session.id}`;
  const { status, text } = isPasswordChange
    ? await callServer(port, "PATCH", "/v1/me", { headers, body })
    : await callServer(port, "DELETE", path, { headers });
  if (status !== 204) throw new Error(`revocation: ${status} ${text}`);
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

/** Write requests of all kinds with one credential. */
function createWriter(headers: Settings, mayAddTokens: boolean, random: () => number) {
  const added: string[] = [];
  let tokens = 0;
  const next = (isAdding = false): PlannedWrite => {
    const [chance, id] = [random(), newId()];
    const removed = isAdding || chance >= 0.2 ? undefined : added.pop();
    if (removed !== undefined)
      return { method: "DELETE", path: `/v1/subscriptions/${removed}`, target: removed, kind: "remove", type: PLAIN };
    const adding = { method: "POST", target: id, kind: "add" } as const;
    // The limit is 100 tokens per account.
    if (mayAddTokens && chance < 0.5 && tokens < 80) {
      tokens += 1;
      return { ...adding, path: "/v1/tokens", type: PLAIN, body: document("token", { label: id, scope: "write" }) };
    }
    const operation = add(id, `https://feeds.example/${id}`) as { readonly data: unknown };
    if (chance >= 0.75)
      return { ...adding, path: "/v1/subscriptions", type: PLAIN, body: JSON.stringify({ data: operation.data }) };
    const body = JSON.stringify({ "atomic:operations": [operation] });
    return { ...adding, path: "/v1/operations", type: ATOMIC, body };
  };
  return {
    async write(port: number): Promise<Write> {
      const { method, path, target, kind, type, body } = next();
      const sentAt = performance.now();
      const sent = { headers: { ...headers, "Content-Type": type }, ...(body === undefined ? {} : { body }) };
      const response = await callServer(port, method, path, sent);
      const isRefused = response.json?.["atomic:results"]?.[0].errors !== undefined;
      if (kind === "add" && response.status < 300 && path !== "/v1/tokens") added.push(target);
      return { target, kind, sentAt, status: isRefused ? 422 : response.status };
    },
    /** Sends the last byte of the request only after `released` resolves. */
    async writeSlowly(port: number, released: Promise<void>): Promise<Write> {
      const { method, path, target, kind, type, body } = next(true);
      let sentAt = 0;
      const bytes = writeRequest(method, path, { ...headers, "Content-Type": type }, body);
      const { status } = await holdBack(port, bytes, async () => {
        await released;
        sentAt = performance.now();
      });
      return { target, kind, sentAt, status: status || undefined };
    },
  };
}

interface PlannedWrite extends Pick<Write, "target" | "kind"> {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly body?: string;
}
