import { request } from "node:http";
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
      await ask(port, "POST", "/v1/operations", { "content-type": ATOMIC, accept: ATOMIC }, body),
      await ask(port, "GET", page, { accept: PLAIN }),
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
function ask(port: number, method: string, path: string, headers: Record<string, string>, body = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: "127.0.0.1", method, path, headers, agent: false }, (incoming) => {
      let text = Object.entries(incoming.headers)
        .map(([name, value]) => `${name}: ${value}\n`)
        .sort()
        .join("");
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => {
        text += chunk;
      });
      incoming.on("end", () => resolve(text));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
