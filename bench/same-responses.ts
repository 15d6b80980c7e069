import { ATOMIC, PLAIN } from "./requests.ts";

const ADDITION = {
  op: "add",
  data: {
    type: "subscription",
    id: "ffffffff-0000-4000-8000-000000000000",
    attributes: { feed_url: "https://feeds.example.com/first.xml" },
  },
};

/** Throws unless all servers return the same bytes, except for timestamps and the state of the list. */
export async function requireSameResponses(ports: readonly number[]): Promise<void> {
  const body = JSON.stringify({ "atomic:operations": [ADDITION] });
  const page = "/v1/subscriptions?page[number]=1&page[size]=25";
  const responses = await Promise.all(
    ports.map(async (port) => [
      await ask(port, "/v1/operations", { method: "POST", headers: { "content-type": ATOMIC, accept: ATOMIC }, body }),
      await ask(port, page, { headers: { accept: PLAIN } }),
    ]),
  );
  const texts = responses.map((response) =>
    response
      .join("\n")
      .replaceAll(/\d\d:\d\d:\d\d(\.\d+Z)?/g, "(time)")
      .replaceAll(/^(etag|content-length): .*\n/gm, "")
      .replaceAll(/,?"state(_before)?":"[^"]*"/g, "")
      .replaceAll(/,"meta":\{\}/g, ""),
  );
  for (const text of texts) {
    if (text !== texts[0])
      throw new Error(`the baseline and Earmark return different responses:\n${texts.join("\n\n")}`);
  }
}

/** Headers sorted by name, then the body. */
async function ask(port: number, path: string, options: RequestInit): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, options);
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}\n`).sort();
  return headers.join("") + (await response.text());
}
