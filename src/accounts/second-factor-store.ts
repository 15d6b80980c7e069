import type { Actor, Caller, UserId } from "./caller.ts";

export interface NewSecondFactor {
  readonly secret: string;
  /** The step of the code that has confirmed it. */
  readonly step: number;
  /** As in `TotpUse`. */
  readonly latest: number;
  /** Hashes of the recovery codes. */
  readonly recoveryHashes: readonly string[];
  /** Id of the session to keep; all others end, because they were opened with the password alone. */
  readonly keepSession: string | undefined;
}

export interface TotpUse {
  readonly secret: string;
  readonly step: number;
  /** A stored step that is higher no longer counts (`latestStep`). */
  readonly latest: number;
}

/**
 * Stores the secret of the user's authenticator app, the last step whose code was used, and recovery codes, which are
 * credentials. Every engine guarantees that of several concurrent uses of one code, only one succeeds.
 */
export interface SecondFactorStore {
  /** `exists` if there is one already, `used` if the step has been used; nothing is changed then. */
  add(caller: Caller, added: NewSecondFactor, at: Date): Promise<"added" | "exists" | "used">;
  /** With the recovery codes. Succeeds also if there is none; `gone` if there is no such account. */
  remove(caller: Caller, user: UserId, at: Date): Promise<"removed" | "gone">;
  /** False if there is no second factor. The old codes are no longer valid. */
  replaceRecoveryCodes(caller: Caller, hashes: readonly string[], at: Date): Promise<boolean>;
  /** False if this or a later step has been used, or the secret is another one now. */
  useStep(user: UserId, use: TotpUse, at: Date): Promise<boolean>;
  /** False if there is no such code, or it has been used. */
  useRecoveryCode(user: UserId, hash: string, actor: Actor, at: Date): Promise<boolean>;
  /** Records a wrong code in the audit log. */
  recordFailure(user: UserId, actor: Actor, at: Date): Promise<void>;
}
