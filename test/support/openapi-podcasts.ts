import { document } from "./accounts.ts";
import { PLAIN } from "./server.ts";
import type { Case, Headers } from "./sign-in-cases.ts";

type InvalidDocuments = (name: string, headers: Headers) => readonly Case[];

/** Requests about a podcast at the path `self`. */
export function podcastCases(self: string, image: string): readonly Case[] {
  const html = { Accept: "text/html" };
  const retry = "POST /v1/podcasts/retry";
  const [artwork, refresh] = ["GET /v1/podcasts/{id}/artwork/{image}", "POST /v1/podcasts/{id}/refresh"];
  return [
    ["GET /v1/podcasts/{id}", 200, {}, undefined, self],
    ["GET /v1/podcasts/{id}", 304, { "If-None-Match": "*" }, undefined, self],
    ["GET /v1/podcasts/{id}", 400, {}, undefined, "/v1/podcasts/1"],
    ["GET /v1/podcasts/{id}", 404, {}],
    ["GET /v1/podcasts/{id}", 406, html, undefined, self],
    [artwork, 200, {}, undefined, `${self}/artwork/${image}-160.webp`],
    [artwork, 400, {}, undefined, `${self}/artwork/${image}-160.webp?x`],
    [artwork, 404, {}, undefined, `${self}/artwork/${image.replace("0", "1")}-160.webp`],
    [refresh, 202, {}, undefined, `${self}/refresh`],
    [refresh, 400, {}, undefined, "/v1/podcasts/1/refresh"],
    [refresh, 404, {}],
    [refresh, 406, html, undefined, `${self}/refresh`],
    [retry, 202, {}],
    [retry, 400, {}, undefined, "/v1/podcasts/retry?x=1"],
    [retry, 406, html],
  ];
}

/** Requests about the group of duplicates with this id. */
export function duplicateCases(id: string): readonly Case[] {
  const html = { Accept: "text/html" };
  const [list, dismiss, self] = ["GET /v1/duplicates", "DELETE /v1/duplicates/{id}", `/v1/duplicates/${id}`];
  return [
    [list, 200, {}, undefined, "/v1/duplicates?page[size]=1"],
    [list, 400, {}, undefined, "/v1/duplicates?page[size]=0"],
    [list, 406, html],
    [dismiss, 400, {}, undefined, "/v1/duplicates/1"],
    [dismiss, 404, {}],
    [dismiss, 406, html, undefined, self],
    [dismiss, 204, {}, undefined, self],
  ];
}

/** Searches a directory for podcasts. */
export function podcastSearchCases(invalidDocuments: InvalidDocuments): readonly Case[] {
  const search = "POST /v1/podcast-searches";
  const plain = { "Content-Type": PLAIN };
  return [
    [search, 200, plain, document("podcast-search", { query: "show" })],
    [search, 409, plain, document("search", { query: "show" })],
    [search, 422, plain, document("podcast-search", { query: "" })],
    ...invalidDocuments(search, plain),
  ];
}

/** Searches for the feeds of a page at `url`. */
export function searchCases(url: string, invalidDocuments: InvalidDocuments): readonly Case[] {
  const search = "POST /v1/feed-searches";
  const plain = { "Content-Type": PLAIN };
  const body = (of: string) => document("feed-search", { url: of });
  return [
    [search, 200, plain, body(url)],
    [search, 409, plain, document("feed", { url })],
    [search, 422, plain, body("ftp://a.example/")],
    [search, 422, plain, body("http://127.0.0.1:22/")],
    ...invalidDocuments(search, plain),
  ];
}
