import { ATOMIC, type CallOptions, startServer } from "./server.ts";

export const server = await startServer();

let feeds = 0;
/** A URL that no list has. */
export function newFeed(): string {
  feeds += 1;
  return `https://feeds.example/${feeds}`;
}

export function post(body: CallOptions["body"], headers: CallOptions["headers"] = {}, path = "/v1/operations") {
  return server.call("POST", path, {
    headers: { "Content-Type": ATOMIC, Accept: ATOMIC, ...headers },
    ...(body === undefined ? {} : { body }),
  });
}

export async function total(): Promise<number> {
  return (await server.call("GET", "/v1/subscriptions")).json.meta.total;
}
