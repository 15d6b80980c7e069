import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { asUser } from "../../src/accounts/caller.ts";
import { feedKeyHex, readFeedUrl } from "../../src/lists/feed-url.ts";
import { documentOf, JSONAPI, newUser, start } from "../support/http-accounts.ts";
import { ATOMIC, add, callServer, type HttpResponse, newId, PLAIN } from "../support/server.ts";

// biome-ignore lint/suspicious/noExplicitAny: readers check the shape of a response
export type Json = any;
export type Headers = Readonly<Record<string, string>>;

export const FEEDS = "/index.php/apps/gpoddersync/subscriptions";
export const CHANGE_FEEDS = "/index.php/apps/gpoddersync/subscription_change/create";
export const ACTIONS = "/index.php/apps/gpoddersync/episode_action";
export const ADD_ACTIONS = "/index.php/apps/gpoddersync/episode_action/create";
export const FORM = "application/x-www-form-urlencoded";

/** A server with a user, and what the user does elsewhere: on the web page, or with other apps of the JSON:API. */
export async function startWorld(settings: Headers = {}) {
  const server = await start(settings);
  const user = await newUser(server);
  const headers = { Authorization: user.Authorization };
  return {
    server,
    port: server.port,
    name: user.name,
    token: user.Authorization.slice("Bearer ".length),
    /** The clock of the server, in seconds. */
    now: () => Math.floor(server.now().getTime() / 1_000),
    wait: (seconds: number) => server.wait(seconds * 1_000),
    async subscribe(...urls: string[]): Promise<void> {
      const body = JSON.stringify({ "atomic:operations": urls.map((url) => add(newId(), url)) });
      const response = await server.call("POST", "/v1/operations", {
        headers: { ...headers, "Content-Type": ATOMIC },
        body,
      });
      assert.equal(response.status, 200, response.text);
    },
    async unsubscribe(url: string): Promise<void> {
      const { json } = await server.call("GET", "/v1/subscriptions?page[size]=100", { headers });
      const found = json.data.find((item: Json) => item.attributes.feed_url === url);
      assert.ok(found, `${url} is not in the list`);
      assert.equal((await server.call("DELETE", `/v1/subscriptions/${found.id}`, { headers })).status, 204);
    },
    /** The person gives a feed another URL, to which the old one does not lead. */
    async move(from: string, to: string): Promise<void> {
      const [found] = await server.store.find(user.user, [{ kind: "feed", normalizedUrl: normalize(from) }]);
      const type = "subscription";
      const body = JSON.stringify({ data: { type, id: found?.id, attributes: { feed_url: to } } });
      const path = `/v1/subscriptions/${found?.id}`;
      const response = await server.call("PATCH", path, { headers: { ...headers, ...JSONAPI }, body });
      assert.equal(response.status, 200, response.text);
      // This server fetches nothing, so it looks without asking anybody.
      while ((await server.store.moves.dueLooks(server.now(), 1, user.user)).length > 0) await sleep(10);
    },
    /** The server follows a proven move. */
    async follow(from: string, to: string): Promise<void> {
      const change = { kind: "follow", feed: keyOf(from), to: { feed: keyOf(to), url: to } } as const;
      await server.store.move(asUser(user.user), change, server.now());
    },
    async list(): Promise<string[]> {
      const { json } = await server.call("GET", "/v1/subscriptions?page[size]=100", { headers });
      return json.data.map((item: Json) => item.attributes.feed_url).sort();
    },
    /** What the person does in the browser when an app asks for access. */
    async approve(login: string): Promise<void> {
      const id = new URLSearchParams(new URL(login).hash.slice(1)).get("app-login");
      const approved = await server.call("POST", `/v1/app-logins/${id}`, {
        headers: { ...JSONAPI, Cookie: user.Cookie },
        body: documentOf("app-login", { label: "an app" }),
      });
      assert.equal(approved.status, 201, approved.text);
    },
  };
}

function normalize(url: string): string {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : assert.fail(url);
}

const keyOf = (url: string) => feedKeyHex(normalize(url));

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Sends requests as an app does: with its headers each time, and with or without a cookie jar. */
export class AppHttp {
  readonly #port: number;
  readonly #headers: Headers;
  readonly #cookies: Map<string, string> | undefined;

  constructor(port: number, headers: Headers = {}, keepsCookies = true) {
    this.#port = port;
    this.#headers = headers;
    this.#cookies = keepsCookies ? new Map() : undefined;
  }

  async send(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<HttpResponse> {
    const cookie = [...(this.#cookies ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const response = await callServer(this.#port, method, path, {
      headers: { ...this.#headers, ...(cookie === "" ? {} : { Cookie: cookie }), ...headers },
      ...(text === undefined ? {} : { body: text }),
    });
    for (const each of [response.headers["set-cookie"] ?? []].flat()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      if (/max-age=0\b/i.test(each)) this.#cookies?.delete(name);
      else this.#cookies?.set(name, value);
    }
    return response;
  }

  /** Fails unless the status is exactly 200, and returns the document. */
  async ok(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Json> {
    const response = await this.send(method, path, body, headers);
    assert.equal(response.status, 200, `${method} ${path}: ${response.status} ${response.text}`);
    assert.match(String(response.headers["content-type"]), /^application\/json\b/);
    assert.match(String(response.headers["cache-control"]), /no-store/);
    return response.json;
  }
}

export function basic(name: string, password: string, encoding: "base64" | "base64url" = "base64"): Headers {
  return { Authorization: `Basic ${Buffer.from(`${name}:${password}`).toString(encoding)}` };
}

/** A timestamp that every app can store. */
export function readTimestamp(document: Json): number {
  assert.ok(Number.isSafeInteger(document.timestamp), JSON.stringify(document));
  assert.ok(document.timestamp >= 2 && document.timestamp < 2 ** 31, String(document.timestamp));
  return document.timestamp;
}

export function readStrings(value: unknown): string[] {
  assert.ok(Array.isArray(value) && value.every((item) => typeof item === "string"), JSON.stringify(value));
  return value;
}

export function readFeeds(document: Json): { add: string[]; remove: string[]; timestamp: number } {
  return { add: readStrings(document.add), remove: readStrings(document.remove), timestamp: readTimestamp(document) };
}

export function readUploaded(document: Json): number {
  assert.ok(Array.isArray(document.update_urls), JSON.stringify(document));
  for (const pair of document.update_urls) assert.equal(readStrings(pair).length, 2);
  return readTimestamp(document);
}

export const feedUrl = (name: string) => `https://feeds.example/${name}`;
export const mediaUrl = (name: string) => `https://media.example/${name}.mp3`;
export { PLAIN };
