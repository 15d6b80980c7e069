/** Where a server is: a path below an origin. */
export interface Address {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Empty, or begins with a slash and does not end with one. */
  readonly path: string;
}

const MAX_ADDRESS = 2_048;
/** Pages and APIs of such servers, which people may copy from their browser or app. */
const BELOW_SERVER = /\/(?:index\.php|status\.php|apps|login|login\.php|api\/2|subscriptions)(?:\/.*)?$/;

/** Reads an address as a person enters it. Undefined if it is no http or https URL, or contains a user name or password. */
export function readAddress(text: string): Address | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_ADDRESS || !/^https?:\/\/[^/?#\\]/i.test(trimmed)) return undefined;
  const url = URL.parse(trimmed);
  if (url === null || url.username !== "" || url.password !== "" || url.hostname === "") return undefined;
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, "") };
}

/** Where the server may be, if this is the address of one of its pages. */
export function possibleServers(address: Address): readonly Address[] {
  const path = address.path.replace(BELOW_SERVER, "");
  return path === address.path ? [address] : [address, { ...address, path }];
}

/** The server that has this URL, whose path ends with `path`; undefined if it does not. */
export function serverOf(url: URL, path: string): Address | undefined {
  const own = path.replace(/\?.*/, "");
  return url.pathname.endsWith(own) ? { origin: url.origin, path: url.pathname.slice(0, -own.length) } : undefined;
}

export function writeAddress({ origin, path }: Address): string {
  return origin + path;
}
