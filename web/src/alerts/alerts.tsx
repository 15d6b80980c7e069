import { useEffect, useState } from "preact/hooks";
import type { Alert, Subscription } from "../../../client/src/index.ts";
import { nameOf } from "../list/known-podcasts.ts";
import { podcastHref } from "../list/place.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { accountMode } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { formatDay, getLanguage, useWords } from "../words/index.ts";
import { alerts, loadAlerts, markSeen } from "./current-alerts.ts";
import "../styles/links.css";

/** How many podcasts of an alert can be opened from it. */
const MAX_PODCASTS = 5;

/** What needs attention, newest first. */
export function AlertsView() {
  const { alerts: words, loading } = useWords();
  const all = useValue(alerts);
  const [failure, setFailure] = useState<unknown>(undefined);
  const load = () => {
    setFailure(undefined);
    void loadAlerts().catch(setFailure);
  };
  useEffect(load, [getLanguage()]);
  useEffect(() => {
    if (all !== undefined) markSeen(all);
  }, [all]);
  return (
    <>
      <div class="page-head">
        <h1>{words.title}</h1>
      </div>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {all === undefined && failure === undefined && <p class="muted">{loading}</p>}
      {all?.length === 0 && <p role="status">{words.none}</p>}
      {all !== undefined && all.length > 0 && (
        <ul class="cards alerts" lang={getLanguage()}>
          {all.map((alert) => (
            <AlertCard key={alert.id} alert={alert} />
          ))}
        </ul>
      )}
      <p class="muted">
        {words.feedHint} <a href="#links">{words.feedLink}</a>
      </p>
    </>
  );
}

function AlertCard({ alert: { code, title, text, raisedAt, subscriptions } }: { alert: Alert }) {
  const { alerts: words } = useWords();
  const { items } = useValue(subscriptionList);
  const podcasts = items.filter(({ id }) => subscriptions.includes(id)).slice(0, MAX_PODCASTS);
  const views = VIEWS[code]?.filter((view) => view !== "account" || accountMode !== "off");
  return (
    <li>
      <div class="details">
        <h2>{title}</h2>
        <p>{text}</p>
        <p class="alert-links">
          <time class="muted" dateTime={raisedAt.toISOString()}>
            {formatDay(raisedAt)}
          </time>
          {views?.map((view) => (
            <a key={view} href={`#${view}`}>
              {words.views[view]}
            </a>
          ))}
          {podcasts.map((item) => (
            <button key={item.id} type="button" class="link" onClick={() => showPodcast(item)}>
              <bdi>{nameOf(item)}</bdi>
            </button>
          ))}
        </p>
      </div>
    </li>
  );
}

function showPodcast({ id }: Subscription): void {
  location.hash = podcastHref(id);
}

/** Where one can do something about it. */
const VIEWS: Partial<Readonly<Record<Alert["code"], readonly ("apps" | "account" | "history")[]>>> = {
  "large-change": ["history", "apps"],
  "device-silent": ["apps"],
  "new-sign-in": ["account"],
};
