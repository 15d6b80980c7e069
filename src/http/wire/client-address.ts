import type { IncomingMessage } from "node:http";
import { isIP, isIPv4, type Socket } from "node:net";
import type { Site } from "../../accounts/passkeys.ts";
import type { Config } from "../../config/config.ts";
import { createNetworkCheck } from "../../config/networks.ts";
import { cacheLast } from "../../util/cache-last.ts";

/** Who sent a request: the other end of the connection or, behind a trusted proxy, whom the proxy forwards. */
export interface Peer {
  readonly address: string;
  /** The networks that contain the address, narrow to wide. Rate limits apply to each. */
  readonly networks: readonly string[];
  readonly isHttps: boolean;
  /** The scheme of the original request, if a trusted proxy forwards it. */
  readonly scheme: "http" | "https" | undefined;
  /** The Host of the original request, if a trusted proxy forwards it. */
  readonly host: string | undefined;
}

export type ReadPeer = (request: IncomingMessage) => Peer;

/**
 * The peer is at the remote address unless that is a trusted proxy. Then it is the last address in X-Forwarded-For that is
 * not a trusted proxy. Forwarded headers from other addresses are ignored; `onIgnored` is called the first time, because
 * it is often a proxy that is missing from the settings.
 */
export function createPeerReader(trustedProxies: readonly string[], onIgnored?: () => void): ReadPeer {
  const isTrusted = createNetworkCheck(trustedProxies);
  let hasReportedIgnored = false;
  const readRemote = cacheLast((text: string | undefined) => {
    const address = normalizeAddress(text ?? "") ?? "";
    const peer = { address, networks: networksOf(address), isHttps: false, scheme: undefined, host: undefined };
    return { peer, isProxy: isTrusted(address) };
  });

  return ({ socket, headers }) => {
    const { peer, isProxy } = readRemote(socket.remoteAddress);
    if (!isProxy) {
      if (!hasReportedIgnored && headers["x-forwarded-for"] !== undefined) {
        hasReportedIgnored = true;
        onIgnored?.();
      }
      return peer;
    }
    let client = peer.address;
    for (const hop of listOf(headers["x-forwarded-for"]).reverse()) {
      const address = normalizeAddress(hop);
      if (address === undefined) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    const proto = listOf(headers["x-forwarded-proto"]).at(-1)?.toLowerCase();
    return {
      address: client,
      networks: networksOf(client),
      isHttps: proto === "https",
      scheme: proto === "https" || proto === "http" ? proto : undefined,
      host: listOf(headers["x-forwarded-host"]).at(-1),
    };
  };
}

/** The URL of the server for links, with the base path and without a slash at the end. */
export type ServerUrlOf = (request: IncomingMessage) => string;

/** The URL from the settings, else the one at which the client reached the server. */
export function createServerUrlReader(
  { publicUrl, basePath }: Pick<Config, "publicUrl" | "basePath">,
  readPeer: ReadPeer,
): ServerUrlOf {
  if (publicUrl !== undefined) return () => publicUrl;
  return (raw) => {
    const { isHttps, host = raw.headers.host } = readPeer(raw);
    return `${isHttps ? "https" : "http"}://${host}${basePath}`;
  };
}

/**
 * The site of the server for passkeys: that of its URL from the settings, else the one at which the client reached it.
 * If neither the settings nor a trusted proxy specify the scheme, both http and https are accepted.
 */
export function siteOf(
  raw: IncomingMessage,
  server: {
    readonly config: Pick<Config, "publicUrl">;
    readonly readPeer: ReadPeer;
    readonly serverUrlOf: ServerUrlOf;
  },
): Site {
  const { origin, hostname: host } = URL.parse(server.serverUrlOf(raw)) ?? { origin: "", hostname: "" };
  const isSchemeKnown = server.config.publicUrl !== undefined || server.readPeer(raw).scheme !== undefined;
  return {
    host,
    origins: isSchemeKnown ? [origin] : [origin, origin.replace(/^http:/, "https:")],
  };
}

/** The remote address of a connection; empty if it is already closed. */
export function remoteAddressOf(socket: Socket): string {
  return normalizeAddress(socket.remoteAddress ?? "") ?? "";
}

function listOf(header: string | string[] | undefined): string[] {
  return String(header ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** The canonical form of an address, without brackets, port and zone; undefined if it is not an IP address. */
function normalizeAddress(text: string): string | undefined {
  const address = text
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^([\d.]+):\d+$/, "$1")
    .replace(/%.*/s, "");
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  // The URL parser writes every IPv6 address in one canonical form.
  const canonical = URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? address;
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(canonical) ?? [];
  if (high === undefined || low === undefined) return canonical;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((pair) => [pair >> 8, pair & 255]).join(".");
}

/**
 * The networks of an address, narrow to wide. IPv4: the address itself and its /24. IPv6: the /64 of one household, the
 * /56 that a provider usually assigns to it, and the /48 that a company or a hosting customer gets.
 */
export function networksOf(address: string): string[] {
  if (isIPv4(address)) return [address, `${address.slice(0, address.lastIndexOf("."))}.0/24`];
  if (isIP(address) !== 6) return [address];
  const [start = "", end] = address.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const before = groups(start);
  const after = end === undefined ? [] : groups(end);
  // An embedded IPv4 address takes the place of two groups.
  const length = before.length + after.length + (/\./.test(address) ? 1 : 0);
  const all = [...before, ...new Array<string>(end === undefined ? 0 : 8 - length).fill("0"), ...after];
  const [a, b, c, d = 0] = all.slice(0, 4).map((group) => Number.parseInt(group, 16));
  return [64, 56, 48].map((bits) => {
    const last = d & (0xffff << (64 - bits));
    return `${[a, b, c, last].map((group) => Number(group).toString(16)).join(":")}::/${bits}`;
  });
}
