import type { AccountStore, Store } from "../account-store.ts";
import {
  AccessRevoked,
  type Caller,
  type Draft,
  type Outcome,
  type Page,
  StoreUnavailable,
  type Subscription,
  type UserId,
  type Window,
} from "../subscriptions.ts";
import { type Gaps, locate } from "./gaps.ts";
import { DELETED, feedDigits } from "./keys.ts";
import type { Answer, Job } from "./plan.ts";
import { PostgresAccounts } from "./postgres-accounts.ts";
import { type Connection, named, Postgres } from "./postgres-connection.ts";
import { distribute, isNewest, prepareDatabase } from "./postgres-schema.ts";
import { ListWriter } from "./postgres-writer.ts";
import { Recent } from "./recent.ts";
import { nameOf, type StoreOptions } from "./store-options.ts";
import { requireWhole } from "./whole.ts";
import { WriteQueue } from "./write-queue.ts";

export async function openPostgres(url: string, options: StoreOptions): Promise<Store> {
  const postgres = new Postgres(url, options.connections);
  try {
    const warnings = await prepareDatabase(postgres, nameOf(url), options.onWaiting);
    for (const warning of warnings) options.onWarning?.(warning);
    return new PostgresStore(postgres, options);
  } catch (error) {
    await postgres.close();
    throw error;
  }
}

export async function preparePostgres(
  url: string,
  isDistributed: boolean,
): Promise<{ readonly distributed: readonly string[] | undefined }> {
  const postgres = new Postgres(url, 1, { patient: true });
  try {
    await prepareDatabase(postgres, nameOf(url));
    return { distributed: isDistributed ? await postgres.use(distribute) : undefined };
  } finally {
    await postgres.close();
  }
}

/** Memory for the gaps of lists. */
const GAPS_BYTES = 8 * 1024 * 1024;
/** What it takes to keep some besides their own bytes. */
const GAPS_OVERHEAD = 250;

class PostgresStore implements Store {
  readonly accounts: AccountStore;
  readonly #postgres: Postgres;
  readonly #options: StoreOptions;
  /** As they were last seen; a list without has none. */
  readonly #gaps = new Recent<Gaps>(GAPS_BYTES, ({ byteLength }) => byteLength + GAPS_OVERHEAD);
  readonly #writer: ListWriter;
  /** One for each user who has something to write, so that a user takes one connection at most and waits for nobody else. */
  readonly #queues = new Map<UserId, WriteQueue<Job, readonly Answer[]>>();
  #closing: Promise<void> | undefined;

  constructor(postgres: Postgres, options: StoreOptions) {
    this.#postgres = postgres;
    this.#options = options;
    this.#writer = new ListWriter(postgres, this.#gaps);
    this.accounts = new PostgresAccounts(postgres);
  }

  async add(caller: Caller, drafts: readonly Draft[], at: Date): Promise<Outcome[]> {
    if (drafts.length === 0) return [];
    const { user, credentialHash, maxSubscriptions: max } = caller;
    const items = drafts.map(({ id, feedUrl, feed }) => ({ id, feedUrl, feed: feedDigits(feed) }));
    const job = { kind: "add", credentialHash, at: at.getTime(), drafts: items, maxTotal: max } as const;
    const answers = await this.#write(user, job, drafts.length);
    return drafts.map((draft, index) => {
      const answer = answers[index];
      if (answer === "added") return { id: draft.id, feedUrl: draft.feedUrl, subscribedAt: at };
      if (answer === "quota-exceeded") return { refused: answer, max };
      return { refused: answer === "id-in-use" ? "id-in-use" : "already-subscribed", draft };
    });
  }

  async remove({ user, credentialHash }: Caller, id: string, at: Date): Promise<boolean> {
    const [answer] = await this.#write(user, { kind: "remove", credentialHash, at: at.getTime(), id }, 1);
    return answer === "removed";
  }

