import { refusals, subscriptionList, updateRefusals } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { IconButton, useRestoreFocus } from "../ui/components.tsx";
import { explainCode } from "../ui/errors.ts";
import { shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, useWords } from "../words/index.ts";

const MAX_REFUSALS = 5;

/** Edits that were made earlier, perhaps offline, and that the server does not accept. */
export function Refusals() {
  const words = useWords();
  const all = useValue(refusals);
  const { items } = useValue(subscriptionList);
  useRestoreFocus(all.length > 0);
  if (all.length === 0) return null;
  return (
    <div class="message danger refusals" role="alert">
      <p>{format(words.list.refused, { n: all.length })}</p>
      <IconButton icon="close" label={words.close} onClick={() => updateRefusals(() => [])} />
      <ul>
        {all.slice(0, MAX_REFUSALS).map(({ operation, error }, index) => {
          const { id, feedUrl = items.find((item) => item.id === id)?.feedUrl } = { feedUrl: undefined, ...operation };
          return (
            <li key={index}>
              {feedUrl !== undefined && `${shortName(feedUrl)}: `}
              {isolate(explainCode(error.code, error.detail ?? error.title))}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
