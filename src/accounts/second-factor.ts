import { randomBytes } from "node:crypto";
import type { Account, StoredAccount } from "./account-store.ts";
import type { Attempts } from "./attempts.ts";
import type { Caller } from "./caller.ts";
import { CREDENTIAL_KINDS } from "./credential-kinds.ts";
import { hashSecret } from "./hash-secret.ts";
import { type AccountRefusal, refuse } from "./refusals.ts";
import type { SecondFactorStore } from "./second-factor-store.ts";
import type { Signatures } from "./signatures.ts";
import { issueTicket, readTicket, type Ticket } from "./tickets.ts";
import { findStep, latestStep, provisioningUri, TOTP_SECRET_BYTES, toBase32 } from "./totp.ts";

/** How long the user has to set up the app and to enter its first code. */
const ENROLLMENT_MS = 30 * 60 * 1_000;
/** 80 random bits, so that nobody finds a code whose hash they know. */
const RECOVERY_BYTES = 10;
const TOTP_CODE = /^\d{6}$/;
const RECOVERY_CODE = /^[a-z2-7]{16}$/;

/** What the user's app needs, and what the user sends back with its first code. */
interface Enrollment {
  readonly ticket: string;
  readonly secret: string;
  readonly uri: string;
  readonly expiresAt: Date;
}

/**
 * One-time codes that sign-ins with a password need: those of an authenticator app, and recovery codes that work once.
 * Passkeys and identity providers need none.
 */
export class SecondFactor {
  readonly #store: SecondFactorStore;
  readonly #attempts: Attempts;
  readonly #forgetCached: () => Promise<void>;

  /** `forgetCached` resolves when every process knows of a change. */
  constructor(store: SecondFactorStore, attempts: Attempts, forgetCached: () => Promise<void>) {
    this.#store = store;
    this.#attempts = attempts;
    this.#forgetCached = forgetCached;
  }

  /** Undefined if the account needs no code or the code is valid. The password must have been verified. */
  async check(
    { account, totpSecret }: StoredAccount,
    { oneTimeCode, address }: { readonly oneTimeCode?: string | undefined; readonly address: string },
    at: Date,
  ): Promise<AccountRefusal | undefined> {
    if (totpSecret === undefined) return undefined;
    if (oneTimeCode === undefined) return refuse({ reason: "second-factor-required" });
    const { user, name } = account;
    const code = simplify(oneTimeCode);
    const actor = { name, address };
    if (RECOVERY_CODE.test(code)) {
      // Not limited per account: someone who exhausts the limit of the other codes cannot lock the user out.
      if (await this.#store.useRecoveryCode(user, hashRecoveryCode(user, code), actor, at)) return undefined;
    } else {
      const waitMs = await this.#attempts.countCode(user, at);
      if (waitMs > 0) return refuse({ reason: "too-often", waitMs });
      const step = readStep(totpSecret, code, at);
      const use = { secret: totpSecret, latest: latestStep(at) };
      if (step !== undefined && (await this.#store.useStep(user, { ...use, step }, at))) return undefined;
    }
    await this.#store.recordFailure(user, actor, at);
    return refuse({ reason: "wrong-code" });
  }

  /** A new secret. Nothing is stored before the user confirms it: the signed ticket says that it is from this server. */
  async enroll({ user, name }: Account, signatures: Signatures, at: Date): Promise<Enrollment> {
    const { text, ticket } = await issueTicket(signatures, "totp", String(user), ENROLLMENT_MS, at);
    const secret = secretOf(ticket);
    return { ticket: text, secret, uri: provisioningUri(secret, name), expiresAt: ticket.expiresAt };
  }

  /** Turns it on, once the user's app shows the right code. Returns the recovery codes, which cannot be read again. */
  async confirm(
    caller: Caller,
    { ticket: text, oneTimeCode }: { readonly ticket: string; readonly oneTimeCode: string },
    { signatures, keepSession }: { readonly signatures: Signatures; readonly keepSession: string | undefined },
    at: Date,
  ): Promise<readonly string[] | AccountRefusal> {
    const { user } = caller;
    const waitMs = await this.#attempts.countCode(user, at);
    if (waitMs > 0) return refuse({ reason: "too-often", waitMs });
    const ticket = await readTicket(signatures, "totp", text, at);
    if (ticket?.subject !== String(user)) return refuse({ reason: "invalid-ticket" });
    const secret = secretOf(ticket);
    const step = readStep(secret, simplify(oneTimeCode), at);
    if (step === undefined) return refuse({ reason: "wrong-code" });
    const codes = newRecoveryCodes();
    const recoveryHashes = codes.map((code) => hashRecoveryCode(user, simplify(code)));
    const added = { secret, step, latest: latestStep(at), recoveryHashes, keepSession };
    const outcome = await this.#store.add(caller, added, at);
    await this.#forgetCached();
    if (outcome === "added") return codes;
    return refuse({ reason: outcome === "used" ? "wrong-code" : "second-factor-exists" });
  }

  /** Of the caller, or of another user. Safe to repeat. */
  async remove(caller: Caller, at: Date, user = caller.user): Promise<AccountRefusal | undefined> {
    const outcome = await this.#store.remove(caller, user, at);
    await this.#forgetCached();
    return outcome === "gone" ? refuse({ reason: "gone" }) : undefined;
  }

  async replaceRecoveryCodes(caller: Caller, at: Date): Promise<readonly string[] | AccountRefusal> {
    const codes = newRecoveryCodes();
    const hashes = codes.map((code) => hashRecoveryCode(caller.user, simplify(code)));
    const isReplaced = await this.#store.replaceRecoveryCodes(caller, hashes, at);
    return isReplaced ? codes : refuse({ reason: "no-second-factor" });
  }
}

/** People type what they see: with spaces or hyphens between groups, and in capital letters. */
function simplify(code: string): string {
  return code.replaceAll(/[\s-]/g, "").toLowerCase();
}

function readStep(secret: string, code: string, at: Date): number | undefined {
  return TOTP_CODE.test(code) ? findStep(secret, code, at) : undefined;
}

/** A ticket has more random bits than the secret needs. */
function secretOf({ random }: Ticket): string {
  return toBase32(Buffer.from(random, "base64url").subarray(0, TOTP_SECRET_BYTES));
}

function newRecoveryCodes(): string[] {
  const groups = (code: string) => code.replaceAll(/(.{4})(?=.)/g, "$1-");
  return Array.from({ length: CREDENTIAL_KINDS["recovery-code"].max }, () =>
    groups(toBase32(randomBytes(RECOVERY_BYTES)).toLowerCase()),
  );
}

/** With the user, so that no hash fits two accounts. */
function hashRecoveryCode(user: number, code: string): string {
  return hashSecret(`recovery ${user} ${code}`);
}
