import type { AuditAction } from "./administration-store.ts";

interface CredentialRules {
  /** Maximum number per user; for kinds that belong to no user, in all. */
  readonly max: number;
  /** Beyond the maximum, the one that was not used for longest makes room. */
  readonly evictsOldest?: true;
  /** It expires when it has not been used for this long. */
  readonly idleMs?: number;
  /** Ended by a new password: always, or only if the user asks for it. Those that always end also end for a disabled account. */
  readonly endsWithPassword?: "always" | "if-asked";
  /** Kind that it has while the account is disabled. */
  readonly whileDisabled?: string;
  /** Users list and remove these themselves. */
  readonly isManagedByUser?: true;
  /** Removing one ends the sessions that may have been opened with it, as a new password does. */
  readonly endsSessions?: true;
  /** What the audit log records. */
  readonly created?: AuditAction;
  readonly revoked?: AuditAction;
  /** What it gives access as, if it does, when a backup is restored. */
  readonly inBackups?: "token" | "session" | "invitation" | "passkey" | "linked-user" | "recovery-code";
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/**
 * Everything that is accepted instead of a password, and its rules. Only the hash of a secret is stored, besides the
 * `ticket-key` (`signatures.ts`). Kinds without a secret store another hash: `denied-login` the hash that the token
 * would have had, `passkey` and `used-challenge` hashes of public values (`passkeys.ts`), `linked-user` the hash of an identity
 * provider's user (`linked-users.ts`).
 */
export const CREDENTIAL_KINDS = {
  token: {
    max: 100,
    endsWithPassword: "if-asked",
    whileDisabled: "disabled-token",
    isManagedByUser: true,
    inBackups: "token",
  },
  /** No check accepts it, so that checking a token takes no extra lookup. */
  "disabled-token": { max: 100, endsWithPassword: "if-asked" },
  session: {
    max: 100,
    idleMs: 14 * DAY_MS,
    endsWithPassword: "always",
    isManagedByUser: true,
    inBackups: "session",
  },
  /** Of a podcast app, opened with a token or the password, and valid as long as that is (`apps/sign-in.ts`). */
  "app-session": { max: 200, evictsOldest: true, idleMs: 60 * DAY_MS, inBackups: "session" },
  passkey: { max: 20, isManagedByUser: true, endsSessions: true, inBackups: "passkey" },
  /** Signs in once, with the password, instead of a code of the authenticator app (`second-factor.ts`). */
  "recovery-code": { max: 10, inBackups: "recovery-code" },
  "linked-user": { max: 10, isManagedByUser: true, endsSessions: true, inBackups: "linked-user" },
  "password-reset": { max: 10, endsWithPassword: "always", created: "reset-link-created", inBackups: "invitation" },
  invitation: { max: 1_000, created: "invitation-created", revoked: "invitation-revoked", inBackups: "invitation" },
  /** Creates the first account. */
  setup: { max: 1_000, inBackups: "invitation" },
  "ticket-key": { max: 1_000 },
  "denied-login": { max: 1_000 },
  "used-challenge": { max: 1_000 },
} as const satisfies Record<string, CredentialRules>;

export type CredentialKind = keyof typeof CREDENTIAL_KINDS;
/** Kinds that users manage themselves. */
export type UserManagedKind = {
  [Kind in CredentialKind]: (typeof CREDENTIAL_KINDS)[Kind] extends { isManagedByUser: true } ? Kind : never;
}[CredentialKind];

export const rulesOf = (kind: CredentialKind): CredentialRules => CREDENTIAL_KINDS[kind];

const KINDS = Object.keys(CREDENTIAL_KINDS) as CredentialKind[];

export const USER_MANAGED_KINDS = KINDS.filter((kind) => rulesOf(kind).isManagedByUser) as UserManagedKind[];

/** The kinds that expire when they are not used, and after how many milliseconds. */
export const IDLE_KINDS = KINDS.flatMap((kind) => {
  const { idleMs } = rulesOf(kind);
  return idleMs === undefined ? [] : [[kind, idleMs] as const];
});

/** The kinds that a new password ends. */
export function kindsEndedByPassword(revokesTokens: boolean): readonly CredentialKind[] {
  const ends = (kind: CredentialKind) => rulesOf(kind).endsWithPassword;
  return KINDS.filter((kind) => ends(kind) === "always" || (revokesTokens && ends(kind) === "if-asked"));
}

/** Kinds to replace when an account is disabled or enabled, and what they become. */
export function kindsToSwitch(action: "disable" | "enable"): readonly (readonly [CredentialKind, CredentialKind])[] {
  return KINDS.flatMap((kind) => {
    const disabled = rulesOf(kind).whileDisabled as CredentialKind | undefined;
    if (disabled === undefined) return [];
    return [action === "disable" ? ([kind, disabled] as const) : ([disabled, kind] as const)];
  });
}

/** What a credential in a backup gives access as. An earlier version may have had other kinds, which give none. */
export function givenAccess(kind: string): CredentialRules["inBackups"] {
  return (CREDENTIAL_KINDS as Readonly<Record<string, CredentialRules>>)[kind]?.inBackups;
}
