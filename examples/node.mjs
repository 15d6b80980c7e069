// Adds two feeds to an Earmark server, lists all, and removes one. For Node 20 or newer, Deno and Bun; in a clone:
//
//   (cd client && npm run build)
//   EARMARK_URL=https://pods.example EARMARK_TOKEN=emk_… node examples/node.mjs
//
// In a project of your own the client is "earmark-client": see client/README.md.
import process from "node:process";
import { createClient, EarmarkError, guid } from "../client/dist/index.js";

const { EARMARK_URL: url = "http://127.0.0.1:8080", EARMARK_TOKEN: token } = process.env;
// A server without accounts needs no token.
const client = createClient({ url, token });

try {
  // As many as you like: the client sends them in portions, and waits when the server is busy.
  const results = await client.subscribe(["https://podnews.net/rss", "https://mp3s.nashownotes.com/pc20rss.xml"], {
    onProgress: ({ done, total }) => console.log(`${done} of ${total}`),
  });
  // One bad feed never harms the others, so each has its own result.
  for (const { feed, outcome, error } of results) console.log(outcome, feed, error?.detail ?? "");

  for await (const { id, feedUrl, subscribedAt } of client.subscriptions()) {
    console.log(id, subscribedAt.toISOString(), feedUrl);
  }

  // A feed that was given without an id has its podcast GUID.
  console.log((await client.remove(guid("https://podnews.net/rss"))) ? "removed" : "there was none");
} catch (error) {
  // What the server refuses as a whole: a wrong token, say.
  if (!(error instanceof EarmarkError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
