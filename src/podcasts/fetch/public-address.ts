import { isIP } from "node:net";
import { createNetworkCheck } from "../../config/networks.ts";

/** Special-purpose ranges of the IANA registry, multicast included, and Azure's metadata server, which has a public address. */
const isSpecialIPv4 = createNetworkCheck([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "168.63.129.16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
]);

const isGlobalUnicast = createNetworkCheck(["2000::/3"]);
const isSpecialIPv6 = createNetworkCheck(["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"]);

/** Returns a function that checks whether the server may connect to an IP address: public, or in these networks. */
export function createAddressCheck(networks: readonly string[]): (address: string) => boolean {
  const isListed = createNetworkCheck(networks);
  return (text) => {
    const address = normalize(text);
    return address !== undefined && (isPublic(address) || isListed(address));
  };
}

function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !isSpecialIPv4(address);
  return isGlobalUnicast(address) && !isSpecialIPv6(address) && !isIsatap(address);
}

/** A tunnel to the IPv4 address in the last four bytes, in a network of any prefix. */
function isIsatap(address: string): boolean {
  const [start = [], end = []] = address.split("::").map((part) => (part === "" ? [] : part.split(":")));
  const groups = [...start, ...Array<string>(8 - start.length - end.length).fill("0"), ...end];
  return groups[5] === "5efe" && (groups[4] === "0" || groups[4] === "200");
}

/**
 * The address that packets reach: the IPv4 address within an IPv4-mapped or NAT64 address, else the address itself.
 * Undefined if the text is not an IP address or has a zone.
 */
function normalize(text: string): string | undefined {
  if (isIP(text) === 4) return text;
  // The URL parser writes every IPv6 address in one canonical form.
  const host = isIP(text) === 6 ? URL.parse(`http://[${text}]`)?.hostname : undefined;
  if (host === undefined) return undefined;
  const address = host.slice(1, -1);
  const embedded = /^(?:::ffff|64:ff9b:):(?:([0-9a-f]{1,4}):)?([0-9a-f]{1,4})?$/.exec(address);
  if (embedded === null) return address;
  const [high, low] = embedded.slice(1).map((group) => Number.parseInt(group ?? "0", 16));
  return [high, low].flatMap((group = 0) => [group >> 8, group & 255]).join(".");
}
