import type { Accounts } from "../accounts/accounts.ts";
import type { Administration } from "../accounts/administration.ts";
import { Passkeys } from "../accounts/passkeys.ts";
import type { Signatures } from "../accounts/signatures.ts";
import { readPageQuery } from "../jsonapi/query.ts";
import { createAccountImportHandlers } from "./api/account-imports.ts";
import { createAccountHandlers } from "./api/accounts.ts";
import { createAdministrationHandlers, createInvitationHandlers } from "./api/administration.ts";
import { createAlertsHandler } from "./api/alerts.ts";
import { createAppDataHandlers } from "./api/app-data.ts";
import { createAppLoginHandlers } from "./api/app-logins.ts";
import { createChangesHandler, createRemovalsHandler } from "./api/changes.ts";
import { createCredentialHandlers } from "./api/credentials.ts";
import { MAX_EXPORT_BYTES } from "./api/documents/me-import.ts";
import { createDuplicateHandlers } from "./api/duplicates.ts";
import { createEventsHandler } from "./api/events.ts";
import { createFeedSearchHandler } from "./api/feed-searches.ts";
import { createHistoryHandlers } from "./api/history.ts";
import { createOpmlHandlers, requireImportFileType } from "./api/imports.ts";
import { createLinkHandlers } from "./api/links.ts";
import { createDeleteAccountHandler, createMeHandlers } from "./api/me.ts";
import { createMeImportHandler } from "./api/me-import.ts";
import { createOperationsHandler } from "./api/operations.ts";
import { createPasskeyHandlers } from "./api/passkeys.ts";
import { createDirectorySearch, createPodcastSearchHandler, type SearchDirectory } from "./api/podcast-searches.ts";
import { createPodcastHandlers } from "./api/podcasts.ts";
import {
  readActionListQuery,
  readAlertsQuery,
  readChangesQuery,
  readDryRunQuery,
  readFieldsQuery,
  readHistoryQuery,
  readImportQuery,
  readListQuery,
  readPodcastQuery,
  readRemovalsQuery,
} from "./api/queries.ts";
import { createSecondFactorHandlers } from "./api/second-factor.ts";
import { createServerStatusHandler } from "./api/server-status.ts";
import type { Services } from "./api/services.ts";
import { createSubscriptionHandlers } from "./api/subscriptions.ts";
import { gpodderRoutes } from "./apps/gpodder/routes.ts";
import { nextcloudRoutes } from "./apps/nextcloud/routes.ts";
import { CALLBACK, createOidcLoginHandlers } from "./auth/oidc-login.ts";
import { type BodyReaders, createBodyReaders } from "./body-readers.ts";
import { createHealthHandlers } from "./health.ts";
import { linkRoutes } from "./links/routes.ts";
import type { Metrics } from "./metrics.ts";
import { docsRoutes } from "./page/docs-page.ts";
import { pageRoutes } from "./page/page.ts";
import { EVENT_STREAM, JSON_API_ATOMIC, JSON_API_OR_EVENTS } from "./wire/dialect.ts";
import { respondContent } from "./wire/respond.ts";
import { anyQuery, costOfEverything, costOfPage, costOfRows, type Route, route } from "./wire/router.ts";

/** A document with one subscription. */
const MAX_SUBSCRIPTION_BYTES = 64 * 1024;
/** Documents about accounts, devices and searches are short, so a password of a megabyte is not even read. */
const MAX_SMALL_DOCUMENT_BYTES = 16 * 1024;
/** Enough for a thousand ids. */
const MAX_UNDO_BYTES = 64 * 1024;

const CHECK = { access: "open", ignoresAccept: true, query: anyQuery, startsAtOnce: true } as const;

