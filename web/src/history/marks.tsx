import type { ChangeSet } from "../../../client/src/index.ts";
import { Icon } from "../ui/components.tsx";
import { useWords } from "../words/index.ts";
import { formatMoment } from "./sentences.ts";

/** When it was, and what there is to know about it. */
export function Marks({ set }: { set: ChangeSet }) {
  const { history } = useWords();
  return (
    <p class="marks muted">
      <time dateTime={set.endedAt.toISOString()}>{formatMoment(set.endedAt)}</time>
      {set.isLarge && (
        <span class="mark danger">
          <Icon name="invalid" />
          {history.large}
        </span>
      )}
      {set.undoes && <span class="mark">{history.undo}</span>}
      {set.isUndone && <span class="mark">{history.undone}</span>}
    </p>
  );
}
