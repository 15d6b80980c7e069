import { randomBytes } from "node:crypto";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { readTicket } from "../src/accounts/tickets.ts";
import { readTimestamp, readWholeNumber } from "../src/apps/action-values.ts";
import { feedKeyOf, readAction } from "../src/apps/episode-actions.ts";
import { readConfig } from "../src/config/config.ts";
import { readNewPasskey } from "../src/http/api/documents/accounts.ts";
import { readDeviceChanges } from "../src/http/api/documents/apps.ts";
import { readActions, readActionsQuery } from "../src/http/apps/gpodder/actions.ts";
import { readDevice } from "../src/http/apps/gpodder/devices.ts";
import { readFeedLines } from "../src/http/apps/gpodder/feeds.ts";
import { readSince } from "../src/http/apps/gpodder/since.ts";
import { readPollBody, readPollForm } from "../src/http/apps/nextcloud/login.ts";
import { createProxyUserReader } from "../src/http/auth/proxy-user.ts";
import { readUploads } from "../src/lists/imports.ts";
import { type Frame, plain, testLinearTime } from "./support/linear-time.ts";

/** Limit of the request line with all headers. */
const HEADERS = 16 * 1024;
/** For text that is limited only by the body size. */
const LONG = 32 * 1024;

const URLS: readonly Frame[] = [
  ["x", "x"],
  ["https://", ""],
  ["https://a.example/", "x"],
  ["https://a.example/%", ""],
];
const now = new Date();
const action = (text: string) => ({
  podcast: text,
  episode: text,
  guid: text,
  device: text,
  action: "play",
  timestamp: text,
});
const upload = {
  guid: undefined,
  device: undefined,
  kind: "play",
  actedAt: now,
  position: 1,
  started: 0,
  total: 2,
} as const;
const signatures = { sign: () => "", verify: async () => false } as unknown as Parameters<typeof readTicket>[0];
const config = readConfig(
  { EARMARK_ACCOUNTS: "true", EARMARK_AUTH_HEADER: "Remote-User", EARMARK_TRUSTED_PROXIES: "127.0.0.1" },
  "/",
);
const readProxyUser = createProxyUserReader(config);

testLinearTime([
  plain("feedKeyOf", LONG, feedKeyOf, URLS),
  plain("readUploads", LONG, (text) => readUploads([text]), URLS),
  plain("readActions", LONG, (text) => readActions([action(text)]), URLS),
  plain("readAction", LONG, (text) => readAction({ ...upload, podcast: text, episode: text }, now), URLS),
  plain("readFeedLines", LONG, readFeedLines, [["https://a.example/", "\n"]]),
  plain("readWholeNumber", LONG, readWholeNumber, [
    ["1.", ""],
    ["1", "x"],
  ]),
  plain("readTimestamp", LONG, readTimestamp, [
    ["2026-01-01T00:00:00.", "Z"],
    ["2026-01-01T00:00:00", "x"],
    ["1700000000.", "x"],
  ]),
  plain("readSince", HEADERS, readSince, [
    ["since=", ""],
    ["since=1.", "x"],
  ]),
  plain("readActionsQuery", HEADERS, readActionsQuery, [["podcast=", ""]]),
  plain("readDevice", HEADERS, (text) => readDevice({ caption: text, type: text })),
  plain("readDeviceChanges", HEADERS, (text) =>
    readDeviceChanges({ data: { type: "device", id: "a", attributes: { caption: text } } }, "a"),
  ),
  plain("readPollForm", HEADERS, readPollForm, [["token=", ""]]),
  plain("readPollBody", HEADERS, readPollBody, [
    ["token=", ""],
    ['{"token":"', '"}'],
  ]),
  plain("readNewPasskey", HEADERS, (text) =>
    readNewPasskey({ data: { type: "passkey", attributes: { label: text, credential: { id: text } } } }),
  ),
  plain("readTicket", HEADERS, (text) => readTicket(signatures, "passkey", text, now), [
    ["zzzzzzz~", ""],
    [`zzzzzzz~${randomBytes(32).toString("base64url")}~`, "~"],
  ]),
  {
    name: "readProxyUser",
    length: HEADERS,
    prepare(text) {
      const socket = new Socket();
      Object.defineProperty(socket, "remoteAddress", { value: "127.0.0.1" });
      const request = Object.assign(new IncomingMessage(socket), { headers: { "remote-user": text } });
      return () => readProxyUser(request);
    },
  },
]);