/** Every route of the server. */
export function createRoutes(services: Services, metrics: Metrics | undefined, isDraining: () => boolean): Route[] {
  const { config } = services;
  const bodies = createBodyReaders(config);
  const me = createMeHandlers(services);
  const health = createHealthHandlers(services, isDraining);
  // Both APIs share its limits.
  const search = createDirectorySearch(services);
  return [
    ...subscriptionRoutes(services, bodies),
    ...syncRoutes(services),
    ...podcastRoutes(services),
    ...searchRoutes(services, search),
    ...appDataRoutes(services),
    ...accountImportRoutes(services),

    route("GET", "/v1/me", { access: "read", run: me.get }),
    route("PATCH", "/v1/me", { access: "write", body: { maxBytes: MAX_SMALL_DOCUMENT_BYTES }, run: me.change }),
    route("GET", "/v1/me/export", { access: "account", cost: costOfEverything, run: me.export }),
    route("POST", "/v1/me/import", {
      access: "write",
      query: readDryRunQuery,
      body: { maxBytes: MAX_EXPORT_BYTES },
      run: createMeImportHandler(services, bodies.accountExport),
    }),
    ...ownLinkRoutes(services),
    ...accountRoutes(services),
    route("GET", "/v1/server", { access: "admin", run: createServerStatusHandler(services) }),

    ...gpodderRoutes(services, bodies, search),
    ...nextcloudRoutes(services, bodies),

    ...linkRoutes(services),
    ...pageRoutes(config),
    ...docsRoutes(services.serverUrlOf),

    route("GET", "/healthz", { ...CHECK, run: health.live }),
    route("GET", "/readyz", { ...CHECK, run: health.ready }),
    ...metricsRoutes(metrics),
  ];
}

function subscriptionRoutes(services: Services, bodies: BodyReaders): Route[] {
  const { maxBodyBytes, maxImportBytes } = services.config.limits;
  const subscriptions = createSubscriptionHandlers(services);
  const opml = createOpmlHandlers(services, bodies.importFile);
  const body = { maxBytes: Math.min(MAX_SUBSCRIPTION_BYTES, maxBodyBytes) };
  return [
    route("POST", "/v1/operations", {
      access: "write",
      dialect: JSON_API_ATOMIC,
      body: { maxBytes: maxBodyBytes },
      run: createOperationsHandler(services, bodies.operations),
    }),

    route("GET", "/v1/subscriptions", {
      access: "read",
      query: readListQuery,
      cost: costOfPage,
      run: subscriptions.list,
    }),
    route("POST", "/v1/subscriptions", { access: "write", body, run: subscriptions.add }),
    route("GET", "/v1/subscriptions/:id", { access: "read", query: readFieldsQuery, run: subscriptions.get }),
    route("PATCH", "/v1/subscriptions/:id", { access: "write", body, run: subscriptions.update }),
    route("DELETE", "/v1/subscriptions/:id", { access: "write", run: subscriptions.remove }),

    route("GET", "/v1/subscriptions.opml", {
      access: "read",
      ignoresAccept: true,
      cost: costOfEverything,
      run: opml.export,
    }),
    route("POST", "/v1/imports", {
      access: "write",
      query: (query) => readImportQuery(query),
      body: { maxBytes: maxImportBytes, requireContentType: requireImportFileType },
      run: opml.import,
    }),
  ];
}

/** What changed in the list. */
function syncRoutes(services: Services): Route[] {
  const history = createHistoryHandlers(services);
  return [
    route("GET", "/v1/changes", {
      access: "read",
      query: readChangesQuery,
      cost: costOfRows,
      run: createChangesHandler(services),
    }),
    route("GET", "/v1/removals", {
      access: "read",
      query: readRemovalsQuery,
      cost: costOfRows,
      run: createRemovalsHandler(services),
    }),
    route("GET", "/v1/history", { access: "read", query: readHistoryQuery, cost: costOfPage, run: history.list }),
    route("GET", "/v1/history/:set", { access: "read", cost: costOfEverything, run: history.get }),
    route("POST", "/v1/history/:set/undo", {
      access: "write",
      query: readDryRunQuery,
      body: { maxBytes: MAX_UNDO_BYTES },
      cost: costOfEverything,
      run: history.undo,
    }),
    route("GET", "/v1/events", {
      access: "read",
      dialect: EVENT_STREAM,
      startsAtOnce: true,
      run: createEventsHandler(services.hub),
    }),
  ];
}

function podcastRoutes(services: Services): Route[] {
  const podcasts = createPodcastHandlers(services);
  const duplicates = createDuplicateHandlers(services);
  return [
    route("GET", "/v1/podcasts/:id", { access: "read", query: readPodcastQuery, run: podcasts.get }),
    route("GET", "/v1/podcasts/:id/artwork/:image", { access: "read", ignoresAccept: true, run: podcasts.artwork }),
    route("POST", "/v1/podcasts/:id/refresh", { access: "write", run: podcasts.refresh }),
    route("POST", "/v1/podcasts/retry", { access: "write", cost: costOfEverything, run: podcasts.retryFailing }),

    route("GET", "/v1/duplicates", {
      access: "read",
      query: readPageQuery,
      cost: costOfEverything,
      run: duplicates.list,
    }),
    route("DELETE", "/v1/duplicates/:id", { access: "write", cost: costOfEverything, run: duplicates.dismiss }),
  ];
}

