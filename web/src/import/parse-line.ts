/** Reads a typed line as a feed URL: apps share `feed:` and `pcast:` links, and people omit `https://`. */
export function parseLine(line: string): string {
  const text = line.trim().replace(/^<([^<>]*)>$/, "$1");
  const url = text.replace(/^(feed|pcast|itpc|podcast|rss):(\/\/)?(?=[^/])/i, (_all, _scheme, slashes) =>
    slashes ? "https://" : "",
  );
  const [, host = ""] = /^([^\s/:@]+)(:\d+)?(\/\S*)?$/.exec(url) ?? [];
  return host.slice(1, -1).includes(".") ? `https://${url}` : url;
}
