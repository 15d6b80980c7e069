import { createState } from "../state/state.ts";
import { storage } from "../state/storage.ts";

/** Can be turned off, since some assistive tools send single keys to the page. */
export const shortcutsEnabled = createState(storage.get("keys") !== "off");
