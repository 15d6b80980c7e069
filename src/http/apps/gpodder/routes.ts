import type { Installation } from "../../../apps/app-store.ts";
import type { EpisodeAction, UploadedAction } from "../../../apps/episode-actions.ts";
import type { UploadResult } from "../../../apps/sync.ts";
import { subscriptionBatches } from "../../../lists/list-store.ts";
import { opmlSourceOf, writeOpml } from "../../../opml/write.ts";
import { forEachInTurns } from "../../../util/turns.ts";
import { OPML_TYPE } from "../../api/imports.ts";
import type { SearchDirectory } from "../../api/podcast-searches.ts";
import type { Services } from "../../api/services.ts";
import { signOutApp } from "../../auth/app-authentication.ts";
import type { Principal } from "../../wire/access.ts";
import { readJson } from "../../wire/body.ts";
import { type Dialect, GPODDER } from "../../wire/dialect.ts";
import { respond, respondCompressed, respondEmptyOk, respondInPieces } from "../../wire/respond.ts";
import {
  afterBatch,
  anyQuery,
  type Call,
  costOfEverything,
  type Method,
  type Route,
  route,
} from "../../wire/router.ts";
import type { AppBodyReaders } from "../app-bodies.ts";
import { MAX_ACTIONS_BYTES, readActionsQuery, toGpodderAction, writeActions, zoneFor } from "./actions.ts";
import { readDevice, writeDevices, writeSyncGroups } from "./devices.ts";
import {
  requireDisjoint,
  toPodcast,
  writeFeedChanges,
  writeFeedLines,
  writeFeedList,
  writeUploadResult,
} from "./feeds.ts";
import { createSearchHandler, readSearchQuery } from "./search.ts";
import { readSince } from "./since.ts";

/** More than enough: the document contains only a name and a type. */
const MAX_DEVICE_BYTES = 16 * 1024;
const UPDATE_TIMEOUT_S = 7 * 24 * 60 * 60;
const OPEN = { access: "open", dialect: GPODDER, query: anyQuery } as const;
const JSON_TYPE = { "content-type": GPODDER.contentType };
const OPML = { "content-type": OPML_TYPE };
const TEXT = { "content-type": "text/plain; charset=utf-8" };

/** The client that sent the request. Every request to an app route has one. */
function appOf({ app }: Principal): Installation {
  if (app === undefined) throw new Error("not an app route");
  return app;
}

/** The part of the gPodder API that apps use with self-hosted servers. */
export function gpodderRoutes(services: Services, bodies: AppBodyReaders, search: SearchDirectory): Route[] {
  const { maxBodyBytes, maxImportBytes } = services.config.limits;
  const sync = createSyncHandlers(services, bodies, GPODDER);
  const devices = createDeviceHandlers(services);
  const lists = createListHandlers(services, bodies);
  const get = (path: string, run: (call: Call) => Promise<void>) =>
    route("GET", path, { access: "read", dialect: GPODDER, query: anyQuery, run });
  const getAll = (path: string, run: (call: Call) => Promise<void>) =>
    route("GET", path, { access: "read", dialect: GPODDER, query: anyQuery, cost: costOfEverything, run });
  const write = (method: Method, path: string, maxBytes: number, run: (call: Call) => Promise<void>) =>
    route(method, path, { access: "write", dialect: GPODDER, query: anyQuery, body: { maxBytes }, run });
  const feeds = "/api/2/subscriptions/:user/:device.json";
  const episodes = "/api/2/episodes/:user.json";
  const list = "/subscriptions/:user/:device";

  return [
    route("POST", "/api/2/auth/:user/login.json", {
      ...OPEN,
      access: "read",
      run: async ({ response }) => respond(response, 200, GPODDER, "{}"),
    }),
    route("POST", "/api/2/auth/:user/logout.json", {
      ...OPEN,
      run: async ({ request, response }) => {
        await signOutApp(request, response, services);
        respond(response, 200, GPODDER, "{}");
      },
    }),

    get("/api/2/devices/:user.json", devices.list),
    write("POST", "/api/2/devices/:user/:device.json", MAX_DEVICE_BYTES, devices.save),
    write("PUT", "/api/2/devices/:user/:device.json", MAX_DEVICE_BYTES, devices.save),
    get("/api/2/sync-devices/:user.json", devices.listGroups),
    write("POST", "/api/2/sync-devices/:user.json", MAX_DEVICE_BYTES, devices.listGroups),

    route("GET", feeds, { access: "read", dialect: GPODDER, query: readSince, run: sync.feeds }),
    write("POST", feeds, maxBodyBytes, sync.changeFeeds),
    route("GET", episodes, { access: "read", dialect: GPODDER, query: readActionsQuery, run: sync.actions }),
    write("POST", episodes, MAX_ACTIONS_BYTES, sync.addActions),
    write("POST", "/api/2/episodes/:user/:device.json", MAX_ACTIONS_BYTES, sync.addActions),

    getAll("/subscriptions/:user.json", lists.sendPodcasts),
    getAll("/subscriptions/:user.txt", lists.sendLines),
    getAll("/subscriptions/:user.opml", lists.sendOpml),
    getAll(`${list}.json`, lists.sendUrls),
    getAll(`${list}.txt`, lists.sendLines),
    getAll(`${list}.opml`, lists.sendOpml),
    ...(["PUT", "POST"] as const).flatMap((method) => [
      write(method, `${list}.json`, maxBodyBytes, lists.replaceWithUrls),
      write(method, `${list}.txt`, maxBodyBytes, lists.replaceWithLines),
      write(method, `${list}.opml`, maxImportBytes, lists.replaceWithOpml),
    ]),

    route("GET", "/clientconfig.json", { ...OPEN, run: sendClientConfig(services) }),
    route("GET", "/search.json", {
      access: "read",
      dialect: GPODDER,
      query: readSearchQuery,
      run: createSearchHandler(services.directory && search),
    }),
    ...emptyRoutes(),
  ];
}

