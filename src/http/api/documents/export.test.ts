import assert from "node:assert/strict";
import { test } from "node:test";
import type { Credential } from "../../../accounts/account-store.ts";
import type { NumberedAction } from "../../../apps/episode-actions.ts";
import type { ChangeSet } from "../../../lists/history.ts";
import type { Subscription } from "../../../lists/subscription.ts";
import { credentialResource, ownAccountResource } from "./accounts.ts";
import { deviceResource } from "./apps.ts";
import { writeAccountExport } from "./export.ts";
import { captionsOf, changeSetResource } from "./history.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const ANN = { user: 5, name: "ann", issuer: "", createdAt: NOW, isAdmin: false, followsMoves: true };
const TOKEN: Credential = {
  id: "1b4e28ba-2fa1-4d2e-883f-0016d3cca427",
  kind: "token",
  user: 5,
  scope: "write",
  label: "phone",
  createdAt: NOW,
  usedAt: undefined,
  expiresAt: undefined,
};
const PHONE = { id: "phone", caption: "Phone", type: "mobile", app: "", syncedAt: NOW } as const;
const ACTION: NumberedAction = {
  sequence: 7,
  podcast: "https://feeds.example/a",
  episode: "https://media.example/a",
  kind: "play",
  actedAt: NOW,
  guid: undefined,
  device: "phone",
  position: 5,
  started: undefined,
  total: undefined,
  superseded: undefined,
  title: "One",
  publishedAt: undefined,
};

const SET: ChangeSet = {
  first: 3,
  last: 4,
  startedAt: NOW.getTime(),
  endedAt: NOW.getTime(),
  kind: "app",
  name: "old caption",
  key: "device phone",
  act: "",
  total: 10,
  added: 1,
  updated: 0,
  removed: 1,
  undoes: 0,
  scope: "",
};

test("account export: list in batches of any size → one complete document", async () => {
  const item = (id: string): Subscription => ({ id, feedUrl: `https://feeds.example/${id}`, subscribedAt: NOW });
  async function* subscriptionPages() {
    yield [item("a"), item("b")];
    yield [item("c")];
  }
  async function* actionPages() {
    yield [ACTION];
    yield [{ ...ACTION, sequence: 8, kind: "new" as const, position: undefined }];
  }
  async function* changeSetPages() {
    yield [{ set: SET, isUndone: true }];
  }
  let text = "";
  const everything = {
    account: ANN,
    credentials: [TOKEN],
    devices: [PHONE],
    dismissals: [{ id: "g", dismissedAt: NOW }],
    links: [],
    readSubscriptionCount: async () => 3,
    subscriptionPages: subscriptionPages(),
    actionPages: actionPages(),
    changeSetPages: changeSetPages(),
  };
  for await (const chunk of writeAccountExport(everything, "/p")) text += chunk;
  const { jsonapi, data } = JSON.parse(text);
  assert.deepEqual(jsonapi, { version: "1.1" });
  assert.deepEqual(data.slice(0, 4), [
    ownAccountResource(ANN, "/p"),
    credentialResource(TOKEN, "/p"),
    deviceResource(PHONE, 3, "/p"),
    { type: "duplicate", id: "g", attributes: { dismissed_at: NOW.toISOString() } },
  ]);
  assert.deepEqual(
    data.slice(4, 7).map(({ type, id, links }: { type: string; id: string; links: object }) => [type, id, links]),
    ["a", "b", "c"].map((id) => ["subscription", id, { self: `/p/v1/subscriptions/${id}` }]),
  );
  assert.deepEqual(
    data
      .slice(7, 9)
      .map(({ type, id, attributes }: { type: string; id: string; attributes: { position: number } }) => [
        type,
        id,
        attributes.position,
      ]),
    [
      ["episode-action", "7", 5],
      ["episode-action", "8", null],
    ],
  );
  assert.deepEqual(data.slice(9), [JSON.parse(JSON.stringify(changeSetResource(SET, true, captionsOf([PHONE]))))]);
  assert.equal(data[9].attributes.by.name, "Phone");
  assert.match(text, /\]\}\n$/);
});