/** Searches that send requests to other servers. */
function searchRoutes(services: Services, search: SearchDirectory): Route[] {
  const body = { maxBytes: MAX_SMALL_DOCUMENT_BYTES };
  return [
    route("POST", "/v1/feed-searches", { access: "write", body, run: createFeedSearchHandler(services) }),
    route("POST", "/v1/podcast-searches", {
      access: "read",
      body,
      run: createPodcastSearchHandler(services, search),
    }),
  ];
}

function appDataRoutes(services: Services): Route[] {
  const appData = createAppDataHandlers(services);
  return [
    route("GET", "/v1/devices", { access: "read", query: readPageQuery, run: appData.listDevices }),
    route("GET", "/v1/devices/:device", { access: "read", run: appData.getDevice }),
    route("PATCH", "/v1/devices/:device", {
      access: "write",
      body: { maxBytes: MAX_SMALL_DOCUMENT_BYTES },
      run: appData.changeDevice,
    }),
    route("DELETE", "/v1/devices/:device", { access: "write", run: appData.forgetDevice }),
    route("GET", "/v1/episode-actions", {
      access: "read",
      query: readActionListQuery,
      cost: costOfPage,
      run: appData.listActions,
    }),
  ];
}

/** Imports from other servers. */
function accountImportRoutes(services: Services): Route[] {
  const imports = createAccountImportHandlers(services);
  const body = { maxBytes: MAX_SMALL_DOCUMENT_BYTES };
  return [
    route("POST", "/v1/account-imports", {
      access: "write",
      dialect: JSON_API_OR_EVENTS,
      query: readDryRunQuery,
      body,
      run: imports.import,
    }),
    route("POST", "/v1/account-imports/logins", { access: "write", body, run: imports.startLogin }),
  ];
}

/** Secret links and alerts, which a server without accounts has too. */
function ownLinkRoutes(services: Services): Route[] {
  const links = createLinkHandlers(services);
  return [
    route("GET", "/v1/links", { access: "account", query: readPageQuery, run: links.list }),
    route("POST", "/v1/links", {
      access: "account",
      query: readImportQuery,
      body: { maxBytes: MAX_SMALL_DOCUMENT_BYTES },
      run: links.create,
    }),
    route("GET", "/v1/links/:id", { access: "account", run: links.get }),
    route("DELETE", "/v1/links/:id", { access: "account", run: links.revoke }),
    route("GET", "/v1/alerts", { access: "account", query: readAlertsQuery, run: createAlertsHandler(services) }),
  ];
}

function accountRoutes(services: Services): Route[] {
  const { appSignIn, administration } = services;
  if (services.accounts === undefined || administration === undefined || appSignIn === undefined) return [];
  const { signatures } = appSignIn;
  const passkeys = new Passkeys(services.accounts, signatures);
  const accounts = createAccountHandlers(services.accounts, passkeys, services);
  const ownPasskeys = createPasskeyHandlers(services.accounts, passkeys, services);
  const logins = createAppLoginHandlers(services.accounts, signatures, services);
  const body = { maxBytes: MAX_SMALL_DOCUMENT_BYTES };
  const query = readPageQuery;
  const credentials = createCredentialHandlers(services.accounts, services);
  return [
    route("POST", "/v1/accounts", { access: "open", body, run: accounts.signUp }),
    route("POST", "/v1/invitation-checks", { access: "open", body, run: accounts.checkInvitation }),
    route("DELETE", "/v1/me", { access: "account", run: createDeleteAccountHandler(services.accounts, services) }),

    route("GET", "/v1/sessions", { access: "account", query, run: credentials.list("session") }),
    route("POST", "/v1/sessions", { access: "open", body, run: accounts.signIn }),
    route("GET", "/v1/sessions/:id", { access: "account", run: credentials.get("session") }),
    route("DELETE", "/v1/sessions/:id", { access: "account", run: credentials.revoke("session") }),

    route("GET", "/v1/tokens", { access: "account", query, run: credentials.list("token") }),
    route("POST", "/v1/tokens", { access: "account", body, run: credentials.createToken }),
    route("GET", "/v1/tokens/:id", { access: "account", run: credentials.get("token") }),
    route("DELETE", "/v1/tokens/:id", { access: "account", run: credentials.revoke("token") }),

    route("GET", "/v1/passkey-options/sign-in", { access: "open", run: ownPasskeys.signInOptions }),
    route("GET", "/v1/passkey-options/registration", { access: "account", run: ownPasskeys.registrationOptions }),
    route("GET", "/v1/passkeys", { access: "account", query, run: credentials.list("passkey") }),
    route("POST", "/v1/passkeys", { access: "account", body, run: ownPasskeys.add }),
    route("GET", "/v1/passkeys/:id", { access: "account", run: credentials.get("passkey") }),
    route("DELETE", "/v1/passkeys/:id", { access: "account", run: credentials.revoke("passkey") }),

    ...secondFactorRoutes(services.accounts, signatures, services),

    route("GET", "/v1/identities", { access: "account", query, run: credentials.list("linked-user") }),
    route("GET", "/v1/identities/:id", { access: "account", run: credentials.get("linked-user") }),
    route("DELETE", "/v1/identities/:id", { access: "account", run: credentials.revoke("linked-user") }),
    ...oidcRoutes(services.accounts, signatures, services),

    route("GET", "/v1/app-logins/:token", { access: "account", run: logins.get }),
    route("POST", "/v1/app-logins/:token", { access: "account", body, run: logins.allow }),
    route("DELETE", "/v1/app-logins/:token", { access: "account", run: logins.deny }),

    route("POST", "/v1/password-resets", { access: "open", body, run: accounts.resetPassword }),
    ...administrationRoutes(services.accounts, administration, services),
  ];
}

