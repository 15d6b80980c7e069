import { createState } from "../state/state.ts";

/** Which part of the history is shown: one set of changes, or a page of the list of all. */
interface Place {
  readonly id: string | undefined;
  readonly page: number;
}

const PLACE = /^#history(?:\/(\d+)|\?page=(\d+))?$/;

function readPlace(): Place {
  const [, id, page = "1"] = PLACE.exec(location.hash) ?? [];
  return { id, page: Number(page) };
}

export const place = createState(readPlace());
addEventListener("hashchange", () => place.set(readPlace()));

export const linkTo = (id: string) => `#history/${id}`;

export function showPage(page: number): void {
  location.hash = page === 1 ? "history" : `history?page=${page}`;
}
