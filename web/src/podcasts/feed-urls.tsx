import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { EffectOnApps } from "../list/effect-on-apps.tsx";
import { podcastOf } from "../list/known-podcasts.ts";
import { changeFeedUrl } from "../list/moves.ts";
import { edit } from "../list/subscription-list.ts";
import { CopyButton, IconButton, MiddleEllipsis } from "../ui/components.tsx";
import { displayUrl, shortName } from "../ui/feed-url.ts";
import { format, getWords, useWords } from "../words/index.ts";
import { EditForm } from "./edit-form.tsx";

/** No feed URL is longer. */
const MAX_URL_LENGTH = 2_048;

interface FeedUrlsProps {
  readonly subscription: Subscription;
  /** Called if another subscription already has the new URL. */
  readonly onConflict: (existing: Subscription) => void;
  /** Called when the URLs have changed, to move the focus. */
  readonly onDone: () => void;
}

/** The URL of a feed, the one that it has moved to, and those that it had before. */
export function FeedUrls({ subscription, onConflict, onDone }: FeedUrlsProps) {
  const { podcasts: words, moves } = useWords();
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const { id, feedUrl, formerFeedUrls = [] } = subscription;
  const { status, movedTo } = podcastOf(subscription) ?? {};
  const save = async (url: string) => {
    const { existing, problem } = await changeFeedUrl(id, url);
    if (existing) onConflict(existing);
    return problem;
  };
  const followMove = async (url: string) => {
    const failure = await save(url);
    setProblem(failure);
    if (failure === undefined) onDone();
  };
  const forget = async () => {
    try {
      await edit([{ id, formerFeedUrls: null }]);
      onDone();
    } catch {
      setProblem(getWords().podcasts.notSaved);
    }
  };
  if (draft !== undefined) {
    const finish = () => {
      setDraft(undefined);
      onDone();
    };
    return (
      <EditForm
        label={words.feedUrl}
        value={draft}
        maxLength={MAX_URL_LENGTH}
        inputMode="url"
        spellcheck={false}
        onSave={save}
        onClose={finish}
      >
        <EffectOnApps />
      </EditForm>
    );
  }
  return (
    <>
      {status === "moved" && movedTo && (
        <>
          <Url label={words.newUrl} url={movedTo} />
          <EffectOnApps />
          <button type="button" class="button primary" onClick={() => followMove(movedTo)}>
            {words.changeUrl}
          </button>
        </>
      )}
      {problem && <p role="alert">{problem}</p>}
      <Url label={words.feedUrl} url={feedUrl}>
        <IconButton icon="rename" label={moves.changeUrl} onClick={() => setDraft(feedUrl)} />
      </Url>
      {formerFeedUrls.length > 0 && <FormerUrls urls={formerFeedUrls} onUse={setDraft} onForget={forget} />}
    </>
  );
}

interface FormerUrlsProps {
  /** Newest first. */
  readonly urls: readonly string[];
  readonly onUse: (url: string) => void;
  readonly onForget: () => void;
}

function FormerUrls({ urls, onUse, onForget }: FormerUrlsProps) {
  const { moves } = useWords();
  return (
    <details class="former-urls">
      <summary>{format(moves.former, { n: urls.length })}</summary>
      {urls.map((url) => (
        <Url key={url} url={url}>
          <button
            type="button"
            class="button"
            aria-label={format(moves.useLabel, { url: shortName(url) })}
            onClick={() => onUse(url)}
          >
            {moves.use}
          </button>
        </Url>
      ))}
      <p class="muted">{moves.formerHint}</p>
      <button type="button" class="button" onClick={onForget}>
        {moves.forget}
      </button>
    </details>
  );
}

function Url({ label, url, children }: { label?: string; url: string; children?: ComponentChildren }) {
  const { list } = useWords();
  const [isRevealed, setRevealed] = useState(false);
  const { masked, full } = displayUrl(url);
  return (
    <div class="field">
      {label && <span class="label">{label}</span>}
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
        <CopyButton isIcon text={url} label={format(list.copyUrl, { name: label ?? shortName(url) })} />
        {children}
      </div>
    </div>
  );
}
