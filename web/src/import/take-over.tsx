import type { Subscription, Update } from "../../../client/src/index.ts";
import type { Line } from "../list/add-feeds.ts";
import { podcastOf } from "../list/known-podcasts.ts";
import { format, useWords } from "../words/index.ts";

/** What an import ignores unless the user takes it over: it changes no podcast that is in the list. */
export interface TakeOver {
  readonly folders: boolean;
  readonly names: boolean;
}

export const NOTHING_TAKEN: TakeOver = { folders: false, names: false };

/** Of one subscription; the server accepts no more. */
const MAX_FOLDERS = 20;

interface Ignored {
  readonly id: string;
  /** The folders that the subscription has and those that it would get. */
  readonly folders?: readonly string[];
  readonly title?: string;
}

/** The folders and names in the file that podcasts in the list do not have. */
function findIgnored(lines: readonly Line[], items: readonly Subscription[]): Ignored[] {
  const byId = new Map(items.map((item) => [item.id, item]));
  return lines.flatMap(({ outcome, id = "", title, folders = [] }) => {
    const item = outcome === "already-subscribed" ? byId.get(id) : undefined;
    if (item === undefined) return [];
    const all = [...new Set([...(item.folders ?? []), ...folders])].slice(0, MAX_FOLDERS);
    // The publisher's name is no name of one's own.
    const isNew = title && title !== item.title && title !== podcastOf(item)?.title;
    return [{ id, ...(all.length > (item.folders?.length ?? 0) && { folders: all }), ...(isNew && { title }) }];
  });
}

/** The changes to podcasts in the list that the user has chosen. */
export function readTakeOver(
  lines: readonly Line[],
  items: readonly Subscription[],
  { folders: takesFolders, names }: TakeOver,
): Update[] {
  return findIgnored(lines, items).flatMap(({ id, folders, title }) => {
    const update = { id, ...(takesFolders && folders && { folders }), ...(names && title && { title }) };
    return Object.keys(update).length > 1 ? [update] : [];
  });
}

interface TakeOverProps {
  readonly lines: readonly Line[];
  readonly items: readonly Subscription[];
  readonly chosen: TakeOver;
  readonly onChange: (chosen: TakeOver) => void;
}

/** Says which folders and names of podcasts in the list the import ignores, and offers to take them over. */
export function TakeOverChoice({ lines, items, chosen, onChange }: TakeOverProps) {
  const words = useWords().import;
  const ignored = findIgnored(lines, items);
  const counts = {
    folders: ignored.filter(({ folders }) => folders !== undefined).length,
    names: ignored.filter(({ title }) => title !== undefined).length,
  };
  if (counts.folders + counts.names === 0) return null;
  return (
    <fieldset class="take-over">
      <legend>{words.ignored}</legend>
      {(["folders", "names"] as const).map(
        (what) =>
          counts[what] > 0 && (
            <label key={what}>
              <input
                type="checkbox"
                checked={chosen[what]}
                onChange={({ currentTarget }) => onChange({ ...chosen, [what]: currentTarget.checked })}
              />
              {what === "folders"
                ? format(words.takeFolders, { n: counts.folders })
                : format(words.takeNames, { n: counts.names })}
            </label>
          ),
      )}
    </fieldset>
  );
}
