import type { IncomingMessage } from "node:http";
import type { Accounts } from "../accounts.ts";
import type { Config } from "../config.ts";
import { failure } from "../errors.ts";
import type { MediaType } from "../jsonapi/media-type.ts";
import { isUuidLike } from "../jsonapi/resource.ts";
import type { SubscriptionStore } from "../subscriptions.ts";
import type { Access, Principal } from "./authenticate.ts";
import type { ReadClient } from "./client-address.ts";
import type { Request, Response } from "./exchange.ts";
import type { Metrics } from "./metrics.ts";

/** What routes are made of. */
export interface RouteOptions {
  readonly config: Config;
  readonly store: SubscriptionStore;
  readonly metrics: Metrics | undefined;
  /** Undefined on a server for one person. */
  readonly accounts: Accounts | undefined;
  readonly readClient: ReadClient;
  readonly clock: () => Date;
}

/** A path, and who may do what with it. */
export interface Offer {
  /** As it is in the documents: a part that varies has a colon before its name. */
  readonly url: string;
  readonly allow: string;
  readonly media: MediaType;
  readonly access: Readonly<Partial<Record<Method, Access>>>;
}

export type Handler = (request: Request, response: Response, who: Principal) => Promise<void>;
type Method = (typeof METHODS)[number];
const METHODS = ["GET", "POST", "PATCH", "DELETE"] as const;
type Handlers = Readonly<Partial<Record<Method, readonly [Access, Handler]>>>;
export type AddResource = (url: string, media: MediaType, handlers: Handlers) => void;

interface Place {
  readonly offer: Offer;
  readonly handlers: Handlers;
}

/** Every path that there is. At most the last part of one varies, so that two looks at a table find it. */
export class Routes {
  readonly offers: Offer[] = [];
  readonly #fixed = new Map<string, Place>();
  /** By what stands before the part that varies. */
  readonly #varying = new Map<string, Place>();

  /** A path, what can be done with it and by whom, and 405 for everything else. HEAD is GET without its body. */
  add(url: string, media: MediaType, handlers: Handlers): void {
    const allow = Object.keys(handlers)
      .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
      .join(", ");
    const access = Object.fromEntries(Object.entries(handlers).map(([method, [needed]]) => [method, needed]));
    const offer = { url, allow, media, access };
    this.offers.push(offer);
    const [before = "", name] = url.split("/:");
    if (name === undefined) this.#fixed.set(url, { offer, handlers });
    else this.#varying.set(before, { offer, handlers });
  }

  /** Undefined where there is nothing. */
  find(path: string): Offer | undefined {
    return this.#find(path)?.place.offer;
  }

  /** Who may do what the request asks for, and who does it. The request gets what stands for the part that varies. */
  match(request: Request): readonly [Access, Handler] {
    const found = this.#find(pathOf(request.raw));
    if (found === undefined) throw failure(isReadable(pathOf(request.raw)) ? "unknown-path" : "malformed-target");
    const { offer, handlers } = found.place;
    const asked = request.method === "HEAD" ? "GET" : request.method;
    const method = METHODS.find((known) => known === asked);
    const offered = method && handlers[method];
    if (offered === undefined)
      throw failure("method-not-allowed", { methods: offer.allow, headers: { allow: offer.allow } });
    request.parameter = found.parameter;
    return offered;
  }

  #find(path: string): { readonly place: Place; readonly parameter: string } | undefined {
    if (!isReadable(path)) return undefined;
    const fixed = this.#fixed.get(path.includes("%") ? decodeURI(path) : path);
    if (fixed !== undefined) return { place: fixed, parameter: "" };
    const slash = path.lastIndexOf("/");
    const parameter = decodeURIComponent(path.slice(slash + 1));
    const varying = parameter === "" ? undefined : this.#varying.get(decodeURI(path.slice(0, slash)));
    return varying && { place: varying, parameter };
  }
}

/** Whether it is percent-encoded UTF-8. */
function isReadable(path: string): boolean {
  if (!path.includes("%")) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** A target in absolute form means the same as its path (RFC 9112, 3.2.2), and without one the root. */
export function relativeTo(target: string): string {
  if (target.startsWith("/")) return target;
  return target.replace(/^https?:\/\/[^/?#]*(?=[/?#]|$)/i, "").replace(/^(?!\/)/, "/");
}

/** Of the target, below the base path. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}

export function queryOf({ raw: { url = "" } }: Request): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}

export function idOf(request: Request): string {
  const { parameter: id } = request;
  if (isUuidLike(id)) return id.toLowerCase();
  throw failure("invalid-id");
}
