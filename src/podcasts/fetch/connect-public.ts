import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext } from "node:tls";
import { FetchError } from "./fetch-error.ts";

export interface Address {
  readonly address: string;
  readonly family: number;
}

/** All addresses of a host name. */
export type Resolve = (host: string) => Promise<readonly Address[]>;

export interface Connector {
  readonly resolve: Resolve;
  /** Whether the server may connect to an IP address. */
  readonly isAllowed: (address: string) => boolean;
  /** Shared, because loading the root certificates takes milliseconds. */
  readonly secureContext: SecureContext;
}

/** Addresses tried in turn, all of them within the connect timeout. */
const MAX_ADDRESSES = 8;
const ATTEMPT_MS = 1_000;

/**
 * Connects to the host of a URL, if all its addresses are allowed. The name is resolved once, and the socket gets exactly
 * the addresses that were checked, so a second DNS response that differs has no effect.
 */
export async function connectPublic(url: URL, connector: Connector, signal: AbortSignal): Promise<Socket> {
  const isTls = url.protocol === "https:";
  // IPv6 addresses are in brackets.
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = await resolveAllowed(host, connector);
  signal.throwIfAborted();
  const socket = connectTcp({
    host,
    port: Number(url.port) || (isTls ? 443 : 80),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
    lookup: (_host, _options, callback) => callback(null, [...addresses]),
    signal,
  });
  await waitForEvent(socket, "connect", "unreachable");
  // In case the socket connected to anything but the addresses that were checked.
  if (!connector.isAllowed(socket.remoteAddress ?? "")) {
    socket.destroy();
    throw new FetchError("not-public");
  }
  if (!isTls) return socket;
  const secure = connectTls({
    socket,
    ...(isIP(host) === 0 ? { servername: host } : { host }),
    ALPNProtocols: ["http/1.1"],
    secureContext: connector.secureContext,
    rejectUnauthorized: true,
  });
  await waitForEvent(secure, "secureConnect", "tls");
  return secure;
}

async function resolveAllowed(host: string, connector: Connector): Promise<readonly Address[]> {
  const family = isIP(host);
  const addresses = family === 0 ? await lookup(host, connector.resolve) : [{ address: host, family }];
  if (addresses.length === 0) throw new FetchError("dns");
  if (!addresses.every(({ address }) => connector.isAllowed(address))) throw new FetchError("not-public");
  return addresses.slice(0, MAX_ADDRESSES);
}

async function lookup(host: string, resolve: Resolve): Promise<readonly Address[]> {
  try {
    return await resolve(host);
  } catch (error) {
    throw new FetchError((error as NodeJS.ErrnoException).code === "ENOTFOUND" ? "dns" : "unreachable");
  }
}

/**
 * Waits for the event; fails with `reason`. The error listener stays on the socket but has no further effect: later errors
 * are reported by the HTTP request.
 */
function waitForEvent(
  socket: Socket,
  event: "connect" | "secureConnect",
  reason: "unreachable" | "tls",
): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => resolve());
    socket.on("error", () => reject(new FetchError(reason)));
    socket.once("close", () => reject(new FetchError(reason)));
  });
}
