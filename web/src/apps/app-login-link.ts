import { createState } from "../state/state.ts";

const readId = () => new URLSearchParams(location.hash.slice(1)).get("app-login") ?? undefined;

/** Id of an app's request for access, from the link that the app opens. */
export const appLoginId = createState(readId());
addEventListener("hashchange", () => appLoginId.set(readId()));
