import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Config } from "../config.ts";
import { failure, type RequestFailure } from "../errors.ts";
import type { ReadClient } from "./client-address.ts";
import { pathOf } from "./resource.ts";

export const MAX_HEADERS = 200;

/**
 * Refuses what no endpoint wants to see. On a server without credentials this is also what keeps web pages out: a page
 * that points a name of its own at this machine sends that name as Host, and a page elsewhere says so in its headers.
 * With accounts it keeps them from using the cookie of a signed-in user. `isApi` tells paths of the API from those of
 * pages, which other sites may link to.
 */
export function createGuard(
  config: Pick<Config, "allowedHosts" | "corsOrigins" | "accounts">,
  readClient: ReadClient,
  isApi: (path: string) => boolean,
): (request: IncomingMessage) => void {
  const allowed = new Set(config.allowedHosts);
  const hasAccounts = config.accounts !== undefined;
  const isAnyHost = hasAccounts && allowed.size === 0;
  let last: { host: string | undefined; name: string | undefined; isServed: boolean } = {
    host: undefined,
    name: undefined,
    isServed: false,
  };
  /** The name in a Host header, and whether this server goes by it. Nearly every request names the same host. */
  const read = (host: string) => {
    if (last.host !== host) {
      const name = parseOrigin(`http://${host}`)?.hostname;
      const isServed =
        isAnyHost || name === "localhost" || isIP(name?.replace(/^\[|\]$/g, "") ?? "") > 0 || allowed.has(name ?? "");
      last = { host, name, isServed };
    }
    return last;
  };

  /**
   * Whether an origin is the server's own: with the same host and port as Host or a trusted proxy's X-Forwarded-Host, or
   * an allowed name with one of their ports or the default port. The scheme counts if a trusted proxy has told it:
   * otherwise a proxy that the server does not know may have terminated TLS.
   */
  const isOwn = (origin: string, raw: IncomingMessage): boolean => {
    const from = parseOrigin(origin);
    const { host, scheme } = readClient(raw);
    if (from === undefined || (scheme !== undefined && from.protocol !== `${scheme}:`)) return false;
    const reached = [raw.headers.host, host].flatMap((authority) =>
      authority === undefined ? [] : (parseOrigin(`${from.protocol}//${authority}`) ?? []),
    );
    if (reached.some((own) => own.host === from.host)) return true;
    return allowed.has(from.hostname) && ["", ...reached.map(({ port }) => port)].includes(from.port);
  };

  /** Throws unless the request is from the server's own page, or from no web page at all. Browsers say which. */
  const requireOwnPage = (raw: IncomingMessage) => {
    const { host, origin, "sec-fetch-site": site } = raw.headers;
    if (isOtherSite(site)) throw crossSite("Sec-Fetch-Site");
    if (origin === undefined) return;
    if (origin === "null" || host === undefined || (site !== "same-origin" && !isOwn(origin, raw)))
      throw crossSite("Origin");
  };

  const isListed = ({ headers: { origin } }: IncomingMessage) =>
    origin !== undefined && config.corsOrigins.includes(origin);

  const refuseOtherSites = (raw: IncomingMessage) => {
    if (isListed(raw)) return;
    const isLink = raw.headers.origin === undefined && isVisit(raw) && !isApi(pathOf(raw));
    if (!isLink) requireOwnPage(raw);
  };

  /**
   * No web page can make a browser add an Authorization header by itself, so requests with one are not forged. Origins
   * of CORS need a token to write. Reading reveals nothing to another site except whether the user is signed in, by
   * whether a download starts; so such requests are refused before the cookie is looked at.
   */
  const refuseForgery = (raw: IncomingMessage) => {
    const { authorization, "sec-fetch-site": site } = raw.headers;
    if (authorization !== undefined) return;
    if (raw.method !== "GET" && raw.method !== "HEAD") requireOwnPage(raw);
    else if (isOtherSite(site) && isApi(pathOf(raw)) && !isListed(raw)) throw crossSite("Sec-Fetch-Site");
  };

  return (raw) => {
    const { host, expect, "transfer-encoding": coding } = raw.headers;
    if (raw.httpVersion !== "1.1" && raw.httpVersion !== "1.0") {
      throw failure("unsupported-http-version");
    }
    if (coding !== undefined && (coding.toLowerCase() !== "chunked" || raw.httpVersion === "1.0")) {
      throw failure("unsupported-transfer-encoding", { source: { header: "Transfer-Encoding" } });
    }
    if (raw.rawHeaders.length > 2 * MAX_HEADERS) {
      throw failure("header-too-large", { reason: `A request must not have more than ${MAX_HEADERS} headers` });
    }
    if (/[^!-~]|#/.test(raw.url ?? "")) {
      throw failure("malformed-target");
    }
    if (expect !== undefined && expect.toLowerCase() !== "100-continue") {
      throw failure("expectation-failed", { source: { header: "Expect" } });
    }
    const refuse = hasAccounts ? refuseForgery : refuseOtherSites;
    if (host === undefined && raw.httpVersion === "1.0") {
      refuse(raw);
      return;
    }
    const { name, isServed } = read(host ?? "");
    if (host === undefined || host === "" || name === undefined) {
      throw failure("invalid-host", { source: { header: "Host" } });
    }
    if (!isServed) throw failure("unknown-host", { source: { header: "Host" } });
    refuse(raw);
  };
}

/** Whether Sec-Fetch-Site names another origin: "cross-site", "same-site" (such as another port), or an unknown value. */
function isOtherSite(site: string | string[] | undefined): boolean {
  return site !== undefined && site !== "same-origin" && site !== "none";
}

/** Somebody follows a link to here: what is answered is shown to that person, and the other site sees nothing of it. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  const { "sec-fetch-mode": mode, "sec-fetch-dest": destination } = headers;
  return (method === "GET" || method === "HEAD") && mode === "navigate" && destination === "document";
}

/** Room for a scheme, the longest host of DNS and a port. */
const MAX_ORIGIN = 300;

/** Undefined for what is no origin: a URL with more than a scheme, a host and a port. */
function parseOrigin(text: string): URL | undefined {
  if (text.length > MAX_ORIGIN || !/^https?:\/\/[^/?#@\\\s,]+$/i.test(text)) return undefined;
  return URL.parse(text) ?? undefined;
}

function crossSite(header: string): RequestFailure {
  return failure("forbidden-origin", { source: { header } });
}
