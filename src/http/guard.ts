import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Config } from "../config.ts";
import { RequestFailure } from "../jsonapi/failure.ts";
import type { ReadClient } from "./client-address.ts";

const MAX_HEADERS = 200;

/**
 * Refuses what no endpoint wants to see. On a server without credentials this is also what keeps web pages out: a page
 * that points a name of its own at this machine sends that name as Host, and a page elsewhere says so in its headers.
 * With accounts it keeps them from using the cookie of whoever is signed in.
 */
export function createGuard(
  config: Pick<Config, "allowedHosts" | "corsOrigins" | "accounts">,
  readClient: ReadClient,
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
      const name = hostname(`http://${host}`);
      const isServed =
        isAnyHost || name === "localhost" || isIP(name?.replace(/^\[|\]$/g, "") ?? "") > 0 || allowed.has(name ?? "");
      last = { host, name, isServed };
    }
    return last;
  };

  const refuseOtherSites = (raw: IncomingMessage, name: string) => {
    const { origin, "sec-fetch-site": site } = raw.headers;
    if (origin !== undefined && config.corsOrigins.includes(origin)) return;
    if (site === "cross-site" && !isVisit(raw)) throw crossSite("Sec-Fetch-Site");
    const from = origin === undefined ? name : hostname(origin);
    if (from === undefined || (from !== name && !allowed.has(from))) throw crossSite("Origin");
  };

  /**
   * Whoever sends an Authorization header is not a page that uses somebody's cookie. All others must be our own page, or
   * no page at all: browsers say which. The origins of CORS are no exception, since they come with tokens.
   */
  const refuseForgery = (raw: IncomingMessage) => {
    const { authorization, host, origin, "sec-fetch-site": site } = raw.headers;
    if (raw.method === "GET" || raw.method === "HEAD" || authorization !== undefined) return;
    if (origin === "null") throw crossSite("Origin");
    if (site !== undefined) {
      if (site !== "same-origin" && site !== "none") throw crossSite("Sec-Fetch-Site");
    } else if (origin !== undefined) {
      const from = origin.replace(/^https?:\/\//, "").toLowerCase();
      const isOurs = from === host?.toLowerCase() || from === readClient(raw).host?.toLowerCase();
      if (!isOurs && !allowed.has(hostname(origin) ?? "")) throw crossSite("Origin");
    }
  };

  return (raw) => {
    const { host, expect, "transfer-encoding": coding } = raw.headers;
    if (raw.httpVersion !== "1.1" && raw.httpVersion !== "1.0") {
      throw new RequestFailure({ status: 505, title: "HTTP Version Not Supported" }, { connection: "close" });
    }
    if (coding !== undefined && (coding.toLowerCase() !== "chunked" || raw.httpVersion === "1.0")) {
      throw new RequestFailure(
        {
          status: 400,
          title: "Bad Request",
          detail: "The only transfer coding is chunked, and it is of HTTP/1.1.",
          source: { header: "Transfer-Encoding" },
        },
        { connection: "close" },
      );
    }
    if (raw.rawHeaders.length > 2 * MAX_HEADERS) {
      throw new RequestFailure({
        status: 431,
        title: "Request Header Fields Too Large",
        detail: `A request may have at most ${MAX_HEADERS} headers.`,
      });
    }
    if (/[^!-~]|#/.test(raw.url ?? "")) {
      throw new RequestFailure({
        status: 400,
        title: "Bad Request",
        detail: "The request target must be percent-encoded, and without a fragment.",
      });
    }
    if (expect !== undefined && expect.toLowerCase() !== "100-continue") {
      throw new RequestFailure({ status: 417, title: "Expectation Failed", source: { header: "Expect" } });
    }
    if (host === undefined && raw.httpVersion === "1.0") return;
    const { name, isServed } = read(host ?? "");
    if (host === undefined || host === "" || name === undefined) {
      throw new RequestFailure({
        status: 400,
        title: "Bad Request",
        detail: "A request must have exactly one valid Host header.",
        source: { header: "Host" },
      });
    }
    if (!isServed) {
      throw new RequestFailure({
        status: 421,
        title: "Misdirected Request",
        detail:
          "This server does not go by the name in the Host header. Its operator can allow the name with EARMARK_ALLOWED_HOSTS.",
        source: { header: "Host" },
      });
    }
    if (hasAccounts) refuseForgery(raw);
    else refuseOtherSites(raw, name);
  };
}

/** Somebody follows a link to here: what is answered is shown to that person, and the other site sees nothing of it. */
function isVisit({ method, headers }: IncomingMessage): boolean {
  const { "sec-fetch-mode": mode, "sec-fetch-dest": destination } = headers;
  return (method === "GET" || method === "HEAD") && mode === "navigate" && destination === "document";
}

/** Room for a scheme, the longest host of DNS and a port. */
const MAX_ORIGIN = 300;

/** Undefined for what is no origin: an address with more than a scheme, a host and a port. */
function hostname(origin: string): string | undefined {
  if (origin.length > MAX_ORIGIN) return undefined;
  if (!/^https?:\/\/[^/?#@\\\s,]+$/i.test(origin)) return undefined;
  return URL.parse(origin)?.hostname;
}

function crossSite(header: string): RequestFailure {
  return new RequestFailure({
    status: 403,
    title: "Cross-Site Request Refused",
    detail: "This request was made by a web page of another site.",
    source: { header },
  });
}
