import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { EpisodeAction } from "../../../apps/episode-actions.ts";
import { writeActions } from "../gpodder/actions.ts";
import { toNextcloudAction } from "./actions.ts";
import { readPollBody, readPollForm, writeAllowedLogin, writeOcsResponse, writeStartedLogin } from "./login.ts";

const PLAY: EpisodeAction = {
  podcast: "https://a.example/feed",
  episode: "https://a.example/1.mp3",
  guid: undefined,
  device: "phone",
  kind: "play",
  actedAt: new Date("2024-07-01T10:00:00Z"),
  position: 20,
  started: 5,
  total: 30,
};
const write = async (action: EpisodeAction) => JSON.parse(await text(writeActions([[action]], 5, toNextcloudAction)));

test("Nextcloud actions: a play → upper-case action, time without a zone, all numbers, null guid", async () => {
  assert.deepEqual(await write(PLAY), {
    actions: [
      {
        podcast: PLAY.podcast,
        episode: PLAY.episode,
        guid: null,
        action: "PLAY",
        timestamp: "2024-07-01T10:00:00",
        started: 5,
        position: 20,
        total: 30,
        playedDuration: 15,
      },
    ],
    timestamp: 5,
  });
});

test("Nextcloud actions: missing numbers → -1; actions other than plays → all numbers -1", async () => {
  const [play] = (await write({ ...PLAY, guid: "g", started: undefined, total: undefined })).actions;
  assert.deepEqual([play.guid, play.started, play.position, play.total], ["g", -1, 20, -1]);
  const [deleted] = (await write({ ...PLAY, kind: "delete" })).actions;
  assert.deepEqual([deleted.action, deleted.started, deleted.position, deleted.total], ["DELETE", -1, -1, -1]);
  assert.ok(!("playedDuration" in deleted));
});

test("Nextcloud login: poll token in a form or in JSON → read; missing → empty", () => {
  for (const body of ["token=abc~1", "token=abc%7E1&x=1", '{"token":"abc~1"}', ' {"token":"abc~1"}'])
    assert.equal(readPollBody(body), "abc~1");
  for (const body of ["", "{", '{"token":1}', "[]", "x=1"]) assert.equal(readPollBody(body), "");
  for (const query of ["token=abc~1", "x=1&token=abc%7E1&token=2"]) assert.equal(readPollForm(query), "abc~1");
  for (const query of ["", "token", "x=1", '{"token":"abc~1"}']) assert.equal(readPollForm(query), "");
});

test("Nextcloud login: started and allowed → responses with absolute URLs", () => {
  const started = { pollToken: "p", loginUrl: "https://x.example/sub/#app-login=i" };
  assert.deepEqual(JSON.parse(writeStartedLogin("https://x.example/sub", started)), {
    poll: { token: "p", endpoint: "https://x.example/sub/index.php/login/v2/poll" },
    login: started.loginUrl,
  });
  assert.deepEqual(JSON.parse(writeAllowedLogin("https://x.example/sub", "ann", "emk_x")), {
    server: "https://x.example/sub",
    loginName: "ann",
    appPassword: "emk_x",
  });
});

test("OCS: an app password → in the element `apppassword`; none → status code 200", () => {
  assert.match(writeOcsResponse("emk_x"), /<apppassword>emk_x<\/apppassword>/);
  assert.match(writeOcsResponse(), /<statuscode>200<\/statuscode>/);
});
