import { useEffect } from "preact/hooks";
import { useValue } from "../state/state.ts";
import { Icon } from "../ui/components.tsx";
import { format, useWords } from "../words/index.ts";
import { alerts, seen, watchAlerts } from "./current-alerts.ts";

/** The number of alerts that were not shown yet. */
export function useNewAlerts(): number {
  const all = useValue(alerts) ?? [];
  const known = useValue(seen);
  useEffect(watchAlerts, []);
  return all.filter(({ id }) => !known.has(id)).length;
}

/** Leads to the alerts, with a mark if there are some that were not shown yet. */
export function AlertsLink({ isCurrent }: { isCurrent: boolean }) {
  const { alerts: words } = useWords();
  const count = useNewAlerts();
  return (
    <a
      class={count === 0 ? undefined : "has-mark"}
      href="#alerts"
      aria-label={count === 0 ? undefined : format(words.withNew, { n: count })}
      aria-current={isCurrent ? "page" : undefined}
    >
      <Icon name="alerts" />
      <span>{words.title}</span>
    </a>
  );
}
