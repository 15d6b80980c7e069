import { AlertsLink, useNewAlerts } from "../alerts/alerts-link.tsx";
import { accountMode, currentUser, serverUrl } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Icon, type IconName } from "../ui/components.tsx";
import { sidebarContent } from "../ui/sidebar.ts";
import { format, useWords } from "../words/index.ts";

interface Target {
  /** The view, as the URL's fragment names it. */
  readonly view: string;
  readonly icon: IconName;
  readonly label: string;
}

interface NavigationProps {
  readonly view: string;
  readonly onSettings: () => void;
}

/** A sidebar on wide windows, tabs at the bottom of a phone, and a column of icons in between. */
export function Navigation({ view, onSettings }: NavigationProps) {
  const { views, mainMenu, history, alerts } = useWords();
  const newAlerts = useNewAlerts();
  const Content = useValue(sidebarContent);
  const main: readonly Target[] = [
    { view: "list", icon: "list", label: views.list },
    { view: "add", icon: "add", label: views.add },
    { view: "listening", icon: "listening", label: views.listening },
    { view: "history", icon: "waiting", label: history.title },
  ];
  const isElsewhere = !main.some((target) => target.view === view);
  return (
    <header class="sidebar">
      <a class="brand" href="#list">
        <img src="./assets/icon.svg" alt="" width="28" height="28" />
        <span>Earmark</span>
      </a>
      <nav aria-label={mainMenu}>
        <div class="tabs">
          {main.map((target) => (
            <ViewLink key={target.view} {...target} isCurrent={target.view === view} />
          ))}
          <a
            class={newAlerts === 0 ? "more" : "more has-mark"}
            href="#more"
            aria-label={newAlerts === 0 ? undefined : `${views.more} (${format(alerts.withNew, { n: newAlerts })})`}
            aria-current={view === "more" ? "page" : isElsewhere ? "true" : undefined}
          >
            <Icon name="more" />
            <span>{views.more}</span>
          </a>
        </div>
        {Content && (
          <div class="sidebar-content">
            <Content />
          </div>
        )}
        <OtherViews view={view} onSettings={onSettings} />
      </nav>
    </header>
  );
}

/** The views that have no tab on a phone. */
export function MoreView({ onSettings }: Pick<NavigationProps, "onSettings">) {
  const { views } = useWords();
  return (
    <>
      <h1>{views.more}</h1>
      <nav aria-label={views.more}>
        <OtherViews view="more" onSettings={onSettings} />
      </nav>
    </>
  );
}

function OtherViews({ view, onSettings }: NavigationProps) {
  const { views, links, administration, server, settings, api } = useWords();
  const isAdmin = useValue(currentUser)?.role === "administrator";
  const targets: readonly Target[] = [
    { view: "import", icon: "import", label: views.import },
    { view: "apps", icon: "apps", label: views.apps },
    { view: "links", icon: "link", label: links.title },
    ...(accountMode === "off" ? [] : [{ view: "account", icon: "account", label: views.account } as const]),
    ...(isAdmin ? [{ view: "people", icon: "people", label: administration.title } as const] : []),
    ...(isAdmin || accountMode === "off" ? [{ view: "server", icon: "server", label: server.title } as const] : []),
  ];
  return (
    <div class="other-views">
      <AlertsLink isCurrent={view === "alerts"} />
      {targets.map((target) => (
        <ViewLink key={target.view} {...target} isCurrent={target.view === view} />
      ))}
      <button type="button" onClick={onSettings}>
        <Icon name="settings" />
        <span>{settings.title}</span>
      </button>
      <a href={`${serverUrl}/docs`}>
        <Icon name="file" />
        <span>{api}</span>
      </a>
    </div>
  );
}

function ViewLink({ view, icon, label, isCurrent }: Target & { isCurrent: boolean }) {
  return (
    <a href={`#${view}`} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={icon} />
      <span>{label}</span>
    </a>
  );
}
