import { createState, storage } from "../state/state.ts";

/** Can be turned off, since some assistive tools send single keys to the page. */
export const shortcutsEnabled = createState(storage.get("keys") !== "off");
