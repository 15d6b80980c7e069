import { setImmediate as nextTurn } from "node:timers/promises";
import type { UserId } from "../../accounts/caller.ts";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import { stateAtSequence } from "../../lists/state.ts";

const MAX_STREAMS_PER_USER = 10;
/** A client with more unread data than this is disconnected. */
const MAX_UNREAD_BYTES = 16 * 1024;
/** Minimum time between two events of a stream. */
const EVENT_INTERVAL_MS = 500;
/** Each stream gets a comment at this interval, which is shorter than the idle timeouts of servers and proxies. */
const KEEP_ALIVE_INTERVAL_S = 20;
const LIFETIME_MS = 60 * 60 * 1_000;
/** How often the hub polls for changes by other processes. */
const POLL_MS = 2_000;
/** Polling takes at most this share of the time. */
const MAX_POLL_SHARE = 1 / 20;
const USERS_PER_QUERY = 1_000;
const STREAMS_PER_TURN = 500;
/** How long clients normally wait before they reconnect. */
const RETRY_MS = 5_000;
/** Shortest wait before a client reconnects when the server stops. The wait is random, so that not all come at once. */
const MIN_STOP_RETRY_MS = 1_000;
/** Longest such wait. */
const MAX_STOP_RETRY_MS = 10_000;

/** The part of a response that a stream needs. */
interface StreamResponse {
  readonly writableLength: number;
  readonly writableEnded: boolean;
  readonly destroyed: boolean;
  write(text: string): unknown;
  end(text?: string): unknown;
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

interface Stream {
  readonly response: StreamResponse;
  /** Throws `RequestFailure` if access has been revoked. */
  readonly requireAccess: () => void | Promise<void>;
  readonly endsAt: number;
  /** Whether the client has been sent the state of the list. */
  isStarted: boolean;
}

/** The streams of one user. */
interface Channel {
  readonly streams: Set<Stream>;
  /** Sequence number of the list, as far as this process knows. */
  sequence: number;
  /** Set after an event, until the next one may be sent. */
  pause: NodeJS.Timeout | undefined;
  isBehind: boolean;
}

interface EventHubOptions {
  readonly store: Pick<SubscriptionStore, "epoch" | "sequences">;
  readonly maxStreams: number;
  /** Called with the number of events sent. */
  readonly onEvents?: (count: number) => void;
}

/**
 * Notifies the open streams of each user when the user's list has changed. A change by this process is announced at once;
 * one by another process is found by polling the sequence numbers of connected users, which needs no database feature.
 */
export class EventHub {
  readonly #options: EventHubOptions;
  readonly #channels = new Map<UserId, Channel>();
  /** Streams by the second of the interval in which they get their keep-alive comment. */
  readonly #groups = Array.from({ length: KEEP_ALIVE_INTERVAL_S }, () => new Set<Stream>());
  /** Streams whose access is to be checked. */
  readonly #toCheck = new Set<Stream>();
  #opened = 0;
  #size = 0;
  #second = 0;
  #isChecking = false;
  #isPolling = false;
  #isClosed = false;
  #keepAliveTimer: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;

  constructor(options: EventHubOptions) {
    this.#options = options;
  }

  /** Number of open streams. */
  get size(): number {
    return this.#size;
  }

  /**
   * Opens a stream. `start` sends the headers of the response; it is called when the state is known, so that no change
   * is missed.
   */
  async open(
    user: UserId,
    response: StreamResponse,
    requireAccess: Stream["requireAccess"],
    start: () => void,
  ): Promise<void> {
    const channel = this.#admit(user);
    const endsAt = Date.now() + LIFETIME_MS * (0.9 + 0.2 * Math.random());
    const stream: Stream = { response, requireAccess, endsAt, isStarted: false };
    const group = this.#groups[this.#opened++ % KEEP_ALIVE_INTERVAL_S];
    channel.streams.add(stream);
    group?.add(stream);
    this.#size += 1;
    const remove = () => {
      if (!channel.streams.delete(stream)) return;
      group?.delete(stream);
      this.#toCheck.delete(stream);
      this.#size -= 1;
      if (channel.streams.size > 0) return;
      clearTimeout(channel.pause);
      this.#channels.delete(user);
      if (this.#size === 0) this.#stopTimers();
    };
    response.once("close", remove);
    this.#startTimers();
    try {
      // Read after the stream is registered: later commits are announced to it.
      const [sequence = 0] = await this.#options.store.sequences([user]);
      if (response.destroyed) return;
      if (this.#isClosed) throw failure("shutting-down");
      this.notify(user, sequence);
      start();
      stream.isStarted = true;
      this.#send(stream, `retry: ${RETRY_MS}\n\n${this.#eventOf(user, channel)}`);
      this.#options.onEvents?.(1);
      this.#pause(user, channel);
    } catch (error) {
      remove();
      throw error;
    }
  }

  #admit(user: UserId): Channel {
    if (this.#isClosed) throw failure("shutting-down");
    const channel = this.#channels.get(user);
    if ((channel?.streams.size ?? 0) >= MAX_STREAMS_PER_USER)
      throw failure("too-many-streams", { max: MAX_STREAMS_PER_USER });
    if (this.#size >= this.#options.maxStreams) throw failure("streams-full");
    if (channel !== undefined) return channel;
    const opened: Channel = { streams: new Set(), sequence: 0, pause: undefined, isBehind: false };
    this.#channels.set(user, opened);
    return opened;
  }

  /** Must be called with the new sequence number when a user's list has changed. */
  notify(user: UserId, sequence: number): void {
    const channel = this.#channels.get(user);
    if (channel === undefined || sequence <= channel.sequence) return;
    channel.sequence = sequence;
    if (channel.pause === undefined) this.#announce(user, channel);
    else channel.isBehind = true;
  }

  #announce(user: UserId, channel: Channel): void {
    channel.isBehind = false;
    const event = this.#eventOf(user, channel);
    const streams = [...channel.streams].filter(({ isStarted }) => isStarted);
    for (const stream of streams) this.#send(stream, event);
    this.#options.onEvents?.(streams.length);
    this.#pause(user, channel);
  }

  #pause(user: UserId, channel: Channel): void {
    channel.pause ??= setTimeout(() => {
      channel.pause = undefined;
      if (channel.isBehind) this.#announce(user, channel);
    }, EVENT_INTERVAL_MS).unref();
  }

  #eventOf(user: UserId, { sequence }: Channel): string {
    const state = stateAtSequence(this.#options.store.epoch, user, sequence);
    return `event: state\ndata: {"subscriptions":"${state}"}\n\n`;
  }

  #send({ response }: Stream, text: string): void {
    // An ended stream stays in the hub until the client has received the end.
    if (response.writableEnded) return;
    response.write(text);
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
  }

