import { useState } from "preact/hooks";
import type { Refusal, Subscription } from "../../../client/src/index.ts";
import { replaceControlCharactersInLines } from "../../../src/util/control-characters.ts";
import { nameOf, podcastOf, podcastsVersion, titleOf } from "../list/known-podcasts.ts";
import { openedPanel } from "../list/podcast-components.ts";
import { Cover } from "../list/row.tsx";
import { edit, refusals, remove, subscriptionList, sync, updateRefusals } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { CopyButton, Dialog, Icon, IconButton, MiddleEllipsis } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { format, formatAge, formatDay, getWords, useWords } from "../words/index.ts";
import { EditForm, listFolders, readFolders } from "./edit-form.tsx";
import { fetchAgain } from "./loader.ts";
import { toOwnTitle } from "./rename-form.tsx";

const close = () => openedPanel.set(undefined);
const focusTitle = () => document.querySelector<HTMLElement>("dialog[open] h2")?.focus();

/** Everything about one podcast. */
export function Panel({ subscription }: { subscription: Subscription }) {
  const core = useWords();
  const words = core.podcasts;
  useValue(podcastsVersion);
  const [editing, setEditing] = useState<"name" | "folder" | undefined>(undefined);
  // Kept here, because the part of the panel that sets it is not shown while the server decides about the new URL.
  const [existing, setExisting] = useState<Subscription | undefined>(undefined);
  const podcast = podcastOf(subscription);
  const { id, feedUrl, subscribedAt, title, folders = [] } = subscription;
  const homepage = podcast?.homepageUrl;
  const finish = () => {
    setEditing(undefined);
    focusTitle();
  };
  const removeThis = () => {
    close();
    remove([subscription]);
  };
  return (
    <Dialog title={isolate(titleOf(subscription) ?? displayUrl(feedUrl).host)} onClose={close}>
      <div class="podcast-head">
        <Cover name={nameOf(subscription)} artwork={podcast?.artwork?.large} />
        <div>
          {podcast?.author && <p>{isolate(podcast.author)}</p>}
          {homepage !== undefined && displayUrl(homepage).isLink && (
            <p>
              <a href={homepage} target="_blank" rel="noopener noreferrer">
                {words.website} <Icon name="open" />
              </a>
            </p>
          )}
          <p class="muted">{format(core.list.since, { day: formatDay(subscribedAt) })}</p>
          <p class="muted">
            {words.folder}: {folders.length === 0 ? words.noFolder : folders.map(isolate).join(", ")}
          </p>
        </div>
      </div>
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
          onSave={(text) => edit([{ id, folders: readFolders(text) }])}
          onClose={finish}
        />
      )}
      {editing === undefined && (
        <p class="buttons">
          <button type="button" class="button" onClick={() => setEditing("name")}>
            {core.apps.rename}
          </button>
          <button type="button" class="button" onClick={() => setEditing("folder")}>
            {words.move}
          </button>
          <button type="button" class="button danger" onClick={removeThis}>
            {words.remove}
          </button>
        </p>
      )}
      <Status subscription={subscription} />
      {podcast?.movedTo && podcast.status === "moved" && (
        <Moved subscription={subscription} existing={existing} onConflict={setExisting} movedTo={podcast.movedTo} />
      )}
      <Url label={words.feedUrl} url={feedUrl} />
      {podcast?.description && <p class="description">{replaceControlCharactersInLines(podcast.description)}</p>}
    </Dialog>
  );
}

function Url({ label, url }: { label: string; url: string }) {
  const { list } = useWords();
  const [isRevealed, setRevealed] = useState(false);
  const { masked, full } = displayUrl(url);
  return (
    <div class="field">
      <span class="label">{label}</span>
      <div class="copy-field">
        <span class="shown-url">
          <MiddleEllipsis text={isRevealed ? full : masked} tail={16} />
        </span>
        {masked !== full && (
          <IconButton
            icon={isRevealed ? "hide" : "show"}
            label={isRevealed ? list.hideSecrets : list.showSecrets}
            onClick={() => setRevealed(!isRevealed)}
          />
        )}
        <CopyButton isIcon text={url} label={format(list.copyUrl, { name: label })} />
      </div>
    </div>
  );
}

