import { accountMode, currentUser, isNewAccount } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Icon } from "../ui/components.tsx";
import { isolate } from "../ui/isolate.ts";
import { format, useWords } from "../words/index.ts";

/** Shown while the list is empty: the ways to fill it. */
export function FirstRun() {
  const { account, list, firstRun } = useWords();
  const me = useValue(currentUser);
  const isNew = useValue(isNewAccount);
  const offers = [
    ["add", "add", list.addFeeds, firstRun.add],
    ["move", "move", list.moveHere, firstRun.move],
    ["import", "import", list.importFile, firstRun.import],
    ["apps", "apps", firstRun.connect, firstRun.apps],
  ] as const;
  return (
    <section class="first-run">
      {isNew && me !== undefined && <p>{format(account.welcome, { name: isolate(me.name) })}</p>}
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
