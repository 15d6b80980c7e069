import type { Line } from "../list/add-feeds.ts";
import { compareText } from "../list/list-options.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import { format, useWords } from "../words/index.ts";

/** Which of the new lines are selected for the import. */
export interface ImportSelection {
  readonly lines: readonly Line[];
  /** Indexes of new lines that are not imported. */
  readonly excluded: ReadonlySet<number>;
  /** Only this folder is shown; undefined for all, an empty path for lines without folders. */
  readonly folder: string | undefined;
}

interface SelectionProps extends ImportSelection {
  readonly onChange: (change: Partial<ImportSelection>) => void;
}

const NO_FOLDER = [""];
const foldersOf = ({ folders = [] }: Line) => (folders.length === 0 ? NO_FOLDER : folders);

export function isInFolder(line: Line, folder: string | undefined): boolean {
  return folder === undefined || foldersOf(line).includes(folder);
}

/** Shows how many lines are selected, with buttons to select or deselect all visible lines. */
export function SelectionBar({ lines, excluded, folder, onChange }: SelectionProps) {
  const words = useWords().import;
  const total = lines.filter(({ outcome }) => outcome === "new").length;
  const folders = [...new Set(lines.flatMap(foldersOf))].sort(compareText);
  const setAll = (isSelected: boolean) => {
    const next = new Set(excluded);
    for (const [index, line] of lines.entries()) {
      if (line.outcome !== "new" || !isInFolder(line, folder)) continue;
      if (isSelected) next.delete(index);
      else next.add(index);
    }
    onChange({ excluded: next });
  };
  return (
    <div class="selection-bar">
      <span role="status">{format(words.selected, { n: total - excluded.size, total })}</span>
      {folders.length > 1 && (
        <select
          aria-label={words.folder}
          value={folder === undefined ? "" : `/${folder}`}
          onChange={({ currentTarget: { value } }) => onChange({ folder: value === "" ? undefined : value.slice(1) })}
        >
          <option value="">{words.anyFolder}</option>
          {folders.map((each) => (
            <option key={each} value={`/${each}`}>
              {each === "" ? words.noFolder : isolate(each)}
            </option>
          ))}
        </select>
      )}
      <button type="button" class="button" onClick={() => setAll(true)}>
        {words.selectAll}
      </button>
      <button type="button" class="button" onClick={() => setAll(false)}>
        {words.selectNone}
      </button>
    </div>
  );
}

interface CheckboxProps extends Pick<SelectionProps, "excluded" | "onChange"> {
  readonly line: Line;
  readonly index: number;
}

export function LineCheckbox({ line, index, excluded, onChange }: CheckboxProps) {
  const words = useWords().import;
  const toggle = () => {
    const next = new Set(excluded);
    if (!next.delete(index)) next.add(index);
    onChange({ excluded: next });
  };
  return (
    <label class="line-checkbox">
      <input
        type="checkbox"
        aria-label={format(words.select, { feed: isolate(line.title ?? displayUrl(line.feed).masked) })}
        checked={!excluded.has(index)}
        onChange={toggle}
      />
    </label>
  );
}