function Status({ subscription }: { subscription: Subscription }) {
  const words = useWords().podcasts;
  const [isFetching, setFetching] = useState(false);
  const [result, setResult] = useState("");
  const podcast = podcastOf(subscription);
  if (podcast === undefined) return null;
  const { status, statusSince, checkedAt } = podcast;
  const start = async () => {
    setFetching(true);
    setResult("");
    try {
      const isFetched = await fetchAgain(subscription);
      setResult(isFetched ? getWords().podcasts.fetched : getWords().podcasts.notFetched);
    } catch (error) {
      setResult(explainError(error));
    }
    setFetching(false);
  };
  const isBad = status === "failing" || status === "gone" || status === "forbidden";
  return (
    <div class={`message ${isBad ? "danger" : ""}`}>
      <p>
        <strong>{words.status[status]}.</strong> {words.explanation[status]}
      </p>
      <p class="muted">
        {statusSince &&
          status !== "ok" &&
          status !== "pending" &&
          `${format(words.since, { day: formatDay(statusSince) })}. `}
        {checkedAt && format(words.checked, { when: formatAge(checkedAt) })}
      </p>
      <button type="button" class="button" aria-disabled={isFetching} onClick={() => !isFetching && start()}>
        {isFetching ? words.fetching : words.fetchAgain}
      </button>
      <p role="status">{result}</p>
    </div>
  );
}

interface MovedProps {
  readonly subscription: Subscription;
  readonly movedTo: string;
  /** The subscription that already has the new URL, once that is known. */
  readonly existing: Subscription | undefined;
  readonly onConflict: (existing: Subscription | undefined) => void;
}

/** The feed has moved: the user decides whether to follow it. */
function Moved({ subscription, movedTo, existing, onConflict }: MovedProps) {
  const words = useWords().podcasts;
  const [failure, setFailure] = useState("");
  const { id, title, folders } = subscription;
  const followMove = async () => {
    try {
      const found = await changeFeedUrl(id, movedTo);
      onConflict(found);
      if (!found) focusTitle();
    } catch {
      setFailure(words.notSaved);
    }
  };
  const merge = async (kept: Subscription) => {
    // Keeps the user's own title and folders.
    const details = { title: kept.title ?? title, folders: kept.folders ?? folders };
    close();
    await edit([{ id: kept.id, ...details }]).catch(() => showNotice(words.notSaved));
    remove([subscription]);
  };
  return (
    <>
      <Url label={words.newUrl} url={movedTo} />
      {failure && <p role="alert">{failure}</p>}
      {existing === undefined ? (
        <button type="button" class="button primary" onClick={followMove}>
          {words.changeUrl}
        </button>
      ) : (
        <>
          <p role="alert">{format(words.conflict, { name: nameOf(existing) })}</p>
          <button type="button" class="button primary" onClick={() => merge(existing)}>
            {words.merge}
          </button>
        </>
      )}
    </>
  );
}

/** Gives a subscription a new feed URL, or returns the subscription that already has this feed. */
async function changeFeedUrl(id: string, feedUrl: string): Promise<Subscription | undefined> {
  const { items } = subscriptionList.value;
  const same = items.find((item) => item.feedUrl === feedUrl);
  if (same) return same;
  await edit([{ id, feedUrl }]);
  // Without a connection the edit is sent later. If the server then refuses it, the page says so.
  await sync().catch(() => {});
  const isConflict = ({ operation, error }: Refusal) =>
    operation.op === "update" && operation.id === id && error.code === "already-subscribed";
  const refusal = refusals.value.find(isConflict);
  if (refusal === undefined) return undefined;
  void updateRefusals((all) => all.filter((each) => !isConflict(each)));
  return items.find((item) => item.id === refusal.error.meta?.["existing_id"]);
}
