/** What a request is charged to: its account, or the client's network if there is none. */
export type Owner = string | number;

/**
 * Admission control: what all requests share, and how much of it is in use. A request is charged through
 * `Request.charge`, and everything is released when it ends.
 */
export interface Admission {
  /** Bytes of bodies, of requests that wait on their connection, and of responses that clients have not read. */
  readonly memory: Budget;
  /** Operations in the write queue. */
  readonly operations: Budget;
  /** Exports and imports. */
  readonly transfers: Budget;
  /** Searches for the feeds that web pages declare. */
  readonly searches: Budget;
}

interface BudgetOptions {
  readonly max: number;
  /** How much one owner may hold. */
  readonly share: number;
  /** A reservation up to this size is small. */
  readonly maxSmall: number;
  /** A larger reservation counts as this much. */
  readonly maxCost?: number;
}

/**
 * An amount that all requests share fairly, such as memory or queue slots. An owner with several reservations may not
 * exceed its share. All large reservations together may use three quarters, so that a reserve remains for small ones. A
 * single large reservation is always accepted, whatever its size.
 */
export class Budget {
  readonly #max: number;
  readonly #maxLarge: number;
  readonly #share: number;
  readonly #maxSmall: number;
  readonly #maxCost: number;
  readonly #byOwner = new Map<Owner, number>();
  #taken = 0;
  #takenByLarge = 0;

  constructor({ max, share, maxSmall, maxCost = (max * 3) / 4 }: BudgetOptions) {
    this.#max = max;
    this.#maxLarge = (max * 3) / 4;
    this.#share = share;
    this.#maxSmall = maxSmall;
    this.#maxCost = maxCost;
  }

  get taken(): number {
    return this.#taken;
  }

  /** An empty reservation. Its owner is read when it is first resized. */
  reserve(holder: { readonly owner: Owner }): Reservation {
    return new Reservation(this, holder);
  }

  /** How much a reservation of this size takes. Capped, so that one huge request leaves room for small ones. */
  cost(amount: number): number {
    return amount > this.#maxSmall ? Math.min(amount, this.#maxCost) : amount;
  }

  /** Whether a reservation may grow to `next`. */
  fits(owner: Owner, held: number, next: number): boolean {
    if (next <= held || this.#taken === held) return true;
    const own = this.#byOwner.get(owner) ?? 0;
    if (own > held && own - held + next > this.#share) return false;
    if (next <= this.#maxSmall) return this.#taken - held + next <= this.#max;
    return this.#takenByLarge - this.#largePart(held) + next <= this.#maxLarge;
  }

  change(owner: Owner, held: number, next: number): void {
    const own = (this.#byOwner.get(owner) ?? 0) - held + next;
    if (own === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, own);
    this.#taken += next - held;
    this.#takenByLarge += this.#largePart(next) - this.#largePart(held);
  }

  #largePart(amount: number): number {
    return amount > this.#maxSmall ? amount : 0;
  }
}

/** The part of a budget that one request holds. */
export class Reservation {
  readonly #budget: Budget;
  readonly #holder: { readonly owner: Owner };
  #owner: Owner | undefined;
  #held = 0;

  constructor(budget: Budget, holder: { readonly owner: Owner }) {
    this.#budget = budget;
    this.#holder = holder;
  }

  get held(): number {
    return this.#held;
  }

  /** Resizes to `amount`. Returns false and changes nothing if that is too much. */
  resize(amount: number): boolean {
    if (!this.fits(amount)) return false;
    const next = this.#budget.cost(amount);
    if (next !== this.#held) this.#budget.change(this.#owner ?? 0, this.#held, next);
    this.#held = next;
    return true;
  }

  /** Whether it could be resized to `amount` now. */
  fits(amount: number): boolean {
    this.#owner ??= this.#holder.owner;
    return this.#budget.fits(this.#owner, this.#held, this.#budget.cost(amount));
  }

  release(): void {
    if (this.#held > 0) this.resize(0);
  }
}
