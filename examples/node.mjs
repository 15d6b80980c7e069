// Adds two feeds to an Earmark server, lists all subscriptions, and removes one. For Node 20 or newer, Deno and Bun. In
// a clone, after `npm start`, in another terminal:
//
//   (cd client && npm run build)
//   EARMARK_URL=https://pods.example EARMARK_TOKEN=emk_… node examples/node.mjs
//
// In your own project, import the client from "earmark-client": see client/README.md.
import process from "node:process";
import { createClient, EarmarkError, guid } from "../client/dist/index.js";

const { EARMARK_URL: url = "http://127.0.0.1:8080", EARMARK_TOKEN: token } = process.env;
// A server without accounts needs no token.
const client = createClient({ url, token });

try {
  // Any number of feeds: the client sends them in batches, and waits when the server is busy.
  const results = await client.subscribe(["https://podnews.net/rss", "https://mp3s.nashownotes.com/pc20rss.xml"], {
    onProgress: ({ done, total }) => console.log(`${done} of ${total}`),
  });
  // Each feed has its own result: an invalid feed does not affect the others.
  for (const { feed, outcome, error } of results) console.log(outcome, feed, error?.detail ?? "");

  for await (const { id, feedUrl, subscribedAt } of client.subscriptions()) {
    console.log(id, subscribedAt.toISOString(), feedUrl);
  }

  // A feed that was added without an id has its podcast GUID.
  console.log((await client.remove(guid("https://podnews.net/rss"))) ? "removed" : "not found");
} catch (error) {
  // The server rejected the whole request, for example because of an invalid token.
  if (!(error instanceof EarmarkError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
