import type { PageQuery } from "./query.ts";

/** The links of one page of a collection. Brackets are left unencoded, as in docs/api.md. */
export function writeLinks(path: string, { number, size }: PageQuery, total: number, extraQuery = ""): string {
  const last = Math.max(1, Math.ceil(total / size));
  const link = (page: number) => JSON.stringify(`${path}?page[number]=${page}&page[size]=${size}${extraQuery}`);
  const prev = number === 1 || total === 0 ? "null" : link(Math.min(number - 1, last));
  const next = number >= last ? "null" : link(number + 1);
  return `{"self":${link(number)},"first":${link(1)},"prev":${prev},"next":${next},"last":${link(last)}}`;
}
