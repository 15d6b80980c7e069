import { scaleRate } from "../../accounts/attempts.ts";
import { type MonotonicClock, type Rate, RateLimiter } from "../../accounts/rate-limits.ts";
import { failure } from "../../errors/catalog.ts";
import { retryAfter } from "../auth/authenticate.ts";

/** Per address; wider networks get more. A page of a long list has thousands of covers. */
const RATES = {
  pages: { burst: 120, perMinute: 60 },
  covers: { burst: 4_000, perMinute: 4_000 },
} as const satisfies Record<string, Rate>;

/** Throws 429 if a client's networks, narrow to wide, have asked for too much. Nobody who opens a link has an account. */
export function createLinkLimits(
  clock?: MonotonicClock,
): (what: keyof typeof RATES, networks: readonly string[]) => void {
  const limiter = new RateLimiter(clock);
  return (what, networks) => {
    for (const network of networks) {
      const rate = scaleRate(RATES[what], network);
      const wait = limiter.spend(`${what} ${network}`, 1, rate);
      if (wait > 0) throw failure("rate-limited", { limit: rate.perMinute, unit: "requests", ...retryAfter(wait) });
    }
  };
}
