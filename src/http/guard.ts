import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { failure } from "../errors/catalog.ts";
import { cacheLast } from "../util/cache-last.ts";
import type { ReadProxyUser } from "./auth/proxy-user.ts";
import { createSiteGuard, parseOrigin, type RouteFamily } from "./site-guard.ts";
import type { ReadPeer } from "./wire/client-address.ts";
import { MAX_HEADERS } from "./wire/connections.ts";

/**
 * Rejects requests that no route accepts. Without accounts it also protects against DNS rebinding, which shows in the Host
 * header.
 */
export function createGuard(
  config: Pick<Config, "allowedHosts" | "corsOrigins" | "accounts">,
  readPeer: ReadPeer,
  readProxyUser: ReadProxyUser,
): (request: IncomingMessage, family: RouteFamily) => void {
  const allowed = new Set(config.allowedHosts);
  const servesAnyHost = config.accounts !== undefined && allowed.size === 0;
  const isServed = (name: string) =>
    servesAnyHost || name === "localhost" || isIP(name.replace(/^\[|\]$/g, "")) > 0 || allowed.has(name);
  const findHostError = cacheLast((host: string) => {
    const name = parseOrigin(`http://${host}`)?.hostname;
    if (name === undefined) return "invalid-host";
    return isServed(name) ? undefined : "unknown-host";
  });
  const requireSameSite = createSiteGuard(config, readPeer, readProxyUser);

  return (raw, family) => {
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
    // Throws if the header that names the user is not from a trusted proxy.
    readProxyUser(raw);
    if (host !== undefined || raw.httpVersion !== "1.0") {
      const code = findHostError(host ?? "");
      if (code !== undefined) throw failure(code, { source: { header: "Host" } });
    }
    requireSameSite(raw, family);
  };
}
