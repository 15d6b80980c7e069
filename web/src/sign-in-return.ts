/** The view to return to from the identity provider. */
const RETURN = "earmark-return";

/** The code of the error with which the identity provider, or the server after it, sent the user back. */
export const signInFailure = /^#sign-in-failed=([a-z-]{1,40})$/.exec(location.hash)?.[1];

/** Opens the identity provider. The page returns to the current view. */
export function openProvider(url: string): void {
  store((storage) => storage.setItem(RETURN, location.hash));
  location.assign(url);
}

function store<T>(access: (storage: Storage) => T): T | undefined {
  try {
    return access(sessionStorage);
  } catch {
    // Blocked by some privacy settings: the page returns to the list.
    return undefined;
  }
}

const returnTo = store((storage) => storage.getItem(RETURN)) ?? undefined;
store((storage) => storage.removeItem(RETURN));
if (signInFailure !== undefined || (returnTo !== undefined && location.hash === ""))
  history.replaceState(null, "", `./${returnTo ?? ""}`);
