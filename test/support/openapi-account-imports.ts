import { document } from "./accounts.ts";
import { ANN, gpodderPaths, play, startOther } from "./other-servers.ts";
import { PLAIN } from "./server.ts";
import type { Case, Headers } from "./sign-in-cases.ts";

/** Imports from a made-up server, and logins there. */
export async function accountImportCases(
  invalidDocuments: (name: string, headers: Headers) => readonly Case[],
): Promise<readonly Case[]> {
  const plain = { "Content-Type": PLAIN };
  const [imports, logins] = ["POST /v1/account-imports", "POST /v1/account-imports/logins"];
  const actions = { actions: [play(1)], timestamp: 1_800_000_000 };
  const other = await startOther(
    gpodderPaths(
      { actions: [play(1)] },
      {
        "/index.php/apps/gpoddersync/subscriptions": { add: [], remove: [], timestamp: 1 },
        "/index.php/apps/gpoddersync/episode_action": actions,
        "POST /index.php/login/v2": () => ({
          poll: { token: "t", endpoint: `${other.url}/login/v2/poll` },
          login: `${other.url}/login`,
        }),
      },
    ),
    true,
  );
  const account = (attributes: object) => document("account-import", { url: other.url, ...ANN, ...attributes });
  const login = (url: string) => document("account-import-login", { url });
  return [
    [imports, 200, plain, account({})],
    [imports, 200, plain, account({ kind: "nextcloud" }), "/v1/account-imports?dryRun=true"],
    [imports, 400, plain, account({}), "/v1/account-imports?dry_run=maybe"],
    [imports, 422, plain, account({ kind: "other" })],
    [imports, 422, plain, account({ url: "x" })],
    ...invalidDocuments(imports, plain),
    [logins, 201, plain, login(other.url)],
    [logins, 400, plain, login(other.url), "/v1/account-imports/logins?x"],
    [logins, 422, plain, login("http://10.0.0.1")],
    ...invalidDocuments(logins, plain),
  ];
}
