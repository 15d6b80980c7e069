import { createHash } from "node:crypto";
import { writeAtom } from "../../alerts/atom.ts";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import type { Link, LinkKind } from "../../links/link-store.ts";
import { isSecret } from "../../links/new-secret.ts";
import { sharedBatches, shareOf, toOpmlBatches } from "../../links/shared-list.ts";
import { writeOpml } from "../../opml/write.ts";
import { preferredLanguage } from "../../util/languages.ts";
import { readAlerts } from "../api/alerts.ts";
import { etagOf, matchesEtag } from "../api/changes.ts";
import { OPML_TYPE } from "../api/imports.ts";
import type { Services } from "../api/services.ts";
import { downloadOf, respondContent, respondInPieces, respondUnchanged } from "../wire/respond.ts";
import { anyQuery, type Call, costOfEverything, type Route, route } from "../wire/router.ts";
import { createLinkLimits } from "./link-limits.ts";
import { writeGonePage, writeListPage } from "./list-page.ts";
import { POLICY } from "./page-style.ts";

const HTML = "text/html; charset=utf-8";
const ATOM = "application/atom+xml; charset=utf-8";
/** No search engine lists what a link shows. `Referrer-Policy` is in every response. */
const NO_INDEX = { "x-robots-tag": "noindex, nofollow" } as const;
const PAGE_HEADERS = { ...NO_INDEX, "content-security-policy": POLICY, "cross-origin-opener-policy": "same-origin" };
/** A browser that has seen a cover may keep it for a day; nobody else may. */
const COVER_HEADERS = { ...NO_INDEX, "cache-control": "private, max-age=86400" } as const;
const COVER = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-(small|large)\.webp$/;

type Show = (call: Call, link: Link) => Promise<void>;

/** What secret links show, below `/l/`: to anyone who has one, without signing in. */
export function linkRoutes(services: Services): Route[] {
  const { store, readPeer, limiterClock } = services;
  const limit = createLinkLimits(limiterClock);
  const list = createListViews(services);
  const alerts = createAlertsView(services);
  /** By kind of link and ending of the path. */
  const VIEWS: Readonly<Record<LinkKind, Readonly<Record<string, Show>>>> = {
    list: { "": list.page, ".opml": list.opml },
    alerts: { "": alerts, ".atom": alerts },
  };
  const find = async (secret: string) => (isSecret(secret) ? store.links.find(secret) : undefined);

  const show = async (call: Call) => {
    const { request, response, params } = call;
    limit("pages", readPeer(request.raw).networks);
    const [, secret = "", ending = ""] = /^([^.]*)(.*)$/s.exec(params["name"] ?? "") ?? [];
    const link = await find(secret);
    const view = link && VIEWS[link.kind][ending];
    if (link !== undefined && view !== undefined) return view(call, link);
    const language = preferredLanguage(request.headers["accept-language"]);
    respondContent(response, HTML, writeGonePage(language), PAGE_HEADERS, 404);
  };
  const showCover = async ({ request, response, params }: Call) => {
    limit("covers", readPeer(request.raw).networks);
    const link = await find(params["secret"] ?? "");
    const [, id = "", size = ""] = COVER.exec(params["image"] ?? "") ?? [];
    const bytes = link?.kind === "list" ? await list.cover(link, id, size === "large" ? "large" : "small") : undefined;
    if (bytes === undefined) throw failure("unknown-path", { headers: NO_INDEX });
    respondContent(response, "image/webp", Buffer.from(bytes), COVER_HEADERS);
  };
  const declared = { access: "open", ignoresAccept: true, query: anyQuery } as const;
  return [
    route("GET", "/l/:name", { ...declared, cost: costOfEverything, run: show }),
    route("GET", "/l/:secret/covers/:image", { ...declared, run: showCover }),
  ];
}

/** To be called after each batch of the list: a link that was revoked meanwhile shows no more. */
function afterBatch({ store }: Services, { request }: Call, { secret }: Link): () => Promise<void> {
  return async () => {
    await request.step();
    if ((await store.links.find(secret)) === undefined) throw failure("unknown-path");
  };
}

/** The view of links to alerts. */
function createAlertsView(services: Services): Show {
  return async (call, link) => {
    const { request, response } = call;
    const alerts = await readAlerts(services, link.user, afterBatch(services, call, link));
    const feed = writeAtom({ ...link, serverUrl: services.serverUrlOf(request.raw) }, alerts);
    const tag = etagOf(createHash("sha256").update(feed).digest("base64url").slice(0, 22));
    if (matchesEtag(request, tag)) respondUnchanged(response, { ...NO_INDEX, ...tag });
    else respondContent(response, ATOM, feed, { ...NO_INDEX, ...tag });
  };
}

/** Views of links to lists. */
function createListViews(services: Services) {
  const { store, clock } = services;
  const read = (call: Call, link: Link) => sharedBatches(store, link.user, link, afterBatch(services, call, link));
  return {
    async page(call: Call, link: Link): Promise<void> {
      // The fragment does not reach the server again, nor its log.
      const addUrl = (await isMember(services, call)) ? `../#import=${link.secret}` : undefined;
      const page = writeListPage(link, read(call, link), addUrl);
      const headers = { ...PAGE_HEADERS, "content-type": HTML };
      await respondInPieces(call.request, call.response, page, headers, { mayCompress: true });
    },

    async opml(call: Call, link: Link): Promise<void> {
      const source = { batches: toOpmlBatches(read(call, link)), find: async () => [] };
      const headers = { ...NO_INDEX, ...downloadOf(OPML_TYPE, "podcasts.opml") };
      await respondInPieces(call.request, call.response, writeOpml(source, clock(), link.title), headers);
    },

    /** Only of what the link shares. */
    async cover(link: Link, id: string, size: "small" | "large"): Promise<Uint8Array | undefined> {
      const [subscription] = id === "" ? [] : await store.find(link.user, [{ kind: "id", id }]);
      if (subscription === undefined) return undefined;
      const [podcast] = await store.podcasts.find([subscription.feedUrl]);
      if (podcast?.artwork === undefined || shareOf(link, subscription, podcast) === undefined) return undefined;
      return store.podcasts.artwork(link.user, podcast.id, podcast.artwork, size);
    },
  };
}

/** Whether the request comes from somebody who is signed in here. */
async function isMember({ accounts, authenticate }: Services, { request }: Call): Promise<boolean> {
  if (accounts === undefined) return false;
  try {
    await authenticate(request.raw, "account");
    return true;
  } catch (error) {
    if (error instanceof RequestFailure) return false;
    throw error;
  }
}
