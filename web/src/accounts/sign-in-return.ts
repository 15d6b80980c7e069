/** The view to return to from the identity provider. */
const RETURN = "earmark-return";

/** The error code if the sign-in at the identity provider failed; the server redirects to a URL with it. */
export const signInFailure = /^#sign-in-failed=([a-z-]{1,40})$/.exec(location.hash)?.[1];

/** Opens the identity provider. The page returns to the current view. */
export function openProvider(url: string): void {
  withSessionStorage((storage) => storage.setItem(RETURN, location.hash));
  location.assign(url);
}

function withSessionStorage<T>(access: (storage: Storage) => T): T | undefined {
  try {
    return access(sessionStorage);
  } catch {
    // Blocked by some privacy settings: the page returns to the list.
    return undefined;
  }
}

const returnTo = withSessionStorage((storage) => storage.getItem(RETURN)) ?? undefined;
withSessionStorage((storage) => storage.removeItem(RETURN));
if (signInFailure !== undefined || (returnTo !== undefined && location.hash === ""))
  history.replaceState(null, "", `./${returnTo ?? ""}`);
