import { useId, useMemo, useState } from "preact/hooks";
import type { Link, NewLink, Subscription } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { nameOf } from "../list/known-podcasts.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { client } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Field } from "../ui/components.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { useLoaded, useSubmit } from "../ui/requests.ts";
import { format, getLanguage, LANGUAGES, type Language, useWords } from "../words/index.ts";

/** The server accepts this many. */
const MAX_EXCEPT = 200;
/** Long lists are shortened: nobody reads on. */
const MAX_SHOWN = 500;

interface Choice {
  readonly kind: NewLink["kind"];
  readonly folder: string;
  readonly title: string;
  readonly language: Language;
  readonly ownTitles: boolean;
  readonly except: ReadonlySet<string>;
}

function toNewLink({ kind, folder, title, language, ownTitles, except }: Choice): NewLink {
  const common = { kind, language, title: title.trim() || undefined };
  return kind === "alerts" ? common : { ...common, folder: folder || undefined, ownTitles, except: [...except] };
}

/** Creates a link, and shows before what it will share and what not. */
export function LinkForm({ onCreate }: { onCreate: (link: Link) => Promise<void> }) {
  const { links: words } = useWords();
  const initial: Choice = {
    kind: "list",
    folder: "",
    title: "",
    language: getLanguage(),
    ownTitles: false,
    except: new Set(),
  };
  const [choice, setChoice] = useState(initial);
  const change = (changes: Partial<Choice>) => setChoice((known) => ({ ...known, ...changes }));
  const { isBusy, error, submit } = useSubmit(async () => {
    const link = await client.createLink(toNewLink(choice));
    setChoice(initial);
    await onCreate(link);
  });
  return (
    <form class="panel stack" onSubmit={submit}>
      <fieldset class="options">
        <legend>{words.kind}</legend>
        {(["list", "alerts"] as const).map((kind) => (
          <label key={kind}>
            <input type="radio" name="kind" checked={choice.kind === kind} onChange={() => change({ kind })} />
            {words.kinds[kind]}
          </label>
        ))}
      </fieldset>
      {choice.kind === "list" ? (
        <ListChoice choice={choice} onChange={change} />
      ) : (
        <p class="muted">{words.alertsHint}</p>
      )}
      <Field
        label={words.linkTitle}
        hint={words.linkTitleHint}
        error={error}
        value={choice.title}
        maxLength={300}
        autocomplete="off"
        onInput={({ currentTarget }) => change({ title: currentTarget.value })}
      />
      <LanguageField value={choice.language} onChange={(language) => change({ language })} />
      {choice.kind === "list" && <Preview choice={choice} onChange={change} />}
      <p class="buttons">
        <button type="submit" class="button primary" aria-disabled={isBusy}>
          {words.create}
        </button>
      </p>
    </form>
  );
}

interface PartProps {
  readonly choice: Choice;
  readonly onChange: (changes: Partial<Choice>) => void;
}

function LanguageField({ value, onChange }: { value: Language; onChange: (language: Language) => void }) {
  const { links: words } = useWords();
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{words.language}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value as Language)}>
        {Object.entries(LANGUAGES).map(([language, name]) => (
          <option key={language} value={language} lang={language}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

/** All folders, also those that have only other folders in them. */
function allFolders(items: readonly Subscription[]): string[] {
  const found = new Set<string>();
  for (const { folders = [] } of items) {
    for (const folder of folders) {
      const names = folder.split("/");
      for (let count = 1; count <= names.length; count += 1) found.add(names.slice(0, count).join("/"));
    }
  }
  return [...found].sort((one, other) => one.localeCompare(other));
}

function ListChoice({ choice, onChange }: PartProps) {
  const { links: words } = useWords();
  const id = useId();
  const { items } = useValue(subscriptionList);
  const folders = useMemo(() => allFolders(items), [items]);
  return (
    <>
      {folders.length > 0 && (
        <div class="field">
          <label for={id}>{words.folder}</label>
          <select
            id={id}
            value={choice.folder}
            onChange={({ currentTarget }) => onChange({ folder: currentTarget.value, except: new Set() })}
          >
            <option value="">{words.everything}</option>
            {folders.map((folder) => (
              <option key={folder} value={folder}>
                {isolate(replaceControlCharacters(folder))}
              </option>
            ))}
          </select>
        </div>
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={choice.ownTitles}
          onChange={({ currentTarget }) => onChange({ ownTitles: currentTarget.checked })}
        />
        {words.ownTitles}
      </label>
    </>
  );
}

/** What the link will share, each of which can be left out, and the private feeds that it will not. */
function Preview({ choice, onChange }: PartProps) {
  const { links: words, loading } = useWords();
  const { items } = useValue(subscriptionList);
  const { folder, except } = choice;
  const { value: preview, failure } = useLoaded(
    () => client.previewLink({ kind: "list", folder: folder || undefined }),
    [folder, items.length],
  );
  const chosen = useMemo(
    () =>
      items.filter(
        ({ folders = [] }) => folder === "" || folders.some((path) => path === folder || path.startsWith(`${folder}/`)),
      ),
    [items, folder],
  );
  if (failure !== undefined) return <p class="error">{explainError(failure)}</p>;
  if (preview === undefined) return <p class="muted">{loading}</p>;
  const privateIds = new Set(preview.privateSubscriptions);
  const open = chosen.filter(({ id }) => !privateIds.has(id));
  const closed = chosen.filter(({ id }) => privateIds.has(id));
  const toggle = (id: string) => {
    const next = new Set(except);
    if (!next.delete(id)) next.add(id);
    onChange({ except: next });
  };
  return (
    <div class="share-preview">
      <details>
        <summary>{format(words.willShare, { n: open.length - except.size })}</summary>
        <ul>
          {open.slice(0, MAX_SHOWN).map((item) => (
            <li key={item.id}>
              <label class="check">
                <input
                  type="checkbox"
                  checked={!except.has(item.id)}
                  disabled={!except.has(item.id) && except.size >= MAX_EXCEPT}
                  onChange={() => toggle(item.id)}
                />
                <bdi>{nameOf(item)}</bdi>
              </label>
            </li>
          ))}
        </ul>
        {open.length > MAX_SHOWN && <p class="muted">{format(words.andMore, { n: open.length - MAX_SHOWN })}</p>}
      </details>
      {closed.length > 0 && (
        <details>
          <summary>{format(words.leftOut, { n: closed.length })}</summary>
          <p class="muted">{words.leftOutWhy}</p>
          <ul>
            {closed.slice(0, MAX_SHOWN).map((item) => (
              <li key={item.id}>
                <bdi>{nameOf(item)}</bdi>
              </li>
            ))}
          </ul>
          {closed.length > MAX_SHOWN && <p class="muted">{format(words.andMore, { n: closed.length - MAX_SHOWN })}</p>}
        </details>
      )}
      <p class="muted">{choice.ownTitles ? words.showsOwnTitles : words.showsPublisherTitles}</p>
    </div>
  );
}
