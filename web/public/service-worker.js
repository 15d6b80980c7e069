// Opens the page when the server is unreachable. Keeps only the page's own files, never a response of the API.

/** The server fills in both: a hash of the page and all its files, and the names of the files in assets/. */
const VERSION = "";
const FILES = [];

/** How long a server that does not respond may delay the page. */
const PATIENCE_MS = 4_000;

const PAGE = new URL("./", location).href;
const ASSETS = `${PAGE}assets/`;
// An origin may have several Earmarks, each under its own base path. A URL contains no space.
const PREFIX = `earmark ${PAGE} `;
const CACHE = PREFIX + VERSION;

addEventListener("install", (event) => {
  // Without waiting until all tabs with the former version are closed.
  skipWaiting();
  event.waitUntil(storeFiles());
});

addEventListener("activate", (event) => event.waitUntil(deleteOldFiles()));

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return;
  const [url] = request.url.split(/[?#]/, 1);
  if (request.mode === "navigate" && url === PAGE) event.respondWith(openPage(request));
  else if (request.url.startsWith(ASSETS)) event.respondWith(openFile(request));
});

async function storeFiles() {
  const cache = await caches.open(CACHE);
  const store = async (url) => {
    const response = await fetch(url);
    // A proxy with its own sign-in may redirect to another page.
    if (!response.ok || response.redirected) throw new Error(`cannot store ${url}`);
    await cache.put(url, response);
  };
  await Promise.all([PAGE, ...FILES.map((name) => ASSETS + name)].map(store));
}

/** The versions in this browser, newest first. */
async function versions() {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  return [CACHE, ...names.reverse()];
}

/** Keeps the version before this one, for tabs that still show it and load further files. */
async function deleteOldFiles() {
  for (const name of (await versions()).slice(2)) await caches.delete(name);
}

/** From the server if possible, so that a new version is shown at once. */
async function openPage(request) {
  const response = fetch(request);
  const waiting = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
  const fresh = await Promise.race([response, waiting]).catch(() => undefined);
  // A proxy responds with 502, 503 or 504 if the server is down.
  if (fresh !== undefined && fresh.status < 500) return fresh;
  return (await caches.match(PAGE, { cacheName: CACHE, ignoreVary: true })) ?? response;
}

/** Most names contain a hash of the content. The others change with the version. */
async function openFile(request) {
  for (const cacheName of await versions()) {
    const stored = await caches.match(request, { cacheName, ignoreVary: true });
    if (stored !== undefined) return stored;
  }
  return fetch(request);
}
