// The script of browser.html. The server must allow the page's origin: EARMARK_CORS_ORIGINS.
import { createClient } from "../client/dist/index.js";

const element = (id) => document.getElementById(id);
let client;

/** Runs `work` when the form is submitted, and shows the message that it returns. */
function onSubmit(id, work) {
  element(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    await showOutcome(() => work(Object.fromEntries(new FormData(event.target))));
  });
}

async function showOutcome(work) {
  try {
    element("outcome").textContent = await work();
  } catch (error) {
    // The server rejected the request, or is unreachable.
    element("outcome").textContent = error.message;
  }
}

async function showList() {
  const items = [];
  for await (const { id, feedUrl } of client.subscriptions()) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.textContent = "Remove";
    button.addEventListener("click", () =>
      showOutcome(async () => {
        await client.remove(id);
        item.remove();
        return `Removed ${feedUrl}`;
      }),
    );
    // Text, never HTML: a feed URL is untrusted.
    item.append(`${feedUrl} `, button);
    items.push(item);
  }
  element("list").replaceChildren(...items);
}

onSubmit("open", async ({ url, token }) => {
  client = createClient({ url, token });
  await showList();
  element("add").hidden = false;
  const { name, counts } = await client.me();
  return `${name} has ${counts.subscriptions} subscriptions.`;
});

onSubmit("add", async ({ feeds }) => {
  const urls = feeds.split("\n").map((line) => line.trim());
  const results = await client.subscribe(urls.filter((line) => line !== ""));
  await showList();
  // Each feed has its own result: an invalid feed does not affect the others.
  return results.map(({ feed, outcome, error }) => `${outcome}: ${feed} ${error?.detail ?? ""}`).join("\n");
});