  async find(user: UserId, id: string): Promise<Subscription | undefined> {
    return this.#postgres.persist(async (connection) => {
      const { rows } = await connection.query(
        "select feed_url, subscribed_at from earmark.subscriptions where user_id = $1 and id = $2",
        [user, id],
      );
      const [row] = rows;
      return row && { id, feedUrl: row.feed_url, subscribedAt: new Date(Number(row.subscribed_at)) };
    });
  }

  async page(user: UserId, window: Window): Promise<Page> {
    return this.#postgres.persist((connection) => readPage(this.#postgres, connection, user, window, this.#gaps));
  }

  async knows(user: UserId, feeds: readonly string[]): Promise<boolean[]> {
    return this.#postgres.persist(async (connection) => {
      const { rows } = await connection.query<{ known: boolean }>(
        `select exists (select 1 from earmark.subscriptions where user_id = $1 and feed = given.feed) as known
         from unnest($2::uuid[]) with ordinality as given (feed, place) order by place`,
        [user, feeds.map(feedDigits)],
      );
      return rows.map(({ known }) => known);
    });
  }

  async ready(): Promise<void> {
    const isReady = await this.#postgres.persist(isNewest);
    if (!isReady) throw new StoreUnavailable("the database is of another version than this program");
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.idle()));
    await this.#postgres.close();
  }

  async #write(user: UserId, job: Job, operations: number): Promise<readonly Answer[]> {
    const answers = await this.#push(user, job, operations);
    if (answers[0] === "access-revoked") throw new AccessRevoked();
    return answers;
  }

  #push(user: UserId, job: Job, operations: number): Promise<readonly Answer[]> {
    if (this.#closing !== undefined) throw new StoreUnavailable("the store is closed");
    const present = this.#queues.get(user);
    if (present !== undefined) return present.push(job, operations, user);
    const queue = new WriteQueue<Job, readonly Answer[]>(
      (jobs) => this.#writer.carryOut(user, jobs),
      this.#options.onCommit,
    );
    this.#queues.set(user, queue);
    const answer = queue.push(job, operations, user);
    void this.#forget(user, queue);
    return answer;
  }

  /** Lets go of a user's queue when nothing waits in it any more. */
  async #forget(user: UserId, queue: WriteQueue<Job, readonly Answer[]>): Promise<void> {
    while (!queue.isIdle) await queue.idle();
    this.#queues.delete(user);
  }
}

/** The total of the list, its gaps (no bytes if they are as was assumed), and all that its items have. */
type PageRow = [
  total: string | null,
  counts: Gaps | null,
  ids: string | null,
  feedUrls: string | null,
  moments: string | null,
];

/** Texts of many items are much less to read, for the driver, than many rows; no address has a space in it. */
const PAGE = named(
  `select (select case sequence when ${DELETED} then ${DELETED} else total end from earmark.lists where user_id = $1),
     (select case when counts = $6::bytea then ''::bytea else counts end from earmark.gaps where user_id = $1),
     string_agg(id::text, ' '), string_agg(feed_url, ' '), string_agg(subscribed_at::text, ' ')
   from (select id, feed_url, subscribed_at from earmark.subscriptions
     where user_id = $1 and sequence between $2 and $5 order by sequence limit $3 offset $4) as page`,
);

/**
 * Total, gaps and items in one statement, so that they are of one instant. Where to look follows from the gaps, which
 * are only known afterwards; so they are taken to be as they were last seen, and it is asked again where they are not.
 */
async function readPage(
  postgres: Postgres,
  connection: Connection,
  user: UserId,
  { offset, size }: Window,
  seen: Recent<Gaps>,
): Promise<Page> {
  // The first item is the first that there is, whatever the gaps.
  const isFirst = offset === 0;
  let gaps = seen.get(user);
  for (;;) {
    const { from, skip } = locate(isFirst ? undefined : gaps, offset);
    // An end to the search, so that no plan reads the rest of the list; the first page is right without it.
    const until = isFirst ? Number.MAX_SAFE_INTEGER : locate(gaps, offset + size - 1).until;
    const { rows } = await connection.query<PageRow>({
      ...postgres.worded(PAGE),
      values: [user, from, size, skip, until, gaps ?? null],
      rowMode: "array",
    });
    const [total, counts, ...texts] = rows[0] ?? [null, null];
    // Some of its items may still be there, until all are erased.
    if (Number(total) === DELETED) return { items: [], total: 0 };
    const isMoved = gaps === undefined ? counts !== null : counts?.length !== 0;
    if (isMoved) {
      gaps = counts === null ? undefined : new Uint8Array(counts);
      if (gaps === undefined) seen.forget(user);
      else seen.set(user, gaps);
    }
    if (isFirst || !isMoved) return { items: readItems(texts, { offset, size }, Number(total)), total: Number(total) };
  }
}

function readItems(texts: readonly (string | null)[], window: Window, total: number): Subscription[] {
  const [ids = [], feedUrls = [], moments = []] = texts.map((text) => text?.split(" ") ?? []);
  for (const { length } of [ids, feedUrls, moments]) requireWhole(length, window, total);
  return ids.map((id, index) => ({
    id,
    feedUrl: feedUrls[index] ?? "",
    subscribedAt: new Date(Number(moments[index])),
  }));
}
