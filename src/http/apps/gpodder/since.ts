import { failure } from "../../../errors/catalog.ts";

/** The query parameter `since`, a Unix time in seconds; 0 means from the beginning. Ignores other parameters. */
export function readSince(query: string): number {
  const text = new URLSearchParams(query).get("since")?.trim() ?? "";
  if (text === "") return 0;
  if (!/^\d{1,15}(\.\d*)?$/.test(text))
    throw failure("invalid-query", { parameter: "since", reason: "must be a Unix time in seconds, or 0" });
  return Math.floor(Number(text));
}
