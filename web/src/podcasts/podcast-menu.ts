import type { Subscription } from "../../../client/src/index.ts";
import { nameOf } from "../list/known-podcasts.ts";
import { selection } from "../list/list-options.ts";
import { opened } from "../list/place.ts";
import { remove } from "../list/removal.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { copyText } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { announce, showNotice } from "../ui/notices.ts";
import type { MenuContent, MenuItem } from "../ui/opened-menu.ts";
import { format, getWords } from "../words/index.ts";
import { openPanel } from "./panel-task.ts";

/** What can be done with a podcast; all of it is in the panel too. */
export function menuOf(subscription: Subscription, onRename: () => void): MenuContent {
  const { list, podcasts, apps, moves } = getWords();
  const { id, feedUrl } = subscription;
  const items: readonly (MenuItem | false)[] = [
    { icon: "list", label: list.details, action: () => opened.set(id) },
    { icon: "rename", label: apps.rename, action: onRename },
    { icon: "folder", label: podcasts.move, action: () => openPanel(id, "folder") },
    subscriptionList.value.items.length > 1 && {
      icon: "move",
      label: moves.mergeInto,
      action: () => openPanel(id, "merge"),
    },
    { icon: "select", label: podcasts.selectOne, action: () => selection.set(new Set([id])) },
    { icon: "copy", label: podcasts.copyUrl, action: () => void copyUrl(feedUrl) },
    displayUrl(feedUrl).isLink && { icon: "open", label: podcasts.openFeed, action: { href: feedUrl, isNewTab: true } },
    { icon: "remove", label: podcasts.remove, isDanger: true, action: () => void remove([subscription]) },
  ];
  return { label: format(list.actions, { name: nameOf(subscription) }), items: items.filter((item) => item !== false) };
}

async function copyUrl(feedUrl: string): Promise<void> {
  const { copied, copyFailed } = getWords();
  if (!(await copyText(feedUrl))) return showNotice(copyFailed);
  announce(copied);
  showNotice(copied);
}
