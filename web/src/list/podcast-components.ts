import type { ComponentType } from "preact";
import type { Subscription } from "../../../client/src/index.ts";
import { createState } from "../state/state.ts";
import type { MenuContent } from "../ui/opened-menu.ts";
import type { Group } from "./list-options.ts";

/** What the list shows and edits podcasts with; see `podcasts/list-features.tsx`. */
export interface PodcastComponents {
  readonly BulkActions: ComponentType<{ readonly items: readonly Subscription[] }>;
  readonly DuplicateHint: ComponentType;
  readonly Folders: ComponentType;
  readonly FolderSheet: ComponentType;
  readonly GroupHead: ComponentType<{ readonly group: Group }>;
  readonly Menu: ComponentType;
  readonly Panel: ComponentType<{ readonly subscription: Subscription }>;
  readonly RenameForm: ComponentType<{ readonly subscription: Subscription }>;
  readonly RetryAll: ComponentType<{ readonly items: readonly Subscription[] }>;
  readonly SharedMark: ComponentType<{ readonly subscription: Subscription }>;
  /** What can be done with a podcast. `onRename` is for where it is shown. */
  readonly menuOf: (subscription: Subscription, onRename: () => void) => MenuContent;
  /** Opens the panel of a podcast for an edit. */
  readonly openPanel: (id: string, task: "name" | "folder" | "merge") => true;
  /** Lets podcasts be dragged to folders. */
  readonly drag: (event: DragEvent, subscription: Subscription) => void;
}

/** Undefined until the code is loaded, which is soon after the list is shown. */
export const podcastComponents = createState<PodcastComponents | undefined>(undefined);
