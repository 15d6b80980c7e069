// Keeps your podcast list on this device, in sync with an Earmark server. Works offline: edits are saved and sent later.
// For Node 20 or newer. In a clone, after `npm start`, in another terminal:
//
//   (cd client && npm run build)
//   EARMARK_URL=https://pods.example EARMARK_TOKEN=emk_… node examples/sync.mjs
//
// Then type `add URL`, `remove URL`, `rename URL TITLE` or `move URL FOLDER`. Changes of other devices appear at once.
import process from "node:process";
import { createInterface } from "node:readline";
import { createClient, openReplica } from "../client/dist/index.js";
import { fileStorage } from "../client/dist/node.js";

const { EARMARK_URL: url = "http://127.0.0.1:8080", EARMARK_TOKEN: token, EARMARK_FOLDER = "list" } = process.env;
let shown = new Map();

/** Prints what is new, changed or gone. */
function show(list) {
  const lines = new Map(
    list.map(({ id, feedUrl, title = "", folders = "" }) => [id, `${feedUrl} ${title} ${folders}`]),
  );
  for (const [id, line] of shown) if (!lines.has(id)) console.log(`- ${line.trim()}`);
  for (const [id, line] of lines)
    if (shown.get(id) !== line) console.log(`${shown.has(id) ? "~" : "+"} ${line.trim()}`);
  shown = lines;
}

const replica = await openReplica({
  // The replica retries by itself.
  client: createClient({ url, token, retries: 0 }),
  storage: fileStorage(EARMARK_FOLDER),
  onChange: show,
  onRefused: ({ operation, error }) =>
    console.log(`refused: ${operation.op} ${operation.feedUrl ?? ""} ${error.detail}`),
});

const commands = {
  add: (feedUrl) => replica.add([feedUrl]),
  remove: (feedUrl) => replica.remove([idOf(feedUrl)]),
  rename: (feedUrl, ...words) => replica.update([{ id: idOf(feedUrl), title: words.join(" ") || null }]),
  move: (feedUrl, folder) => replica.update([{ id: idOf(feedUrl), folders: folder ? [folder] : null }]),
};
const idOf = (feedUrl) => replica.list().find((item) => item.feedUrl === feedUrl)?.id;

const stop = new AbortController();
createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const [name, ...words] = line.trim().split(/\s+/);
    if (!Object.hasOwn(commands, name) || words.length === 0)
      console.log(`Commands: ${Object.keys(commands).join(", ")}`);
    else if (!(await commands[name](...words))[0]) console.log("not in the list");
  })
  .on("close", () => stop.abort());

try {
  await replica.run({ signal: stop.signal, onError: ({ message }) => console.log(`offline: ${message}`) });
} catch (error) {
  if (!stop.signal.aborted) throw error;
  if (replica.pending > 0) console.log(`${replica.pending} edits will be sent the next time.`);
}
