import type { IncomingMessage } from "node:http";
import { readName } from "../../accounts/names.ts";
import type { Config } from "../../config/config.ts";
import { createNetworkCheck } from "../../config/networks.ts";
import { failure } from "../../errors/catalog.ts";
import { remoteAddressOf } from "../wire/client-address.ts";

/**
 * Reads the name of the user that a trusted proxy has authenticated. Undefined without the header; `name` is undefined if
 * it is invalid. Throws if anyone else sent the header, even on routes that do not use it.
 */
export type ReadProxyUser = (request: IncomingMessage) => { readonly name: string | undefined } | undefined;

export function createProxyUserReader({ accounts, trustedProxies }: Pick<Config, "accounts" | "trustedProxies">) {
  const header = accounts?.authHeader;
  if (header === undefined) return () => undefined;
  const isTrusted = createNetworkCheck(trustedProxies);
  const read: ReadProxyUser = ({ headers, socket }) => {
    const value = headers[header];
    if (value === undefined) return undefined;
    if (!isTrusted(remoteAddressOf(socket))) throw failure("untrusted-auth-header");
    // Proxies send an empty header for paths that need no sign-in. Repeated headers are joined with a comma.
    const text = String(value);
    if (text === "") return undefined;
    return { name: /^[!-~]+$/.test(text) ? readName(text) : undefined };
  };
  return read;
}
