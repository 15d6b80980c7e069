/** Errors about one-time codes, passkeys, identity providers and proxies. They are part of `ERRORS`. */
export const SIGN_IN_ERRORS = {
  "second-factor-required": {
    status: 401,
    title: "One-Time Code Required",
    detail: "Repeat the request with `one_time_code`: the code in your authenticator app, or a recovery code.",
    headers: { "www-authenticate": 'Bearer realm="Earmark"' },
  },
  "one-time-code-failed": {
    status: 401,
    title: "Unauthorized",
    detail: "The one-time code is wrong or was already used. Wait for the next one, or use a recovery code.",
    headers: { "www-authenticate": 'Bearer realm="Earmark"' },
  },
  "second-factor-setup-required": {
    status: 403,
    title: "Second Factor Required",
    detail:
      "This server requires a second factor of administrators. Add an authenticator app or a passkey to your account, then retry.",
  },
  "invalid-one-time-code": {
    status: 422,
    title: "Validation Failed",
    detail:
      "The code is wrong or was already used. Wait for the next one, and check the clocks of your device and the server.",
  },
  "invalid-ticket": {
    status: 422,
    title: "Validation Failed",
    detail: "The ticket is invalid or has expired. Get a new one, with a new secret.",
  },
  "second-factor-exists": {
    status: 409,
    title: "Second Factor Exists",
    detail: "The account already has an authenticator app. Remove it first.",
  },
  "no-second-factor": {
    status: 409,
    title: "No Second Factor",
    detail: "The account has no authenticator app. Add one first.",
  },
  "passkey-failed": {
    status: 401,
    title: "Unauthorized",
    detail: "The passkey is invalid, or the challenge has expired. Try again, or sign in another way.",
    headers: { "www-authenticate": 'Bearer realm="Earmark"' },
  },
  "invalid-passkey": {
    status: 422,
    title: "Validation Failed",
    detail: "The new passkey is invalid or already registered, or the challenge has expired.",
  },
  "too-many-passkeys": {
    status: 409,
    title: "Too Many Passkeys",
    detail: "The account already has the maximum of {max} passkeys. Remove one that is no longer used.",
  },
  "identity-taken": {
    status: 409,
    title: "Identity In Use",
    detail: "This identity is already linked to another account. Unlink it there first.",
  },
  "too-many-identities": {
    status: 409,
    title: "Too Many Identities",
    detail: "The account is already linked to the maximum of {max} identities. Unlink one first.",
  },
  "oidc-denied": {
    status: 403,
    title: "Sign-In Denied",
    detail: "The identity provider did not allow the sign-in, or you canceled it.",
  },
  "oidc-failed": {
    status: 400,
    title: "Sign-In Failed",
    detail:
      "The identity provider's response is invalid, has expired, was already used or is for a sign-in started in another browser. Sign in again.",
  },
  "no-account": {
    status: 403,
    title: "No Account",
    detail:
      "This sign-in does not belong to an account on this server. If you have an account here, sign in with its password and link your identity to it. Otherwise ask an administrator for an account.",
  },
  "untrusted-auth-header": {
    status: 403,
    title: "Untrusted Proxy",
    detail: "The header with the user name is accepted only from a reverse proxy listed in EARMARK_TRUSTED_PROXIES.",
  },
} as const;