  /** Ends a stream; the second time, disconnects a client that has not read the end. */
  #end({ response }: Stream, text?: string): void {
    if (response.writableEnded) response.destroy();
    else response.end(text);
  }

  /** Checks the access of a user's streams now instead of with their next keep-alive, and ends those without access. */
  recheck(user: UserId): void {
    for (const stream of this.#channels.get(user)?.streams ?? []) if (stream.isStarted) this.#toCheck.add(stream);
    void this.#checkAccess();
  }

  /** One after another, so that many streams do not keep the database busy. */
  async #checkAccess(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    for (const stream of this.#toCheck) {
      this.#toCheck.delete(stream);
      try {
        await stream.requireAccess();
      } catch (error) {
        // If the database is unavailable, the stream stays open.
        if (error instanceof RequestFailure) this.#end(stream);
      }
    }
    this.#isChecking = false;
  }

  #startTimers(): void {
    this.#keepAliveTimer ??= setInterval(() => this.#sendKeepAlives(), 1_000).unref();
    this.#schedulePoll(0);
  }

  #stopTimers(): void {
    clearInterval(this.#keepAliveTimer);
    clearTimeout(this.#poll);
    this.#keepAliveTimer = undefined;
    this.#poll = undefined;
  }

  #sendKeepAlives(): void {
    this.#second += 1;
    const now = Date.now();
    for (const stream of this.#groups[this.#second % KEEP_ALIVE_INTERVAL_S] ?? []) {
      if (!stream.isStarted) continue;
      if (now >= stream.endsAt) this.#end(stream);
      else {
        this.#send(stream, ":\n\n");
        this.#toCheck.add(stream);
      }
    }
    void this.#checkAccess();
  }

  #schedulePoll(lastMs: number): void {
    if (this.#isPolling || this.#isClosed) return;
    const ms = Math.max(POLL_MS, lastMs / MAX_POLL_SHARE) * (0.9 + 0.2 * Math.random());
    this.#poll ??= setTimeout(() => void this.#pollSequences(), ms).unref();
  }

  async #pollSequences(): Promise<void> {
    this.#poll = undefined;
    this.#isPolling = true;
    const started = performance.now();
    const users = [...this.#channels.keys()];
    try {
      for (let at = 0; at < users.length; at += USERS_PER_QUERY) {
        const some = users.slice(at, at + USERS_PER_QUERY);
        const sequences = await this.#options.store.sequences(some);
        for (const [index, user] of some.entries()) this.notify(user, sequences[index] ?? 0);
        await nextTurn();
      }
    } catch {
      // The database is unavailable, which every request reports. The next poll finds what has changed meanwhile.
    }
    this.#isPolling = false;
    if (this.#size > 0) this.#schedulePoll(performance.now() - started);
  }

  /** Ends all streams, and tells the clients to reconnect at different times. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const all = [...this.#channels.values()].flatMap(({ streams }) => [...streams]);
    for (const [index, stream] of all.entries()) {
      const retryMs = MIN_STOP_RETRY_MS + Math.floor(Math.random() * (MAX_STOP_RETRY_MS - MIN_STOP_RETRY_MS));
      if (stream.isStarted) this.#end(stream, `retry: ${retryMs}\n\n`);
      if (index % STREAMS_PER_TURN === STREAMS_PER_TURN - 1) await nextTurn();
    }
    this.#stopTimers();
  }
}
