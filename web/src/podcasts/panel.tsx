import { useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { replaceControlCharactersInLines } from "../../../src/util/control-characters.ts";
import { SubscriptionCover } from "../list/cover.tsx";
import { podcastOf, podcastsVersion, titleOf } from "../list/known-podcasts.ts";
import { opened } from "../list/place.ts";
import { remove } from "../list/removal.ts";
import { edit, subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { Dialog, Icon } from "../ui/components.tsx";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, formatAgo, formatDay, useWords } from "../words/index.ts";
import { EditForm, listFolders } from "./edit-form.tsx";
import { FeedStatus } from "./feed-status.tsx";
import { FeedUrls } from "./feed-urls.tsx";
import { readFolder } from "./folder-edits.ts";
import { MergeForm } from "./merge-form.tsx";
import { type PanelTask, takeTask } from "./panel-task.ts";
import { PodcastHistory } from "./podcast-history.tsx";
import { toOwnTitle } from "./rename-form.tsx";

const close = () => opened.set(undefined);
const focusTitle = () => document.querySelector<HTMLElement>("dialog[open] h2")?.focus();

/** Everything about one podcast. */
export function Panel({ subscription }: { subscription: Subscription }) {
  const core = useWords();
  const words = core.podcasts;
  useValue(podcastsVersion);
  const [requested] = useState(takeTask);
  const [editing, setEditing] = useState<PanelTask | undefined>(requested);
  /** Another subscription that already has the new URL of this one. */
  const [existing, setExisting] = useState<Subscription | undefined>(undefined);
  const podcast = podcastOf(subscription);
  const { id, feedUrl, title, folders = [] } = subscription;
  const finish = () => {
    setEditing(undefined);
    setExisting(undefined);
    if (requested === undefined) focusTitle();
    else close();
  };
  const isMerging = editing === "merge" || existing !== undefined;
  const removeThis = () => {
    close();
    void remove([subscription]);
  };
  return (
    <Dialog title={isolate(titleOf(subscription) ?? displayUrl(feedUrl).host)} onClose={close}>
      <Head subscription={subscription} />
      {editing === "name" && (
        <EditForm
          label={words.name}
          hint={words.nameHint}
          value={title ?? podcast?.title ?? ""}
          onSave={(text) => edit([{ id, title: toOwnTitle(text, podcast) }])}
          onClose={finish}
        />
      )}
      {editing === "folder" && (
        <EditForm
          label={words.folder}
          hint={words.folderHint}
          value={folders[0] ?? ""}
          options={listFolders(subscriptionList.value.items)}
          onSave={async (text) => {
            const read = readFolder(text);
            if ("problem" in read) return read.problem;
            return edit([{ id, folders: read.path === "" ? null : [read.path] }]);
          }}
          onClose={finish}
        />
      )}
      {isMerging && <MergeForm subscription={subscription} existing={existing} onClose={finish} />}
      {editing === undefined && !isMerging && (
        <p class="buttons">
          <button type="button" class="button" onClick={() => setEditing("name")}>
            {core.apps.rename}
          </button>
          <button type="button" class="button" onClick={() => setEditing("folder")}>
            {words.move}
          </button>
          {subscriptionList.value.items.length > 1 && (
            <button type="button" class="button" onClick={() => setEditing("merge")}>
              {core.moves.mergeInto}
            </button>
          )}
          <button type="button" class="button danger" onClick={removeThis}>
            {words.remove}
          </button>
        </p>
      )}
      {!isMerging && (
        <>
          {podcast?.description && <p class="description">{replaceControlCharactersInLines(podcast.description)}</p>}
          <FeedStatus subscription={subscription} />
          <FeedUrls subscription={subscription} onConflict={setExisting} onDone={focusTitle} />
          <PodcastHistory subscription={subscription} />
        </>
      )}
    </Dialog>
  );
}

function Head({ subscription }: { subscription: Subscription }) {
  const { list, podcasts: words } = useWords();
  const podcast = podcastOf(subscription);
  const { subscribedAt, folders = [] } = subscription;
  const homepage = podcast?.homepageUrl;
  return (
    <div class="podcast-head">
      <SubscriptionCover subscription={subscription} sizes="320px" />
      <div>
        {podcast?.author && <p>{isolate(podcast.author)}</p>}
        {homepage !== undefined && displayUrl(homepage).isLink && (
          <p>
            <a href={homepage} target="_blank" rel="noopener noreferrer">
              {words.website} <Icon name="open" />
            </a>
          </p>
        )}
        {podcast?.latestEpisodeAt && <p>{format(words.latestEpisode, { when: formatAgo(podcast.latestEpisodeAt) })}</p>}
        <p class="muted">{format(list.since, { day: formatDay(subscribedAt) })}</p>
        <p class="muted">
          {words.folder}: {folders.length === 0 ? words.noFolder : folders.map(isolate).join(", ")}
        </p>
      </div>
    </div>
  );
}
