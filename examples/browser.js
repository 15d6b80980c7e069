// What browser.html does. The server must allow the page's origin: EARMARK_CORS_ORIGINS.
import { createClient } from "../client/dist/index.js";

const element = (id) => document.getElementById(id);
let client;

/** Does something when a form is sent, and says how it went. */
function onSubmit(id, work) {
  element(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    await say(() => work(Object.fromEntries(new FormData(event.target))));
  });
}

async function say(work) {
  try {
    element("outcome").textContent = await work();
  } catch (error) {
    // What the server refuses as a whole, or a server that cannot be reached.
    element("outcome").textContent = error.message;
  }
}

async function show() {
  const items = [];
  for await (const { id, feedUrl } of client.subscriptions()) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.textContent = "Remove";
    button.addEventListener("click", () =>
      say(async () => {
        await client.remove(id);
        item.remove();
        return `Removed ${feedUrl}`;
      }),
    );
    // Text, never HTML: an address comes from anywhere.
    item.append(`${feedUrl} `, button);
    items.push(item);
  }
  element("list").replaceChildren(...items);
}

onSubmit("open", async ({ url, token }) => {
  client = createClient({ url, token });
  await show();
  element("add").hidden = false;
  const { name, counts } = await client.me();
  return `${name} has ${counts.subscriptions} subscriptions.`;
});

onSubmit("add", async ({ feeds }) => {
  const addresses = feeds.split("\n").map((line) => line.trim());
  const results = await client.subscribe(addresses.filter((line) => line !== ""));
  await show();
  // Each feed has its own result; one bad feed never harms the others.
  return results.map(({ feed, outcome, error }) => `${outcome}: ${feed} ${error?.detail ?? ""}`).join("\n");
});
