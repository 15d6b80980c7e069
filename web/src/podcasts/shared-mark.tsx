import { useEffect } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { isShared, loadShared, shared } from "../list/shared.ts";
import { useValue } from "../state/state.ts";
import { Icon } from "../ui/components.tsx";
import { useWords } from "../words/index.ts";

let isRequested = false;

/** Marks what a secret link shows. Without an answer of the server, nothing is marked. */
export function SharedMark({ subscription }: { subscription: Subscription }) {
  const { links } = useWords();
  const known = useValue(shared);
  useEffect(() => {
    if (isRequested) return;
    isRequested = true;
    void loadShared().catch(() => {});
  }, []);
  if (known === undefined || !isShared(known, subscription)) return null;
  return (
    <span class="shared-mark" role="img" aria-label={links.shared} title={links.shared}>
      <Icon name="link" />
    </span>
  );
}
