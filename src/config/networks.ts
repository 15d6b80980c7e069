import { BlockList, isIPv4 } from "node:net";

/** Returns a function that checks whether an IP address belongs to one of the networks, which are addresses or CIDRs. */
export function createNetworkCheck(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  if (networks.length === 0) return () => false;
  return (address) => address !== "" && list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}
