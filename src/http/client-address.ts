import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv4, type Socket } from "node:net";

/** Where a request came from, as far as it can be told. */
export interface Client {
  readonly address: string;
  /** The networks that the address is in, which limits are counted for: narrow to wide. */
  readonly networks: readonly string[];
  readonly isHttps: boolean;
  /** What the client used to reach us, if a trusted proxy says so. */
  readonly scheme: "http" | "https" | undefined;
  /** The name under which the client reached us, if a trusted proxy says that it was another than in Host. */
  readonly host: string | undefined;
}

export type ReadClient = (request: IncomingMessage) => Client;

/**
 * Whoever connects to us is the client, unless that is a proxy that we trust: then the client is the last address of
 * X-Forwarded-For that is not a proxy of ours. What anyone else says of where a request came from has no effect;
 * `onIgnored` is told once, since it is often a proxy that nobody has told us of.
 */
export function createClientReader(trustedProxies: readonly string[], onIgnored?: () => void): ReadClient {
  const isTrusted = createProxyCheck(trustedProxies);
  let hasToldOfIgnored = false;
  /** The last client that is no proxy: most requests come from few addresses. */
  let last: { address: string | undefined; client: Client } | undefined;

  return ({ socket, headers }) => {
    if (last !== undefined && last.address === socket.remoteAddress && headers["x-forwarded-for"] === undefined)
      return last.client;
    const peer = peerOf(socket);
    if (!isTrusted(peer)) {
      if (!hasToldOfIgnored && headers["x-forwarded-for"] !== undefined) {
        hasToldOfIgnored = true;
        onIgnored?.();
      }
      last = {
        address: socket.remoteAddress,
        client: { address: peer, networks: networksOf(peer), isHttps: false, scheme: undefined, host: undefined },
      };
      return last.client;
    }
    let client = peer;
    for (const hop of listOf(headers["x-forwarded-for"]).reverse()) {
      const address = plainAddress(hop);
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

/** Tells whether an address is that of a trusted proxy. */
export function createProxyCheck(trustedProxies: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList();
  for (const network of trustedProxies) {
    const [address = "", prefix] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  if (trustedProxies.length === 0) return () => false;
  return (address) => address !== "" && trusted.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}

/** The address at the other end of a connection; empty when the connection is already gone. */
export function peerOf(socket: Socket): string {
  return plainAddress(socket.remoteAddress ?? "") ?? "";
}

function listOf(header: string | string[] | undefined): string[] {
  return String(header ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** An address without brackets, port and zone, and of IPv4 in its own form; undefined for what is none. */
function plainAddress(text: string): string | undefined {
  const address = text
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^([\d.]+):\d+$/, "$1")
    .replace(/%.*/s, "");
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  // There are many ways to write one address; a URL has one of them.
  const plain = URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? address;
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(plain) ?? [];
  if (high === undefined || low === undefined) return plain;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((pair) => [pair >> 8, pair & 255]).join(".");
}

/**
 * The networks of an address, narrow to wide. IPv4: the address itself and its /24. IPv6: the /64 that a household uses,
 * the /56 that a provider usually gives it, and the /48 that a company or a hosting customer gets.
 */
export function networksOf(address: string): string[] {
  if (isIPv4(address)) return [address, `${address.slice(0, address.lastIndexOf("."))}.0/24`];
  if (isIP(address) !== 6) return [address];
  const [start = "", end] = address.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const before = groups(start);
  const after = end === undefined ? [] : groups(end);
  // An IPv4 address at the end of one of IPv6 takes the place of two groups.
  const length = before.length + after.length + (/\./.test(address) ? 1 : 0);
  const all = [...before, ...new Array<string>(end === undefined ? 0 : 8 - length).fill("0"), ...after];
  const [a, b, c, d = 0] = all.slice(0, 4).map((group) => Number.parseInt(group, 16));
  return [64, 56, 48].map((bits) => {
    const last = d & (0xffff << (64 - bits));
    return `${[a, b, c, last].map((group) => Number(group).toString(16)).join(":")}::/${bits}`;
  });
}
