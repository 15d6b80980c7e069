import { randomUUID } from "node:crypto";
import {
  type AccountImportRequest,
  type AccountImportResult,
  SOURCE_KINDS,
  STARTS_PER_HOUR,
  type StartedLogin,
} from "../../../account-imports/account-imports.ts";
import type { BroughtIn } from "../../../account-imports/bring-in.ts";
import type { ImportFailure, ImportLimit, ServerProblem } from "../../../account-imports/failures.ts";
import { failure, type RequestFailure } from "../../../errors/catalog.ts";
import { type Attributes, readAttributes, writeOne } from "../../../jsonapi/document.ts";
import { retryAfter } from "../../auth/authenticate.ts";
import { MAX_PASSWORD_TEXT, missingAttribute } from "./accounts.ts";

const IMPORT = "account-import";
const LOGIN = "account-import-login";
const MAX_URL = 2_048;
const MAX_USER_NAME = 256;
const MAX_LOGIN = 8_192;

/** Reads which account to import: a name and password, or a login. */
export function readAccountImport(document: unknown): AccountImportRequest {
  const attributes = readAttributes(document, IMPORT);
  const url = readText(attributes, "url", MAX_URL);
  const kind = readKind(attributes);
  if (attributes["login"] === undefined || attributes["login"] === null) {
    const userName = readText(attributes, "user_name", MAX_USER_NAME);
    // The protocol separates name and password by the first colon.
    if (userName === "" || userName.includes(":") || hasControlCharacters(userName))
      throw invalid("user_name", "Invalid `user_name`: enter the name of the account on the other server");
    const password = readText(attributes, "password", MAX_PASSWORD_TEXT);
    if (hasControlCharacters(password)) throw invalid("password", "Invalid `password`: it has control characters");
    return { url, kind, credentials: { userName, password } };
  }
  for (const name of ["user_name", "password"])
    if (attributes[name] !== undefined && attributes[name] !== null)
      throw invalid(name, `\`${name}\` cannot be combined with \`login\``);
  if (kind === "gpodder") throw invalid("kind", '`kind` must be "nextcloud" with a `login`');
  return { url, kind, credentials: { login: readText(attributes, "login", MAX_LOGIN) } };
}

/** Reads at which server to start a login. */
export function readAccountImportLogin(document: unknown): string {
  return readText(readAttributes(document, LOGIN), "url", MAX_URL);
}

function readKind({ kind }: Attributes): AccountImportRequest["kind"] {
  if (kind === undefined || kind === null) return undefined;
  const known = SOURCE_KINDS.find((each) => each === kind);
  if (known === undefined) throw invalid("kind", `\`kind\` must be ${SOURCE_KINDS.join(" or ")}`);
  return known;
}

function readText(attributes: Attributes, name: string, maxLength: number): string {
  const value = attributes[name];
  if (value === undefined) throw missingAttribute(name);
  if (typeof value !== "string") throw invalid(name, `\`${name}\` must be a string`);
  if (value.length > maxLength) throw invalid(name, `\`${name}\` is too long`);
  return value;
}

function invalid(name: string, reason: string): RequestFailure {
  return failure("invalid-attribute", { reason, source: { pointer: `/data/attributes/${name}` } });
}

function hasControlCharacters(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/** The result of an import, or of a dry run. */
export function writeAccountImport(
  { url }: AccountImportRequest,
  { kind, login, ...counts }: AccountImportResult,
  dryRun: boolean,
): string {
  const attributes = { url, kind, dry_run: dryRun, ...writeCounts(counts), login };
  return writeOne({ type: IMPORT, id: randomUUID(), attributes });
}

/** In a fixed order, without anything else. */
export function writeCounts({ subscriptions, episode_actions: actions }: BroughtIn): object {
  const { found, added, already_subscribed, refused } = subscriptions;
  return {
    subscriptions: { found, added, already_subscribed, refused },
    episode_actions: {
      found: actions.found,
      added: actions.added,
      not_newer: actions.not_newer,
      refused: actions.refused,
    },
  };
}

export function writeAccountImportLogin({ loginUrl, login, expiresAt }: StartedLogin): string {
  const attributes = { login_url: loginUrl, login, expires_at: expiresAt.toISOString() };
  return writeOne({ type: LOGIN, id: randomUUID(), attributes });
}

/** What the client is told. */
export function toRequestFailure(failed: ImportFailure): RequestFailure {
  switch (failed.code) {
    case "import-url-invalid":
    case "import-address-private":
    case "import-no-sync-server":
      return failure(failed.code, { source: { pointer: "/data/attributes/url" } });
    case "import-server-failed": {
      const { problem } = failed;
      const meta = problem.kind === "status" ? { meta: { status: problem.status } } : {};
      return failure(failed.code, { reason: describeProblem(problem), ...meta });
    }
    case "import-too-large":
      return failure(failed.code, { reason: LIMIT_TEXTS[failed.limit] });
    case "import-login-expired":
      return failure(failed.code, { source: { pointer: "/data/attributes/login" } });
    case "rate-limited":
      return failure(failed.code, {
        limit: STARTS_PER_HOUR,
        unit: "imports and logins per hour",
        ...retryAfter(failed.waitMs),
      });
    // Nobody reads it.
    case "aborted":
      return failure("body-incomplete");
    default:
      return failure(failed.code);
  }
}

function describeProblem(problem: ServerProblem): string {
  switch (problem.kind) {
    case "status":
      return `The other server returned the error ${problem.status}. Check the address, or try again later`;
    case "redirect":
      return `The other server redirects to ${problem.address}. If that is where your account is, enter this address`;
    case "no-response":
      return "The other server does not respond. Check the address, or try again later";
    case "certificate":
      return "The other server's TLS certificate is not valid, so no password was sent. Its operator must renew it";
    case "malformed":
      return "The other server's response is not what its API describes. Check the address, or tell its operator";
    case "foreign-login":
      return `The other server's login page is at ${problem.host}. Enter the address that begins with this host`;
  }
}

const OPML_INSTEAD = "To import the subscriptions alone, export them there as an OPML file";

const LIMIT_TEXTS: Readonly<Record<ImportLimit, string>> = {
  response: `A response of the other server is longer than 64 MiB. ${OPML_INSTEAD}`,
  bytes: `The other server sends more than 256 MiB in total. ${OPML_INSTEAD}`,
  requests: `Reading the account takes more than 1,000 requests. ${OPML_INSTEAD}`,
  items: `The other server sends more than 1,000,000 entries in total. ${OPML_INSTEAD}`,
  subscriptions: "The account has more than 50,000 subscriptions. Remove some there, then try again",
  actions: `The account has more than 200,000 episode actions. ${OPML_INSTEAD}`,
  time: "The import took longer than 10 minutes. What was added so far is kept; try again when the other server is less busy",
};
