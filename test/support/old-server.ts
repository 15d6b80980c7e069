import assert from "node:assert/strict";
import { documentOf, newUser, start } from "./http-accounts.ts";

const FIRST = Date.parse("2024-07-01T10:00:00Z");

export const OLD_FEEDS = ["https://a.example/1", "https://a.example/2", "https://b.example/"];

/** A second Earmark with an account that has these feeds and some plays, from which another server imports. */
export async function startOldServer({ actions: count = 5, settings = {} } = {}) {
  const server = await start(settings);
  const { name, Authorization, Cookie } = await newUser(server);
  const token = Authorization.slice("Bearer ".length);
  const headers = { Authorization: `Basic ${Buffer.from(`${name}:${token}`).toString("base64")}` };
  const send = async (path: string, body: unknown) => {
    const response = await server.call("POST", path, { headers, body: JSON.stringify(body) });
    assert.equal(response.status, 200, response.text);
  };
  const play = (index: number) => ({
    podcast: OLD_FEEDS[index % OLD_FEEDS.length],
    episode: `https://media.example/${index}.mp3`,
    action: "play",
    timestamp: new Date(FIRST + index * 60_000).toISOString().slice(0, 19),
    started: 0,
    position: index,
    total: 3_600,
  });
  await send(`/api/2/subscriptions/${name}/phone.json`, { add: OLD_FEEDS, remove: [] });
  await send(
    `/api/2/episodes/${name}.json`,
    Array.from({ length: count }, (_, index) => play(index)),
  );
  return {
    url: server.url,
    name,
    password: token,
    /** What the person does on the page that a login opens. */
    async allow(loginUrl: string) {
      const id = new URLSearchParams(new URL(loginUrl).hash.slice(1)).get("app-login");
      const { status } = await server.call("POST", `/v1/app-logins/${id}`, {
        headers: { Cookie, "Content-Type": "application/vnd.api+json" },
        body: documentOf("app-login", { label: "import" }),
      });
      assert.equal(status, 201);
    },
    /** How many tokens the account has. */
    async tokens() {
      return (await server.call("GET", "/v1/me", { headers: { Cookie } })).json.meta.counts.tokens;
    },
  };
}