function secondFactorRoutes(accounts: Accounts, signatures: Signatures, services: Services): Route[] {
  const secondFactor = createSecondFactorHandlers(accounts, signatures, services);
  const body = { maxBytes: MAX_SMALL_DOCUMENT_BYTES };
  return [
    route("GET", "/v1/second-factor", { access: "account", run: secondFactor.get }),
    route("POST", "/v1/second-factor", { access: "account", body, run: secondFactor.add }),
    route("DELETE", "/v1/second-factor", { access: "account", run: secondFactor.remove }),
    route("GET", "/v1/second-factor/enrollment", { access: "account", run: secondFactor.enrollment }),
    route("POST", "/v1/second-factor/recovery-codes", {
      access: "account",
      run: secondFactor.replaceRecoveryCodes,
    }),
  ];
}

function administrationRoutes(accounts: Accounts, administration: Administration, services: Services): Route[] {
  const others = createAdministrationHandlers(accounts, administration, services);
  const invitations = createInvitationHandlers(accounts, administration, services);
  const body = { maxBytes: MAX_SMALL_DOCUMENT_BYTES };
  const query = readPageQuery;
  return [
    route("GET", "/v1/accounts", { access: "admin", query, run: others.list }),
    route("GET", "/v1/accounts/:account", { access: "admin", run: others.get }),
    route("PATCH", "/v1/accounts/:account", { access: "admin", body, run: others.change }),
    route("DELETE", "/v1/accounts/:account", { access: "admin", run: others.delete }),
    route("DELETE", "/v1/accounts/:account/second-factor", { access: "admin", run: others.resetSecondFactor }),
    route("POST", "/v1/accounts/:account/reset-links", { access: "admin", run: others.createResetLink }),

    route("GET", "/v1/invitations", { access: "admin", query, run: invitations.list }),
    route("POST", "/v1/invitations", { access: "admin", body, run: invitations.create }),
    route("DELETE", "/v1/invitations/:id", { access: "admin", run: invitations.revoke }),

    route("GET", "/v1/audit-log", { access: "admin", query, run: others.auditLog }),
  ];
}

function oidcRoutes(accounts: Accounts, signatures: Signatures, services: Services): Route[] {
  const oidc = services.config.accounts?.oidc;
  if (oidc?.login === undefined) return [];
  const login = createOidcLoginHandlers(accounts, signatures, { ...oidc, login: oidc.login }, services);
  return [
    route("POST", "/v1/oidc-logins", { access: "open", run: login.startSignIn }),
    route("POST", "/v1/identities", { access: "account", run: login.startLink }),
    route("GET", CALLBACK, { access: "open", ignoresAccept: true, query: (query) => query, run: login.finish }),
  ];
}

function metricsRoutes(metrics: Metrics | undefined): Route[] {
  if (metrics === undefined) return [];
  return [
    route("GET", "/metrics", {
      access: "metrics",
      ignoresAccept: true,
      query: anyQuery,
      run: async ({ response }) => respondContent(response, metrics.contentType, await metrics.collect()),
    }),
  ];
}
