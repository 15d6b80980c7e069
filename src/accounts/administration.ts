import { type Credential, type IssuedCredential, NOBODY } from "./account-store.ts";
import { type Accounts, addMs } from "./accounts.ts";
import type { AdminAction, AdministrationStore } from "./administration-store.ts";
import { asUser, type Caller, type UserId } from "./caller.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "./refusals.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const SETUP_MS = DAY_MS;
const RESET_MS = DAY_MS;
export const INVITATION_DAYS = 7;

const INVITATION_PREFIX = "emi_";
const RESET_PREFIX = "emr_";

/** Maximum number of users seen today that a process remembers. */
const MAX_SEEN = 10_000;

/** What administrators do: manage other accounts, invitations and reset links, and read the audit log. */
export class Administration {
  readonly store: AdministrationStore;
  readonly #accounts: Accounts;
  #today = Number.NaN;
  readonly #seenToday = new Set<UserId>();

  constructor(store: AdministrationStore, accounts: Accounts) {
    this.store = store;
    this.#accounts = accounts;
  }

  /** Once it resolves, the change is in effect in every process. */
  async change(caller: Caller, user: UserId, action: AdminAction, at: Date): Promise<AccountRefusal | undefined> {
    const outcome = await this.store.change(caller, user, action, at);
    await this.#accounts.forgetCached();
    return outcome === "done" ? undefined : refuse({ reason: outcome });
  }

  /** Creates a link with which one person can create an account. */
  invite(
    caller: Caller,
    at: Date,
    {
      note = "",
      expiresAt = addMs(at, INVITATION_DAYS * DAY_MS),
    }: { note?: string; expiresAt?: Date | undefined } = {},
  ): Promise<IssuedCredential | AccountRefusal> {
    return this.#issue(caller, { kind: "invitation", user: NOBODY, label: note, expiresAt }, at);
  }

  /** A link that creates the first account; undefined if there is an account already. */
  async createSetupLink(at: Date): Promise<IssuedCredential | undefined> {
    if (!(await this.#accounts.store.isEmpty())) return undefined;
    const link = { kind: "setup", user: NOBODY, label: "", expiresAt: addMs(at, SETUP_MS) } as const;
    const issued = await this.#issue(asUser(NOBODY), link, at);
    return isAccountRefusal(issued) ? undefined : issued;
  }

  /** Creates a link with which the user can set a new password, once. */
  async createResetLink(caller: Caller, user: UserId, at: Date): Promise<IssuedCredential | AccountRefusal> {
    const account = await this.#accounts.get(user);
    if (account === undefined) return refuse({ reason: "gone" });
    if (account.issuer !== "") return refuse({ reason: "no-password" });
    if (account.disabledAt !== undefined) return refuse({ reason: "disabled" });
    return this.#issue(caller, { kind: "password-reset", user, label: "", expiresAt: addMs(at, RESET_MS) }, at);
  }

  #issue(
    caller: Caller,
    link: Pick<Credential, "user" | "label" | "expiresAt"> & { kind: "invitation" | "setup" | "password-reset" },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const prefix = link.kind === "password-reset" ? RESET_PREFIX : INVITATION_PREFIX;
    return this.#accounts.issue(caller, { scope: "write", ...link }, prefix, at);
  }

  /** Records that the user was seen today. Costs the database one write per user, day and process. */
  recordSeen(user: UserId, at: Date): void {
    const today = Math.floor(at.getTime() / DAY_MS);
    if (today !== this.#today || this.#seenToday.size >= MAX_SEEN) this.#seenToday.clear();
    this.#today = today;
    if (this.#seenToday.has(user)) return;
    this.#seenToday.add(user);
    // Not awaited, and harmless if it fails.
    this.store.recordSeen(user, new Date(today * DAY_MS)).catch(() => undefined);
  }
}
