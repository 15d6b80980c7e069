import type { ComponentType } from "preact";
import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { createState } from "../state/state.ts";
import type { Group } from "./list-options.ts";

/** Components with which the list shows and edits podcasts; see `podcasts/list-features.tsx`. */
export interface PodcastComponents {
  readonly MoreSortOptions: ComponentType;
  readonly FilterSelect: ComponentType<{ readonly items: readonly Subscription[] }>;
  readonly BulkActions: ComponentType<{ readonly items: readonly Subscription[] }>;
  readonly GroupHead: ComponentType<{ readonly group: Group }>;
  readonly SharedMark: ComponentType<{ readonly subscription: Subscription }>;
  readonly StatusMark: ComponentType<{ readonly status: Podcast["status"] }>;
  readonly RenameForm: ComponentType<{ readonly subscription: Subscription }>;
  readonly DuplicateHint: ComponentType;
  readonly Panel: ComponentType<{ readonly subscription: Subscription }>;
}

/** Undefined until the code is loaded, which is soon after the list is shown. */
export const podcastComponents = createState<PodcastComponents | undefined>(undefined);
/** Id of the subscription whose panel is open. */
export const openedPanel = createState<string | undefined>(undefined);
