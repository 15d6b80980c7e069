import { isObject } from "../util/is-object.ts";
import { type FoundActions, readAllActions } from "./action-pages.ts";
import { type Address, possibleServers } from "./address.ts";
import { ImportFailed, serverFailed } from "./failures.ts";
import { FoundFeeds } from "./feeds.ts";
import { type ImportLimits, type OtherServer, type Probe, requireDocument } from "./other-server.ts";
import type { Source } from "./source.ts";

/** Devices whose lists are read if there is no list of all. */
const MAX_DEVICES = 100;
/** Where oPodSync, which ignores devices, keeps the list if there is none. */
const ANY_DEVICE = "default";
/** Statuses of a path that a server does not have. PinePods has a page for every path. */
const MISSING = [400, 404, 405, 410, 501];

/** The gPodder API, version 2: gpodder.net, oPodSync, goPodder, PinePods, Earmark and others. */
export class GpodderSource implements Source {
  readonly kind = "gpodder";
  readonly #server: OtherServer;
  readonly #user: string;
  readonly #limits: ImportLimits;

  constructor(server: OtherServer, userName: string, limits: ImportLimits) {
    this.#server = server;
    this.#user = encodeURIComponent(userName);
    this.#limits = limits;
  }

  async find(address: Address): Promise<Probe> {
    let problem: ImportFailed | undefined;
    for (const possible of possibleServers(address)) {
      const probe = await this.#findAt(possible);
      if (probe.kind !== "absent") return probe;
      problem ??= probe.problem;
    }
    return { kind: "absent", problem };
  }

  async #findAt(address: Address): Promise<Probe> {
    const devices = await this.#server.probe(address, this.#path("devices"));
    const isList = devices.kind === "open" && Array.isArray(devices.response.document);
    if (isList || devices.kind === "sign-in-needed") return devices;
    // PinePods does not know the user without a session.
    const login = await this.#server.probe(address, this.#path("auth", "/login"), "POST");
    const problem = devices.kind === "absent" ? devices.problem : undefined;
    return login.kind === "sign-in-needed" ? login : { kind: "absent", problem };
  }

  /** Every server knows the password; PinePods needs the session for some paths. */
  async signIn(): Promise<void> {
    const { status } = await this.#server.request(this.#path("auth", "/login"), { method: "POST" });
    if (status === 401 || status === 403) throw new ImportFailed({ code: "import-sign-in-failed" });
    if (status >= 500 && status !== 501) throw serverFailed({ kind: "status", status });
  }

  async signOut(): Promise<void> {
    if (this.#server.hasSession) await this.#server.tidy(this.#path("auth", "/logout"), "POST");
  }

  async subscriptions(): Promise<FoundFeeds> {
    const feeds = new FoundFeeds(this.#limits.subscriptions);
    let isOpodsync = false;
    const response = await this.#server.request(`/subscriptions/${this.#user}.json`, {
      members: ["url", "feed"],
      onItems({ list, items }) {
        if (list !== "") return;
        for (const item of items) {
          isOpodsync ||= isObject(item) && !("url" in item) && "feed" in item;
          feeds.add(item, ["url", "feed"]);
        }
      },
    });
    const { status, document } = response;
    if (MISSING.includes(status) || (status === 200 && document === undefined)) return this.#ofAllDevices();
    if (!Array.isArray(requireDocument(response))) throw serverFailed({ kind: "malformed" });
    // Its list has feeds that were removed.
    if (isOpodsync) await this.#dropRemoved(feeds);
    return feeds;
  }

  async #ofAllDevices(): Promise<FoundFeeds> {
    const feeds = new FoundFeeds(this.#limits.subscriptions);
    const known = new Set<unknown>();
    for (const device of await this.#devices()) {
      const document = await this.#server.read(this.#changesOf(device), {
        onItems: ({ list, items }) => {
          for (const item of list === "add" ? items : []) {
            if (!known.has(item)) feeds.add(item);
            known.add(item);
          }
        },
      });
      if (!isObject(document) || !Array.isArray(document["add"])) throw serverFailed({ kind: "malformed" });
    }
    return feeds;
  }

  async #dropRemoved(feeds: FoundFeeds): Promise<void> {
    const listed = new Set<unknown>(feeds.urls);
    const removed = new Set<unknown>();
    const [device = ANY_DEVICE] = await this.#devices();
    await this.#server.read(this.#changesOf(device), {
      onItems: ({ list, items }) => {
        if (list === "remove") for (const item of items) if (listed.has(item)) removed.add(item);
      },
    });
    feeds.urls = feeds.urls.filter((url) => !removed.has(url));
  }

  async #devices(): Promise<readonly string[]> {
    const devices: string[] = [];
    const document = await this.#server.read(this.#path("devices"), {
      members: ["id"],
      onItems: ({ list, items }) => {
        if (list !== "") return;
        for (const item of items) if (isObject(item) && typeof item["id"] === "string") devices.push(item["id"]);
      },
    });
    if (!Array.isArray(document)) throw serverFailed({ kind: "malformed" });
    return devices.slice(0, MAX_DEVICES);
  }

  actions(onProgress: (found: number) => void): Promise<FoundActions> {
    const path = (since: number) => `${this.#path("episodes")}?since=${since}`;
    return readAllActions(this.#server, path, this.#limits.actions, onProgress);
  }

  #path(what: string, more = ""): string {
    return `/api/2/${what}/${this.#user}${more}.json`;
  }

  #changesOf(device: string): string {
    return `${this.#path("subscriptions", `/${encodeURIComponent(device)}`)}?since=0`;
  }
}
