import assert from "node:assert/strict";
import { test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import {
  AppHttp,
  basic,
  feedUrl,
  type Json,
  mediaUrl,
  readFeeds,
  readTimestamp,
  readUploaded,
  startWorld,
} from "./app.ts";

/** Deserialized by mashumaro: null in a number fails the whole response. Times are compared, so all must have the same form. */
function readActions(document: Json): Json[] {
  readTimestamp(document);
  const zones = new Set<boolean>();
  for (const action of document.actions) {
    assert.ok(typeof action.podcast === "string" && typeof action.episode === "string");
    assert.ok([action.action.toLowerCase(), action.action.toUpperCase()].includes(action.action));
    for (const member of ["started", "position", "total"])
      if (member in action) assert.ok(Number.isInteger(action[member]), `${member}: ${action[member]}`);
    zones.add(/(Z|[+-]\d\d:\d\d)$/.test(action.timestamp));
  }
  assert.ok(zones.size <= 1);
  return document.actions;
}

test("Music Assistant: a device that it never registers, actions without one → it sees everything", async () => {
  const world = await startWorld();
  const { name } = world;
  const http = new AppHttp(world.port, basic(name, PASSWORD));
  await http.ok("POST", `/api/2/auth/${name}/login.json`, "null", { "Content-Type": "application/json" });
  await world.subscribe(feedUrl("a"));
  const feeds = `/api/2/subscriptions/${name}/music-assistant.json?since=0`;
  assert.deepEqual(readFeeds(await http.ok("GET", feeds)).add, [feedUrl("a")]);
  const episodes = `/api/2/episodes/${name}.json`;
  const phone = new AppHttp(world.port, basic(name, world.token));
  const base = { podcast: feedUrl("a"), timestamp: "2026-01-01T10:00:00Z" };
  readUploaded(
    await phone.ok("POST", episodes, [
      { ...base, episode: mediaUrl("1"), action: "play", position: 5, device: "phone" },
      { ...base, episode: mediaUrl("2"), action: "delete", position: null, device: "phone" },
    ]),
  );
  readUploaded(await http.ok("POST", episodes, [{ ...base, episode: mediaUrl("3"), action: "new" }]));
  const actions = readActions(await http.ok("GET", `${episodes}?since=0&device=music-assistant`));
  assert.deepEqual(
    actions.map(({ action }) => action),
    ["play", "delete", "new"],
  );
  // The whole list again on every run.
  assert.deepEqual(readFeeds(await http.ok("GET", feeds)).add, [feedUrl("a")]);
});
