import { document } from "./accounts.ts";
import { PLAIN } from "./server.ts";
import type { Case, Headers } from "./sign-in-cases.ts";

/** Requests about links and alerts, of somebody who has a link with this id. */
export function linkCases(
  id: string,
  session: Headers,
  invalidDocuments: (name: string, headers: Headers) => readonly Case[],
): readonly Case[] {
  const html = { ...session, Accept: "text/html" };
  const typed = { ...session, "Content-Type": PLAIN };
  const body = document("link", { kind: "list" });
  const [create, self] = ["POST /v1/links", `/v1/links/${id}`];
  return [
    [create, 201, typed, body],
    [create, 200, typed, body, "/v1/links?dryRun=true"],
    [create, 409, typed, document("token", { kind: "list" })],
    [create, 422, typed, document("link", { kind: "feed" })],
    ...invalidDocuments(create, typed),
    ["GET /v1/links", 200, session, undefined, "/v1/links?page[size]=1"],
    ["GET /v1/links", 400, session, undefined, "/v1/links?page[size]=0"],
    ["GET /v1/links", 406, html],
    ["GET /v1/links/{id}", 200, session, undefined, self],
    ...["GET", "DELETE"].flatMap((method): Case[] => [
      [`${method} /v1/links/{id}`, 400, session, undefined, "/v1/links/1"],
      [`${method} /v1/links/{id}`, 404, session],
      [`${method} /v1/links/{id}`, 406, html, undefined, self],
    ]),
    ["DELETE /v1/links/{id}", 204, session, undefined, self],
    ["GET /v1/alerts", 200, session, undefined, "/v1/alerts?language=zh"],
    ["GET /v1/alerts", 400, session, undefined, "/v1/alerts?language=pt"],
    ["GET /v1/alerts", 406, html],
  ];
}
