import type { ComponentType } from "preact";
import { createState } from "../state/state.ts";

/** What the sidebar of a wide window shows below the main views, whichever view is open; undefined for nothing. */
export const sidebarContent = createState<ComponentType | undefined>(undefined);
