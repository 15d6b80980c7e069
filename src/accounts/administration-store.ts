import type { PageRange } from "../util/page-range.ts";
import type { Account, Credential, NewAccount } from "./account-store.ts";
import type { Caller, UserId } from "./caller.ts";
import { type CredentialKind, rulesOf } from "./credential-kinds.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long the audit log keeps an entry. */
export const AUDIT_MS = 400 * DAY_MS;

const AUDIT_ACTIONS = [
  "account-created",
  "account-joined",
  "account-signed-up",
  "account-disabled",
  "account-enabled",
  "account-deleted",
  "administrator-added",
  "administrator-removed",
  "invitation-created",
  "invitation-revoked",
  "reset-link-created",
  "password-reset",
  "second-factor-added",
  "second-factor-removed",
  "second-factor-reset",
  "second-factor-failed",
  "recovery-codes-created",
  "recovery-code-used",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface AuditEntry {
  readonly id: string;
  readonly at: Date;
  readonly action: AuditAction;
  /** Names, because accounts may be deleted. The target of an action on an invitation is its note. */
  readonly actor: string;
  readonly address: string;
  readonly target: string;
}

export function creationAction({ invitationHash, isCreatedByOperator }: NewAccount): AuditAction {
  if (invitationHash !== undefined) return "account-joined";
  return isCreatedByOperator ? "account-created" : "account-signed-up";
}

export type LoggedCredential = Pick<Credential, "kind" | "user" | "label">;

/** The action that the audit log records for a change of a credential; undefined if it records none. */
export function credentialAction(what: "created" | "revoked", kind: CredentialKind): AuditAction | undefined {
  return rulesOf(kind)[what];
}

/** What an administrator can do with an account, and what the audit log records for it. */
export const ADMIN_ACTIONS = {
  disable: "account-disabled",
  enable: "account-enabled",
  promote: "administrator-added",
  demote: "administrator-removed",
} as const satisfies Record<string, AuditAction>;
export type AdminAction = keyof typeof ADMIN_ACTIONS;

/** The part of an account that such an action affects. */
type AccountState = Pick<Account, "isAdmin" | "disabledAt">;

/** The state after the action; undefined if it is the same as before. Shared by all engines. */
export function applyAdminAction(
  action: AdminAction,
  { isAdmin, disabledAt }: AccountState,
  at: Date,
): AccountState | undefined {
  switch (action) {
    case "disable":
      return disabledAt === undefined ? { isAdmin, disabledAt: at } : undefined;
    case "enable":
      return disabledAt === undefined ? undefined : { isAdmin, disabledAt: undefined };
    case "promote":
      return isAdmin ? undefined : { isAdmin: true, disabledAt };
    case "demote":
      return isAdmin ? { isAdmin: false, disabledAt } : undefined;
  }
}

/** Whether an account can administer the server. */
export function isActiveAdmin({ isAdmin, disabledAt }: AccountState): boolean {
  return isAdmin && disabledAt === undefined;
}

/** An account as administrators see it. */
export interface AccountSummary extends Account {
  /** An authenticator app. */
  readonly hasSecondFactor: boolean;
  /** The UTC day of the last request. */
  readonly seenAt: Date | undefined;
  readonly subscriptions: number;
  /** Database rows: subscriptions, removals, episode actions. At most `MAX_ROWS`, which means that many or more. */
  readonly rows: number;
}

/** Counting stops here, so that a large account does not make the list slow. */
export const MAX_ROWS = 10_000;
/** The tables that grow with use. */
export const COUNTED_TABLES = ["subscriptions", "removals", "episode_actions"] as const;

/**
 * What administrators see and change. Every engine guarantees for a change:
 * - it is applied only if the caller, in the same transaction, is still an administrator (`Caller.requiresAdmin`), and it
 *   is recorded in the audit log in that transaction; otherwise it rejects with `AccessRevoked`;
 * - while there are accounts, at least one administrator remains who is not disabled.
 */
export interface AdministrationStore {
  /** Oldest account first. */
  page(range: PageRange): Promise<{ readonly accounts: readonly AccountSummary[]; readonly total: number }>;
  get(user: UserId): Promise<AccountSummary | undefined>;
  /**
   * `done` also if the account was already in that state. Disabling ends all sessions and reset links; tokens are not
   * accepted until the account is enabled.
   */
  change(caller: Caller, user: UserId, action: AdminAction, at: Date): Promise<"done" | "gone" | "last-admin">;
  /** Newest first. */
  auditLog(range: PageRange): Promise<{ readonly entries: readonly AuditEntry[]; readonly total: number }>;
  /** Records that the user was seen on a day. */
  recordSeen(user: UserId, day: Date): Promise<void>;
}
