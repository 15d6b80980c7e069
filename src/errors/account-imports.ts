const refused = { status: 422, title: "Import Failed" } as const;

/** Errors of imports from other servers. They are part of `ERRORS`. */
export const ACCOUNT_IMPORT_ERRORS = {
  "import-url-invalid": {
    ...refused,
    detail:
      "Invalid address: enter the URL of the other server, such as https://gpodder.example, without a user name or password.",
  },
  "import-address-private": {
    ...refused,
    detail:
      "The other server is in a private network. This server's operator can allow the address with EARMARK_FETCH_NETWORKS.",
  },
  "import-no-sync-server": {
    ...refused,
    detail:
      "No podcast sync server was found at this address. Enter the address that your podcast app syncs with; a Nextcloud server needs the app GPodder Sync.",
  },
  "import-sign-in-failed": {
    ...refused,
    detail:
      "The other server rejected the sign-in. Check the user name and password; some servers need an app password or token.",
  },
  "import-server-failed": { ...refused, detail: "{reason}." },
  "import-too-large": { ...refused, detail: "{reason}." },
  "import-login-expired": {
    ...refused,
    detail: "This login has expired, was already used or belongs to another account or address. Start it again.",
  },
  "import-login-pending": {
    status: 409,
    title: "Login Pending",
    detail:
      "The login has not been allowed yet. Allow it on the page of the other server, then send the request again.",
  },
  "import-running": {
    status: 409,
    title: "Import Running",
    detail: "Another import into this account is in progress. Wait until it has finished.",
  },
  "too-many-imports": {
    status: 503,
    title: "Service Unavailable",
    detail: "Too many accounts are being imported right now. Nothing was changed; try again.",
    headers: { "retry-after": "30" },
  },
} as const;
