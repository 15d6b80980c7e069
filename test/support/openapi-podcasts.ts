import type { Case } from "./sign-in-cases.ts";

/** Requests about a podcast at the path `self`. */
export function podcastCases(self: string, image: string): readonly Case[] {
  const html = { Accept: "text/html" };
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
  ];
}
