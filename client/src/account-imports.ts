import { type AnyResource, readAttributes, readDocument, readResource } from "./documents.ts";
import { EarmarkError, NetworkError } from "./errors.ts";
import { EVENT_STREAM, streamEvents } from "./events.ts";
import { anyOf, createFetch, createSend, JSON_API, readErrors, sendResource } from "./requests.ts";
import type { CallOptions, ClientOptions } from "./types.ts";

/** The account to import: with its name and password, or with the login that `startLogin` returned. */
export type AccountSource = {
  /** Address of the other server. */
  readonly url: string;
  /** Found out unless given. */
  readonly kind?: "gpodder" | "nextcloud" | undefined;
} & ({ readonly userName: string; readonly password: string } | { readonly login: string });

/** A login to a Nextcloud server. Open `loginUrl` in a browser, and pass `login` to `importAccount`, which waits. */
export interface AccountLogin {
  readonly loginUrl: string;
  readonly login: string;
  readonly expiresAt: Date;
}

/** The other counts add up to `found`. */
export interface AccountCounts {
  readonly subscriptions: {
    readonly found: number;
    readonly added: number;
    /** Also feeds that were named before. */
    readonly alreadySubscribed: number;
    readonly refused: number;
  };
  readonly episodeActions: {
    readonly found: number;
    readonly added: number;
    /** The episode has a newer action of this kind. */
    readonly notNewer: number;
    readonly refused: number;
  };
}

export interface AccountImport extends AccountCounts {
  readonly id: string;
  /** Null for a document. */
  readonly url: string | null;
  readonly kind: "gpodder" | "nextcloud" | "earmark";
  readonly dryRun: boolean;
  /** After a dry run with a login: pass this one to the import. */
  readonly login?: string | undefined;
}

export interface AccountImportProgress extends AccountCounts {
  /** `waiting` is for the person who allows the login; `writing` comes after everything was read. */
  readonly stage: "signing-in" | "waiting" | "subscriptions" | "episode-actions" | "writing";
}

export interface AccountImportOptions extends CallOptions {
  /** Only counts. */
  readonly dryRun?: boolean | undefined;
}

/** Brings accounts of other servers in. Nothing is removed, and it is safe to repeat. */
export interface AccountImports {
  /** Reads the subscriptions and episode actions of an account on another server, and adds them. Takes up to ten minutes. */
  importAccount(
    source: AccountSource,
    options?: AccountImportOptions & {
      /** Called at least every few seconds. */
      readonly onProgress?: ((progress: AccountImportProgress) => void) | undefined;
    },
  ): Promise<AccountImport>;
  /** Starts a login to a Nextcloud server. */
  startLogin(url: string, options?: CallOptions): Promise<AccountLogin>;
  /** Adds what a document of `exportAccount`, of this server or another Earmark, contains. */
  importExport(document: string | Blob | Uint8Array, options?: AccountImportOptions): Promise<AccountImport>;
}

export function createAccountImports(options: ClientOptions): AccountImports {
  const request = createFetch(options);
  const send = createSend(request, options);

  return {
    async importAccount(source, { dryRun = false, onProgress, signal } = {}) {
      const { url, kind } = source;
      const credentials =
        "login" in source ? { login: source.login } : { user_name: source.userName, password: source.password };
      const document = { data: { type: "account-import", attributes: { url, kind, ...credentials } } };
      const events = streamEvents((silence) => {
        const init = { method: "POST", body: JSON.stringify(document), signal: anyOf(silence, signal) };
        const headers = { "Content-Type": JSON_API, Accept: `${EVENT_STREAM}, ${JSON_API}` };
        return request(`/v1/account-imports${queryOf(dryRun)}`, { ...init, headers });
      });
      try {
        for await (const { event, data } of events) {
          if (event === "progress") onProgress?.(readDocument(data, readProgress));
          if (event === "result") return readDocument(data, readAccountImport);
          if (event === "error") throw readEventError(data);
        }
      } catch (cause) {
        signal?.throwIfAborted();
        // It is not retried: the server may still be at it.
        throw cause instanceof EarmarkError ? cause : new NetworkError(cause);
      }
      throw new NetworkError(undefined);
    },

    async startLogin(url, { signal } = {}) {
      const path = "/v1/account-imports/logins";
      const { text } = await sendResource(send, path, "account-import-login", { url }, { atMostOnce: true, signal });
      return readDocument(text, ({ data }: { readonly data: AnyResource }) => {
        const { loginUrl, login, expiresAt } = readResource<AccountLogin>(data);
        return { loginUrl, login, expiresAt };
      });
    },

    async importExport(document, { dryRun = false, signal } = {}) {
      const { text } = await send(`/v1/me/import${queryOf(dryRun)}`, {
        method: "POST",
        contentType: JSON_API,
        body: document as string | Blob,
        // A retry could not report what the first attempt has added.
        atMostOnce: !dryRun,
        isTransfer: true,
        signal,
      });
      return readDocument(text, readAccountImport);
    },
  };
}

const queryOf = (dryRun: boolean) => (dryRun ? "?dryRun=true" : "");

interface Counts {
  readonly subscriptions: object;
  readonly episode_actions: object;
}

function readCounts({ subscriptions, episode_actions }: Counts): AccountCounts {
  return { subscriptions: readAttributes(subscriptions), episodeActions: readAttributes(episode_actions) };
}

function readProgress(progress: Counts & Pick<AccountImportProgress, "stage">): AccountImportProgress {
  return { stage: progress.stage, ...readCounts(progress) };
}

function readAccountImport({
  data,
}: {
  readonly data: { readonly id: string; readonly attributes: Counts };
}): AccountImport {
  const { url, kind, dryRun, login } = readResource<AccountImport>(data);
  return { id: data.id, url, kind, dryRun, ...readCounts(data.attributes), ...(login && { login }) };
}

function readEventError(text: string): EarmarkError {
  const errors = readErrors(text);
  return new EarmarkError(errors[0] ?? { status: 500, title: "Failed" }, errors);
}
