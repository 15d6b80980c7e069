import { readDate, readDocument } from "./documents.ts";
import { fetchPage, pageQuery } from "./lists.ts";
import { createFetch, createSend, sendDelete, sendResource } from "./requests.ts";
import type { CallOptions, ClientOptions, PageOptions } from "./types.ts";

/** An account, as administrators see it. */
export interface AccountSummary {
  readonly id: string;
  readonly name: string;
  readonly issuer: string | null;
  readonly role: "administrator" | "member";
  /** An authenticator app. */
  readonly hasSecondFactor: boolean;
  readonly createdAt: Date;
  readonly disabledAt: Date | null;
  /** The start of the UTC day of the last request. */
  readonly lastSeenOn: Date | null;
  readonly subscriptions: number;
  /** Subscriptions, removals and episode actions together; 10,000 means that many or more. */
  readonly storedRows: number;
}

export interface Invitation {
  readonly id: string;
  readonly note: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** The link to send to the person; the server shows it only once. */
export interface NewLink {
  readonly url: string;
  readonly expiresAt: Date;
}

export interface AuditEntry {
  readonly id: string;
  readonly action: string;
  /** The name of an account, or `command line`. */
  readonly actor: string;
  readonly target: string;
  readonly address: string | null;
  readonly actedAt: Date;
}

/** How the server does. Counts are up to a minute old. */
export interface ServerStatus {
  readonly version: string;
  readonly nodeVersion: string;
  readonly startedAt: Date;
  readonly readAt: Date;
  /** The size is null on a Citus cluster. */
  readonly database: {
    readonly engine: "sqlite" | "postgresql" | "citus";
    readonly version: string;
    readonly bytes: number | null;
  };
  /** When `earmark backup` last made a backup. */
  readonly lastBackupAt: Date | null;
  /** Null on a server without accounts; an estimate if there are more than 5,000. */
  readonly accounts: number | null;
  /** Of all accounts; an estimate if there are more than 5,000 accounts. */
  readonly subscriptions: number;
  /** Null if the server fetches no feeds, or the database is a Citus cluster. */
  readonly podcasts: {
    readonly known: number;
    /** Waiting to be fetched. */
    readonly due: number;
    /** Failing, forbidden or gone. */
    readonly failing: number;
    readonly forbidden: number;
    readonly gone: number;
  } | null;
}

export interface AdminPage<Item> {
  readonly items: readonly Item[];
  /** Number of items on all pages. */
  readonly total: number;
}

/** What administrators can do when they are signed in: tokens are not accepted. */
export interface AdminClient {
  /** Oldest first. */
  accounts(options?: PageOptions): Promise<AdminPage<AccountSummary>>;
  changeAccount(
    id: string,
    change: { readonly disabled: boolean } | { readonly role: AccountSummary["role"] },
    options?: CallOptions,
  ): Promise<void>;
  /** Requires a sign-in within the last ten minutes. Resolves to false if there is no such account. */
  deleteAccount(id: string, options?: CallOptions): Promise<boolean>;
  createResetLink(id: string, options?: CallOptions): Promise<NewLink>;
  /** Removes the authenticator app and the recovery codes. Requires a sign-in within the last ten minutes. */
  resetSecondFactor(id: string, options?: CallOptions): Promise<void>;
  /** Unused invitations, oldest first. */
  invitations(options?: PageOptions): Promise<AdminPage<Invitation>>;
  invite(
    invitation: { readonly note?: string | undefined; readonly expiresAt?: Date | undefined },
    options?: CallOptions,
  ): Promise<NewLink>;
  revokeInvitation(id: string, options?: CallOptions): Promise<boolean>;
  /** What the server is and how it does. Also for a server without accounts. */
  server(options?: CallOptions): Promise<ServerStatus>;
  /** Newest first. */
  auditLog(options?: PageOptions): Promise<AdminPage<AuditEntry>>;
}

interface Resource {
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export function createAdminClient(options: ClientOptions): AdminClient {
  const send = createSend(createFetch(options), options);
  const page = async <Item>(
    path: string,
    reader: (data: Resource) => Item,
    { number = 1, size = 25, signal }: PageOptions = {},
  ): Promise<AdminPage<Item>> => {
    const { items, total } = await fetchPage(send, path + pageQuery(number, size), reader, signal);
    return { items, total };
  };
  const readLink = (text: string) =>
    readDocument(text, ({ data }: { readonly data: Resource }) => {
      const { url, expires_at } = data.attributes;
      return { url: String(url), expiresAt: new Date(String(expires_at)) };
    });
  const accountPath = (id: string) => `/v1/accounts/${encodeURIComponent(id)}`;

  return {
    accounts: (pageOptions) => page("/v1/accounts", readAccount, pageOptions),

    async changeAccount(id, change, { signal } = {}) {
      await sendResource(send, accountPath(id), "account", change, { method: "PATCH", signal });
    },

    async deleteAccount(id, { signal } = {}) {
      return sendDelete(send, "/v1/accounts", id, { signal });
    },

    async createResetLink(id, { signal } = {}) {
      return readLink(
        (await send(`${accountPath(id)}/reset-links`, { method: "POST", atMostOnce: true, signal })).text,
      );
    },

    async resetSecondFactor(id, { signal } = {}) {
      await send(`${accountPath(id)}/second-factor`, { method: "DELETE", signal });
    },

    invitations: (pageOptions) => page("/v1/invitations", readInvitation, pageOptions),

    async invite({ note = "", expiresAt }, { signal } = {}) {
      const attributes = { note, expires_at: expiresAt?.toISOString() };
      const { text } = await sendResource(send, "/v1/invitations", "invitation", attributes, {
        atMostOnce: true,
        signal,
      });
      return readLink(text);
    },

    async revokeInvitation(id, { signal } = {}) {
      return sendDelete(send, "/v1/invitations", id, { signal });
    },

    async server({ signal } = {}) {
      const { text } = await send("/v1/server", { signal });
      return readDocument(text, ({ data }: { readonly data: Resource }) => readServer(data));
    },

    auditLog: (pageOptions) => page("/v1/audit-log", readEntry, pageOptions),
  };
}

/**
 * For the person who has received a reset link. `secret` is the part of the link after `#`. Sets the password, signs in and
 * ends every other session.
 */
export async function resetPassword(
  options: ClientOptions,
  reset: {
    readonly secret: string;
    readonly password: string;
    readonly revokeTokens?: boolean | undefined;
    /** Of an account with a second factor. */
    readonly oneTimeCode?: string | undefined;
  },
  { signal }: CallOptions = {},
): Promise<void> {
  const { secret, password, revokeTokens, oneTimeCode } = reset;
  const attributes = { link: secret, password, revoke_tokens: revokeTokens, one_time_code: oneTimeCode };
  const send = createSend(createFetch(options), options);
  await sendResource(send, "/v1/password-resets", "password-reset", attributes, { atMostOnce: true, signal });
}

function readAccount({ id, attributes }: Resource): AccountSummary {
  const { name, issuer, role, second_factor, created_at, disabled_at, last_seen_on, subscriptions, stored_rows } =
    attributes as unknown as AccountAttributes;
  return {
    id,
    name,
    issuer,
    role,
    hasSecondFactor: second_factor,
    createdAt: new Date(created_at),
    subscriptions,
    storedRows: stored_rows,
    disabledAt: readDate(disabled_at),
    lastSeenOn: readDate(last_seen_on),
  };
}

interface AccountAttributes extends Pick<AccountSummary, "name" | "issuer" | "role" | "subscriptions"> {
  readonly second_factor: boolean;
  readonly created_at: string;
  readonly disabled_at: string | null;
  readonly last_seen_on: string | null;
  readonly stored_rows: number;
}

function readServer({ attributes }: Resource): ServerStatus {
  const { version, node_version, started_at, read_at, database, last_backup_at, accounts, subscriptions, podcasts } =
    attributes as unknown as ServerAttributes;
  return {
    version,
    nodeVersion: node_version,
    startedAt: new Date(started_at),
    readAt: new Date(read_at),
    database,
    lastBackupAt: readDate(last_backup_at),
    accounts,
    subscriptions,
    podcasts,
  };
}

interface ServerAttributes
  extends Pick<ServerStatus, "version" | "database" | "accounts" | "subscriptions" | "podcasts"> {
  readonly node_version: string;
  readonly started_at: string;
  readonly read_at: string;
  readonly last_backup_at: string | null;
}

function readInvitation({ id, attributes: { note, created_at, expires_at } }: Resource): Invitation {
  return { id, note: String(note), createdAt: new Date(String(created_at)), expiresAt: new Date(String(expires_at)) };
}

function readEntry({ id, attributes }: Resource): AuditEntry {
  const { action, actor, target, address, acted_at } = attributes as Readonly<Record<string, string>>;
  return {
    id,
    action: String(action),
    actor: String(actor),
    target: String(target),
    address: address ?? null,
    actedAt: new Date(String(acted_at)),
  };
}