/** Tells apps the URL of this API. */
function sendClientConfig({ serverUrlOf }: Services): (call: Call) => Promise<void> {
  return async ({ request, response }) => {
    const baseurl = `${serverUrlOf(request.raw)}/`;
    const document = { mygpo: { baseurl }, "mygpo-feedservice": { baseurl }, update_timeout: UPDATE_TIMEOUT_S };
    respond(response, 200, GPODDER, JSON.stringify(document));
  };
}

/** Features of gpodder.net that this server does not have, such as lists of popular podcasts. */
function emptyRoutes(): Route[] {
  const respondWith = (document: string) => async (call: Call) => respond(call.response, 200, GPODDER, document);
  const forUsers = { ...OPEN, access: "read" } as const;
  return [
    route("GET", "/api/2/favorites/:user.json", { ...forUsers, run: respondWith("[]") }),
    route("GET", "/api/2/lists/:user.json", { ...forUsers, run: respondWith("[]") }),
    route("GET", "/api/2/settings/:user/:scope.json", { ...forUsers, run: respondWith("{}") }),
    route("GET", "/suggestions/:count.json", { ...forUsers, run: respondWith("[]") }),
    route("GET", "/toplist/:count.json", { ...OPEN, run: respondWith("[]") }),
    route("GET", "/api/2/tags/:count.json", { ...OPEN, run: respondWith("[]") }),
    route("GET", "/api/2/tag/:tag/:count.json", { ...OPEN, run: respondWith("[]") }),
  ];
}

/** Sync of feeds and episode actions, which both APIs have in common. */
export function createSyncHandlers(
  { apps, clock }: Services,
  bodies: AppBodyReaders,
  dialect: Dialect,
  convert: (action: EpisodeAction, zone: "Z" | "") => object = toGpodderAction,
) {
  /** The result lists every URL that the server has rewritten: thousands if an app sends its URLs with whitespace. */
  const sendUploadResult = async ({ request, response }: Call, { timestamp, rewritten }: UploadResult) => {
    const chunks = writeUploadResult(timestamp, rewritten);
    if (rewritten.length === 0) respond(response, 200, dialect, [...chunks].join(""));
    else await respondInPieces(request, response, chunks, JSON_TYPE);
  };
  return {
    async feeds({ request, response, caller, query: since }: Call<number>): Promise<void> {
      const { add, remove, isLong, timestamp } = await apps.feedsSince(caller, appOf(caller), since, clock());
      const chunks = writeFeedChanges(whileAllowed(caller, add), whileAllowed(caller, remove), timestamp);
      if (isLong) {
        await request.readTurn();
        await respondInPieces(request, response, chunks, JSON_TYPE, { mayCompress: true });
        return;
      }
      let document = "";
      for await (const chunk of chunks) document += chunk;
      await respondCompressed(request, response, dialect, document);
    },

    async changeFeeds(call: Call): Promise<void> {
      const { caller } = call;
      const [changes = { add: [], remove: [] }] = await bodies.feedChanges(call);
      if (dialect === GPODDER) requireDisjoint(changes);
      caller.spend(changes.add.length + changes.remove.length);
      await sendUploadResult(call, await apps.changeFeeds(caller, appOf(caller), changes, clock()));
    },

    async actions(call: Call<{ readonly since: number; readonly podcast?: string | undefined }>): Promise<void> {
      const { request, response, caller, query } = call;
      const { since, podcast } = query;
      const { pages, isLong, timestamp } = await apps.actionsSince(caller, appOf(caller), since, podcast, clock());
      if (isLong) await request.readTurn();
      const zone = zoneFor(request.headers);
      const chunks = writeActions(whileAllowed(caller, pages), timestamp, (action) => convert(action, zone));
      await respondInPieces(request, response, chunks, JSON_TYPE, { mayCompress: true });
    },

    async addActions(call: Call): Promise<void> {
      const { caller } = call;
      const actions = await nameDevice(await bodies.actions(call), call.params["device"]);
      await sendUploadResult(call, await apps.addActions(caller, appOf(caller), actions, clock()));
    },
  };
}

