/** Identifies a user. Every key of a store starts with it, and every query selects by it. */
export type UserId = number;

/** The one user of a server without accounts. */
export const LOCAL_USER: UserId = 1;

/** The user who writes, and the conditions under which the store accepts the write. */
export interface Caller {
  readonly user: UserId;
  /** Hash of the request's credential; undefined when there is none to revoke. */
  readonly credentialHash: string | undefined;
  /**
   * Stored hash of the password, if the request was not made with a credential. It must not have changed, and the account
   * must not be disabled.
   */
  readonly passwordHash?: string | undefined;
  /** The password itself is all that the request was made with, so the account must have no second factor. */
  readonly hasPasswordOnly?: boolean;
  /** Maximum length of the user's list. */
  readonly maxSubscriptions: number;
  /** The user must be an administrator whose account is not disabled. */
  readonly requiresAdmin?: boolean;
  /** Who acts, for the audit log; the command line unless given. */
  readonly actor?: Actor;
  /** Who changes the list, for its history; the command line unless given. */
  readonly author?: Author;
}

/** By whom a list is changed: an app, the page, the bearer of a token, an import, a command, or the server itself. */
export interface Author {
  readonly kind: "app" | "page" | "token" | "import" | "command" | "server";
  /** The app's device or the token's label; otherwise empty. */
  readonly name: string;
  /** Tells authors of the same name apart: the app's installation or the token's id. */
  readonly key: string;
  /** The same for all writes of one import, upload or undo. */
  readonly act?: string;
  /** What is undone: a set of changes, some subscriptions of it, or everything since before it. */
  readonly undo?: { readonly set: number; readonly scope: "this" | "some" | "since" };
}

const ANONYMOUS = { name: "", key: "" } as const;
export const BY_PAGE: Author = { kind: "page", ...ANONYMOUS };
export const BY_COMMAND: Author = { kind: "command", ...ANONYMOUS };
export const BY_SERVER: Author = { kind: "server", ...ANONYMOUS };
export const BY_IMPORT: Author = { kind: "import", ...ANONYMOUS };

/** Who did something, and from which address; empty if it was done on the server itself. */
export interface Actor {
  readonly name: string;
  readonly address: string;
}

/** Not the name of an account, which cannot contain a space. */
export const COMMAND_LINE: Actor = { name: "command line", address: "" };

/** No quota. A number that every engine can compare. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** A caller without a credential that could be revoked: the local user, the command line, the server itself. */
export function asUser(user: UserId): Caller {
  return { user, credentialHash: undefined, maxSubscriptions: UNLIMITED };
}

/** The account was deleted or disabled, or the caller's credential revoked or expired. Nothing was written. */
export class AccessRevoked extends Error {
  override readonly name = "AccessRevoked";
}
