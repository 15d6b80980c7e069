import type { IncomingMessage } from "node:http";
import type { Config } from "../config/config.ts";
import { failure, type RequestFailure } from "../errors/catalog.ts";
import type { ReadProxyUser } from "./auth/proxy-user.ts";
import { readBearer } from "./auth/verify-request.ts";
import type { ReadPeer } from "./wire/client-address.ts";

/** Pages, which other sites may link to; the JSON:API; the APIs of podcast apps. */
export type RouteFamily = "page" | "api" | "app";

/**
 * Rejects requests from web pages on other sites, which show in Origin and Sec-Fetch-Site. With accounts it prevents them
 * from using the session cookie, and the credentials of podcast apps if the browser knows them.
 */
export function createSiteGuard(
  config: Pick<Config, "allowedHosts" | "corsOrigins" | "accounts">,
  readPeer: ReadPeer,
  readProxyUser: ReadProxyUser,
): (request: IncomingMessage, family: RouteFamily) => void {
  /**
   * Whether an origin is the server's own: the host and port of Host or of a trusted proxy's X-Forwarded-Host, or an
   * allowed host with one of their ports or the default port. The scheme is compared only if a trusted proxy reports it,
   * because an unknown proxy may have terminated TLS.
   */
  const isOwnOrigin = (origin: string, raw: IncomingMessage): boolean => {
    const from = parseOrigin(origin);
    const { host, scheme } = readPeer(raw);
    if (from === undefined || (scheme !== undefined && from.protocol !== `${scheme}:`)) return false;
    const ownOrigins = [raw.headers.host, host].flatMap((authority) =>
      authority === undefined ? [] : (parseOrigin(`${from.protocol}//${authority}`) ?? []),
    );
    if (ownOrigins.some((own) => own.host === from.host)) return true;
    return (
      config.allowedHosts.includes(from.hostname) && ["", ...ownOrigins.map(({ port }) => port)].includes(from.port)
    );
  };

  /** Throws if the request is from a web page on another site. */
  const requireOwnPage = (raw: IncomingMessage) => {
    const { host, origin, "sec-fetch-site": site } = raw.headers;
    if (isOtherSite(site)) throw crossSite("Sec-Fetch-Site");
    if (origin === undefined) return;
    if (origin === "null" || host === undefined || (site !== "same-origin" && !isOwnOrigin(origin, raw)))
      throw crossSite("Origin");
  };

  const isCorsOrigin = ({ headers: { origin } }: IncomingMessage) =>
    origin !== undefined && config.corsOrigins.includes(origin);

  /** Without accounts: other sites may link to pages, but not use the API. */
  const protectWithoutAccounts = (raw: IncomingMessage, isApi: boolean) => {
    if (isCorsOrigin(raw)) return;
    const isLink = raw.headers.origin === undefined && isNavigation(raw) && !isApi;
    if (!isLink) requireOwnPage(raw);
  };

  /**
   * With accounts. A web page cannot make a browser send an Authorization header, so a request with one is not forged.
   * The exception is a proxy that asks for a password: the browser remembers it and sends it by itself. CORS origins
   * need a token to write. A cross-site read could reveal whether the user is signed in (for example by whether a
   * download starts), so it is rejected before the cookie is read.
   */
  const protectSessions = (raw: IncomingMessage, isApi: boolean) => {
    const { authorization, "sec-fetch-site": site } = raw.headers;
    if (authorization !== undefined && (readBearer(authorization) !== undefined || readProxyUser(raw) === undefined))
      return;
    if (raw.method !== "GET" && raw.method !== "HEAD") requireOwnPage(raw);
    else if (isOtherSite(site) && isApi && !isCorsOrigin(raw)) throw crossSite("Sec-Fetch-Site");
  };

  /**
   * Browsers attach remembered Basic credentials to cross-site requests, and app routes accept any Content-Type, so neither
   * credentials nor Content-Type show that a request is not forged. Some apps have their own origin.
   */
  const protectAppRoutes = (raw: IncomingMessage) => {
    const { origin = "", "sec-fetch-site": site } = raw.headers;
    if (isCorsOrigin(raw) || (isAppOrigin(origin) && !isOtherSite(site))) return;
    requireOwnPage(raw);
  };

  return (raw, family) => {
    if (family === "app") protectAppRoutes(raw);
    else if (config.accounts !== undefined) protectSessions(raw, family === "api");
    else protectWithoutAccounts(raw, family === "api");
  };
}

/** Whether Sec-Fetch-Site is another origin: "cross-site", "same-site" (another port, say), or an unknown value. */
function isOtherSite(site: string | string[] | undefined): boolean {
  return site !== undefined && site !== "same-origin" && site !== "none";
}

/** Whether the user follows a link: the browser shows the response, and the linking site cannot read it. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  const { "sec-fetch-mode": mode, "sec-fetch-dest": destination } = headers;
  return (method === "GET" || method === "HEAD") && mode === "navigate" && destination === "document";
}

/** Apps with a web view, such as Cardo. A web page has the scheme http or https, or the origin "null". */
function isAppOrigin(origin: string): boolean {
  return /^https?:\/\/tauri\.localhost$/i.test(origin) || /^(?!https?:)[a-z][a-z0-9+.-]*:\/\//i.test(origin);
}

/** Longer than any scheme, host name and port. */
const MAX_ORIGIN = 300;

/** Undefined unless the text is a scheme, a host and optionally a port. */
export function parseOrigin(text: string): URL | undefined {
  if (text.length > MAX_ORIGIN || !/^https?:\/\/[^/?#@\\\s,]+$/i.test(text)) return undefined;
  return URL.parse(text) ?? undefined;
}

function crossSite(header: string): RequestFailure {
  return failure("forbidden-origin", { source: { header } });
}
