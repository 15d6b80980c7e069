import { useEffect } from "preact/hooks";
import { useValue } from "../state/state.ts";
import { Icon } from "../ui/components.tsx";
import { format, useWords } from "../words/index.ts";
import { alerts, seen, watchAlerts } from "./current-alerts.ts";

/** Leads to the alerts, with a mark if there are some that were not shown yet. */
export function AlertsLink({ isCurrent }: { isCurrent: boolean }) {
  const { alerts: words } = useWords();
  const all = useValue(alerts) ?? [];
  const known = useValue(seen);
  useEffect(watchAlerts, []);
  const count = all.filter(({ id }) => !known.has(id)).length;
  const label = count === 0 ? words.title : format(words.withNew, { n: count });
  return (
    <a
      class={count === 0 ? "icon-button" : "icon-button has-mark"}
      href="#alerts"
      aria-label={label}
      title={label}
      aria-current={isCurrent ? "page" : undefined}
    >
      <Icon name="alerts" />
    </a>
  );
}
