/** Where a server is: a path below an origin. */
export interface Address {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Empty, or begins with a slash and does not end with one. */
  readonly path: string;
}

const MAX_ADDRESS = 2_048;
/** How pages and APIs of such servers begin, which people may copy from their browser or app. */
const BELOW_SERVER = new Set(["index.php", "status.php", "apps", "login", "login.php", "subscriptions"]);

/** Reads an address as a person enters it. Undefined if it is no http or https URL, or contains a user name or password. */
export function readAddress(text: string): Address | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_ADDRESS || !/^https?:\/\/[^/?#\\]/i.test(trimmed)) return undefined;
  const url = URL.parse(trimmed);
  if (url === null || url.username !== "" || url.password !== "" || url.hostname === "") return undefined;
  return addressOf(url);
}

/** The address without a query. */
export function addressOf({ origin, pathname }: URL): Address {
  let end = pathname.length;
  while (pathname[end - 1] === "/") end -= 1;
  return { origin, path: pathname.slice(0, end) };
}

/** Where the server may be, if this is the address of one of its pages. */
export function possibleServers(address: Address): readonly Address[] {
  const segments = address.path.split("/");
  const isBelow = (segment: string, index: number) =>
    BELOW_SERVER.has(segment) || (segment === "api" && segments[index + 1] === "2");
  const end = segments.findIndex(isBelow);
  return end < 0 ? [address] : [address, { ...address, path: segments.slice(0, end).join("/") }];
}

/** The server that has this URL, whose path ends with `path`; undefined if it does not. */
export function serverOf(url: URL, path: string): Address | undefined {
  const own = path.replace(/\?.*/, "");
  return url.pathname.endsWith(own) ? { origin: url.origin, path: url.pathname.slice(0, -own.length) } : undefined;
}

export function writeAddress({ origin, path }: Address): string {
  return origin + path;
}
