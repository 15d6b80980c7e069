import { isActiveAdmin } from "../../accounts/administration-store.ts";
import type { UserId } from "../../accounts/caller.ts";
import type { Alert } from "../../alerts/alert.ts";
import { alertId } from "../../alerts/atom.ts";
import { collectAlerts } from "../../alerts/collect.ts";
import { writeAlert } from "../../alerts/write-alert.ts";
import { type ResourceWithoutLinks, toTimestamp, writePage } from "../../jsonapi/document.ts";
import { type Language, preferredLanguage } from "../../util/languages.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import { afterBatch, type Call } from "../wire/router.ts";
import type { AlertsQuery } from "./queries.ts";
import type { Services } from "./services.ts";

/** Handler of `GET /v1/alerts`. */
export function createAlertsHandler(services: Services) {
  const { config } = services;
  return async (call: Call<AlertsQuery>): Promise<void> => {
    const { request, response, caller, query } = call;
    const language = query.language ?? preferredLanguage(request.headers["accept-language"]);
    const alerts = await readAlerts(services, caller.user, afterBatch(call));
    const start = (query.number - 1) * query.size;
    const resources = alerts
      .slice(start, start + query.size)
      .map((alert) => alertResource(alert, caller.user, language));
    respond(response, 200, JSON_API, writePage(resources, alerts.length, `${config.basePath}/v1/alerts`, query));
  };
}

/** The alerts of an account as of now; those about the server only for its administrators. */
export async function readAlerts(
  { store, accounts, clock }: Pick<Services, "store" | "accounts" | "clock">,
  user: UserId,
  afterBatch: () => Promise<void>,
): Promise<Alert[]> {
  const account = await accounts?.get(user);
  const isAdmin = accounts === undefined || (account !== undefined && isActiveAdmin(account));
  return collectAlerts(store, { user, isAdmin }, clock(), afterBatch);
}

function alertResource(
  alert: Alert,
  user: UserId,
  language: Language,
): ResourceWithoutLinks & { relationships?: object } {
  const { title, text } = writeAlert(alert, language);
  const data = alert.subscriptions.map((id) => ({ type: "subscription", id }));
  return {
    type: "alert",
    id: alertId(user, alert),
    attributes: { code: alert.facts.code, title, text, raised_at: toTimestamp(alert.at) },
    ...(data.length === 0 ? {} : { relationships: { subscriptions: { data } } }),
  };
}
