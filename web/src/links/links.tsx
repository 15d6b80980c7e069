import { useEffect, useState } from "preact/hooks";
import type { Link } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { loadShared } from "../list/shared.ts";
import { client } from "../server/server.ts";
import { CopyButton, Icon, useRestoreFocus } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { useLoaded } from "../ui/requests.ts";
import { format, formatDay, useWords, type Words } from "../words/index.ts";
import { LinkForm } from "./link-form.tsx";
import "../styles/links.css";

/** Secret links: what they show, their URLs, and a form for a new one. */
export function LinksView() {
  const { links: words, loading } = useWords();
  const { value: links, failure, load } = useLoaded(loadShared, []);
  const [revoking, setRevoking] = useState<Link | undefined>(undefined);
  const [createdId, setCreatedId] = useState<string | undefined>(undefined);
  useRestoreFocus(links);
  useEffect(() => {
    if (createdId !== undefined) document.getElementById(`link-${createdId}`)?.focus();
  }, [links, createdId]);

  const revoke = async (link: Link) => {
    await client.revokeLink(link.id);
    showNotice(words.revoked);
    setRevoking(undefined);
    await load();
  };
  const onCreate = async ({ id }: Link) => {
    showNotice(words.created);
    await load();
    setCreatedId(id);
  };

  return (
    <>
      <div class="page-head">
        <h1>{words.title}</h1>
      </div>
      <p class="muted">{words.lead}</p>
      {failure !== undefined && <ErrorMessage text={explainError(failure)} onAction={load} />}
      {links === undefined && failure === undefined && <p class="muted">{loading}</p>}
      {links !== undefined && (
        <section class="stack" aria-labelledby="own-links">
          <h2 id="own-links">{words.own}</h2>
          {links.length === 0 && <p class="muted">{words.none}</p>}
          {links.length > 0 && (
            <ul class="cards">
              {links.map((link) => (
                <LinkCard key={link.id} link={link} onRevoke={() => setRevoking(link)} />
              ))}
            </ul>
          )}
        </section>
      )}
      <section class="stack" aria-labelledby="new-link">
        <h2 id="new-link">{words.newTitle}</h2>
        <LinkForm onCreate={onCreate} />
      </section>
      {revoking && (
        <Confirm
          title={format(words.revokeLabel, { name: isolate(nameLink(revoking, words)) })}
          lead={words.revokeLead}
          action={words.revoke}
          onConfirm={() => revoke(revoking)}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </>
  );
}

function nameLink({ kind, title }: Link, words: Words["links"]): string {
  return replaceControlCharacters(title ?? words.kinds[kind]);
}

function LinkCard({ link, onRevoke }: { link: Link; onRevoke: () => void }) {
  const { links: words, apps } = useWords();
  const { id, kind, title, folder, url, createdAt, ownTitles } = link;
  const name = nameLink(link, words);
  const facts = [
    ...(title === null ? [] : [words.kinds[kind]]),
    ...(kind === "list" ? [folder == null ? words.everything : isolate(replaceControlCharacters(folder))] : []),
    ...(ownTitles === true ? [words.withOwnTitles] : []),
    format(apps.createdOn, { day: formatDay(createdAt) }),
  ];
  return (
    <li class="secret-link" id={`link-${id}`} tabIndex={-1}>
      <div class="details">
        <strong class="truncate">
          <bdi>{name}</bdi>
        </strong>
        <span class="muted">{facts.join(" · ")}</span>
        <span class="copy-field">
          <code>{url}</code>
          <CopyButton text={url} label={format(words.copyLabel, { name: isolate(name) })} />
        </span>
      </div>
      <div class="buttons">
        <a
          class="button"
          href={url}
          target="_blank"
          rel="noreferrer"
          aria-label={format(words.openLabel, { name: isolate(name) })}
        >
          <Icon name="open" />
          {words.open}
        </a>
        <button
          type="button"
          class="button danger"
          aria-label={format(words.revokeLabel, { name: isolate(name) })}
          onClick={onRevoke}
        >
          {words.revoke}
        </button>
      </div>
    </li>
  );
}
