import { accountMode } from "../server/server.ts";
import { Icon } from "../ui/components.tsx";
import { useWords } from "../words/index.ts";

/** Shown while the list is empty: the ways to fill it. */
export function FirstRun() {
  const { list, firstRun } = useWords();
  const offers = [
    ["add", "add", list.addFeeds, firstRun.add],
    ["move", "move", list.moveHere, firstRun.move],
    ["import", "import", list.importFile, firstRun.import],
    ["apps", "apps", firstRun.connect, firstRun.apps],
  ] as const;
  return (
    <section class="first-run">
      <h2>{list.emptyTitle}</h2>
      <ul>
        {offers.map(([view, icon, name, hint]) => (
          <li key={view}>
            <Icon name={icon} />
            <a href={`#${view}`}>{name}</a>
            <p class="muted">{hint}</p>
          </li>
        ))}
      </ul>
      {accountMode === "off" && <p class="muted">{firstRun.noAccounts}</p>}
    </section>
  );
}