/** If the path names a device, actions that name none are of that device. */
async function nameDevice(
  actions: readonly UploadedAction[],
  device: string | undefined,
): Promise<readonly UploadedAction[]> {
  if (device === undefined) return actions;
  const named: UploadedAction[] = [];
  await forEachInTurns(actions, (action) => named.push(action.device === undefined ? { ...action, device } : action));
  return named;
}

/** Throws when access is revoked, unless there is nothing to show. */
async function* whileAllowed<Page extends readonly unknown[]>(
  { requireAccess }: Principal,
  pages: AsyncIterable<Page> | Iterable<Page>,
): AsyncGenerator<Page> {
  for await (const page of pages) {
    if (page.length > 0) await requireAccess();
    yield page;
  }
}

function createDeviceHandlers({ store, clock }: Services) {
  return {
    async list({ response, caller: { user } }: Call): Promise<void> {
      const [devices, { total }] = await Promise.all([
        store.apps.devices(user),
        store.page(user, { offset: 0, size: 1 }),
      ]);
      respond(response, 200, GPODDER, writeDevices(devices, total));
    },

    async save({ request, response, caller, maxBytes }: Call): Promise<void> {
      const changes = readDevice(await readJson(request, response, maxBytes));
      await store.apps.saveDevice(caller, appOf(caller), changes, clock());
      respondEmptyOk(response, GPODDER);
    },

    /** All devices share one list, so a POST that groups devices changes nothing. */
    async listGroups({ response, caller: { user } }: Call): Promise<void> {
      respond(response, 200, GPODDER, writeSyncGroups(await store.apps.devices(user)));
    },
  };
}

/** The simple API: whole lists in several formats. */
function createListHandlers({ apps, store, clock }: Services, bodies: AppBodyReaders) {
  const send = async (
    call: Call,
    write: (pages: ReturnType<typeof subscriptionBatches>) => AsyncGenerator<string>,
    headers: Readonly<Record<string, string>>,
  ) => {
    const { request, response, caller } = call;
    const pages = subscriptionBatches(store, caller.user, afterBatch(call));
    await respondInPieces(
      request,
      response,
      write(call.params.device === undefined ? pages : await apps.wholeList(caller, appOf(caller), pages, clock())),
      headers,
      { mayCompress: true },
    );
  };
  const replaceWith = async ({ response, caller }: Call, urls: readonly string[]) => {
    await apps.replaceFeeds(caller, appOf(caller), urls, clock());
    respondEmptyOk(response, GPODDER);
  };
  return {
    sendUrls: (call: Call) => send(call, (pages) => writeFeedList(pages, ({ feedUrl }) => feedUrl), JSON_TYPE),
    sendPodcasts: (call: Call) => send(call, (pages) => writeFeedList(pages, toPodcast), JSON_TYPE),
    sendLines: (call: Call) => send(call, writeFeedLines, TEXT),
    sendOpml: (call: Call) => {
      const file = () => writeOpml(opmlSourceOf(store, call.caller.user, afterBatch(call)), clock());
      return send(call, file, OPML);
    },
    replaceWithUrls: async (call: Call) => replaceWith(call, await bodies.feedList(call)),
    replaceWithLines: async (call: Call) => replaceWith(call, await bodies.feedLines(call)),
    async replaceWithOpml(call: Call): Promise<void> {
      const entries = await bodies.opml(call);
      const subscribed = entries.filter(({ skip }) => skip !== "unsubscribed-in-file");
      await replaceWith(
        call,
        subscribed.map(({ feedUrl }) => feedUrl),
      );
    },
  };
}
