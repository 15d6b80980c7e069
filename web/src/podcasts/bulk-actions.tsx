import { useEffect, useState } from "preact/hooks";
import type { Subscription } from "../../../client/src/index.ts";
import { titleOf } from "../list/known-podcasts.ts";
import { selection } from "../list/list-options.ts";
import { remove } from "../list/removal.ts";
import { subscriptionList } from "../list/subscription-list.ts";
import { useValue } from "../state/state.ts";
import { Dialog, download } from "../ui/components.tsx";
import { format, useWords } from "../words/index.ts";
import { EditForm, listFolders } from "./edit-form.tsx";
import { moveToFolder, readFolder } from "./folder-edits.ts";

/** Selects several of the visible subscriptions, to move, export or remove them together. */
export function BulkActions({ items }: { items: readonly Subscription[] }) {
  const core = useWords();
  const words = core.podcasts;
  const selected = useValue(selection);
  const [isMoving, setMoving] = useState(false);
  const isOpen = selected !== undefined;
  const chosen = selected ? items.filter(({ id }) => selected.has(id)) : [];
  const finish = () => {
    setMoving(false);
    selection.set(undefined);
  };
  useEffect(() => {
    if (!isOpen) return;
    const onKeyDown = ({ key, target }: KeyboardEvent) => {
      if (key === "Escape" && !(target instanceof Element && target.closest("dialog, [type=search]"))) finish();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [isOpen]);
  const isEmpty = chosen.length === 0;
  return (
    <>
      {isOpen && (
        <fieldset class="bulk-actions buttons" aria-label={words.select}>
          <span role="status">{format(words.selected, { n: chosen.length })}</span>
          <button type="button" class="button" onClick={() => selection.set(new Set(items.map(({ id }) => id)))}>
            {words.selectAll}
          </button>
          <button type="button" class="button" disabled={isEmpty} onClick={() => setMoving(true)}>
            {words.move}
          </button>
          <button
            type="button"
            class="button"
            disabled={isEmpty}
            onClick={() => download(writeOpml(chosen), "earmark.opml", "text/x-opml")}
          >
            {core.list.export}
          </button>
          <button
            type="button"
            class="button danger"
            disabled={isEmpty}
            onClick={() => {
              void remove(chosen);
              finish();
            }}
          >
            {words.remove}
          </button>
          <button type="button" class="button" onClick={finish}>
            {core.cancel}
          </button>
        </fieldset>
      )}
      {isMoving && (
        <Dialog title={words.move} onClose={() => setMoving(false)}>
          <EditForm
            label={words.folder}
            hint={words.folderHint}
            value=""
            options={listFolders(subscriptionList.value.items)}
            onSave={async (text) => {
              const read = readFolder(text);
              if ("problem" in read) return read.problem;
              await moveToFolder(chosen, read.path);
              return selection.set(undefined);
            }}
            onClose={() => setMoving(false)}
          />
        </Dialog>
      )}
    </>
  );
}

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escapeXml = (text: string) => text.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character);

/** An OPML file as the server reads it: folders are categories. */
function writeOpml(items: readonly Subscription[]): string {
  const lines = items.map((item) => {
    const { feedUrl, folders = [] } = item;
    const category = folders.map((folder) => `/${folder.replaceAll("%", "%25").replaceAll(",", "%2C")}`).join(",");
    const attributes = { type: "rss", text: titleOf(item) ?? feedUrl, title: titleOf(item), xmlUrl: feedUrl, category };
    const written = Object.entries(attributes).map(([name, value]) => (value ? ` ${name}="${escapeXml(value)}"` : ""));
    return `    <outline${written.join("")}/>\n`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0">
  <head><title>Earmark</title></head>
  <body>
${lines.join("")}  </body>
</opml>
`;
}
