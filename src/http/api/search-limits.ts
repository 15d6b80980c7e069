import { type MonotonicClock, type Rate, RateLimiter } from "../../accounts/rate-limits.ts";
import { failure } from "../../errors/catalog.ts";
import { retryAfter } from "../auth/authenticate.ts";
import type { Call } from "../wire/router.ts";
import type { Owner } from "../wire/run-queue.ts";

/** At a time, in total and per account. Each takes up to 15 seconds and a few megabytes of the fetching thread. */
const MAX_SEARCHES = 8;
const MAX_SEARCHES_PER_ACCOUNT = 2;
/** Per account. Every search sends a request to another server. */
const SEARCHES: Rate = { burst: 20, perMinute: 20 };

/** Limits searches of one kind. */
export class SearchLimits {
  readonly #limiter: RateLimiter;
  /** The owners of the searches in progress. */
  readonly #searching: Owner[] = [];

  constructor(clock: MonotonicClock | undefined) {
    this.#limiter = new RateLimiter(clock);
  }

  /** Runs a search, unless there are too many. The signal aborts when the client disconnects. */
  async run<Result>(
    { request, response, caller }: Call<unknown>,
    search: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const own = this.#searching.filter((owner) => owner === request.owner).length;
    if (this.#searching.length >= MAX_SEARCHES || own >= MAX_SEARCHES_PER_ACCOUNT) throw failure("too-many-searches");
    const wait = this.#limiter.spend(String(caller.user), 1, SEARCHES);
    if (wait > 0)
      throw failure("rate-limited", { limit: SEARCHES.perMinute, unit: "searches per minute", ...retryAfter(wait) });
    const abort = new AbortController();
    response.once("close", () => abort.abort());
    this.#searching.push(request.owner);
    return search(abort.signal).finally(() => {
      this.#searching.splice(this.#searching.indexOf(request.owner), 1);
    });
  }
}
