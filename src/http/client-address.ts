import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv4 } from "node:net";

/** Where a request came from, as far as it can be told. */
export interface Client {
  /** What limits are counted for: an address, or the network that a household has in IPv6. */
  readonly network: string;
  readonly isHttps: boolean;
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
  const trusted = new BlockList();
  for (const network of trustedProxies) {
    const [address = "", prefix] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  let hasToldOfIgnored = false;
  const isTrusted = (address: string) => trusted.check(address, isIPv4(address) ? "ipv4" : "ipv6");

  return ({ socket, headers }) => {
    const peer = plainAddress(socket.remoteAddress ?? "") ?? "";
    if (trustedProxies.length === 0 || peer === "" || !isTrusted(peer)) {
      if (!hasToldOfIgnored && headers["x-forwarded-for"] !== undefined) {
        hasToldOfIgnored = true;
        onIgnored?.();
      }
      return { network: networkOf(peer), isHttps: false, host: undefined };
    }
    let client = peer;
    for (const hop of listOf(headers["x-forwarded-for"]).reverse()) {
      const address = plainAddress(hop);
      if (address === undefined) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    return {
      network: networkOf(client),
      isHttps: listOf(headers["x-forwarded-proto"]).at(-1)?.toLowerCase() === "https",
      host: listOf(headers["x-forwarded-host"]).at(-1),
    };
  };
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

/** One network is one household: an address of IPv4, the first 64 bits of one of IPv6. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [start = "", end] = address.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const before = groups(start);
  const after = end === undefined ? [] : groups(end);
  // An IPv4 address at the end of one of IPv6 takes the place of two groups.
  const length = before.length + after.length + (/\./.test(address) ? 1 : 0);
  const all = [...before, ...new Array<string>(end === undefined ? 0 : 8 - length).fill("0"), ...after];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
