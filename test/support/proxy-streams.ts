import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { subscription } from "./browser-requests.ts";
import { followEvents } from "./events.ts";
import { ca, call } from "./proxy-examples.ts";
import { newId, PLAIN } from "./server.ts";

/** nginx waits this long for the next part of a response by default. */
const NGINX_TIMEOUT_MS = 60_000;

/** Follows an event stream through a proxy, also after a long silence. */
export async function watchEvents(port: number, base: string, Cookie: string): Promise<void> {
  const headers = { Host: `localhost:${port}`, Accept: "text/event-stream", Cookie };
  const address = { host: "127.0.0.1", servername: "localhost", ca, port, path: `${base}/v1/events` };
  const [response] = await once(request({ ...address, headers, agent: false }).end(), "response");
  const stream = await followEvents(response);
  const change = async () => {
    const options = { headers: { Cookie, "Content-Type": PLAIN }, body: subscription(newId()) };
    return (await call(port, "POST", `${base}/v1/subscriptions`, options)).json.meta.state;
  };
  await stream.until(await change());
  await sleep(NGINX_TIMEOUT_MS + 2_000);
  await stream.until(await change());
  assert.equal(stream.states.length, 3);
  stream.close();
}

/** Sends a request over HTTP/2. */
export async function useHttp2(origin: string, base: string, cookie: string): Promise<void> {
  const session = connect(origin, { ca });
  const stream = session.request({ ":path": `${base}/v1/me`, cookie });
  const [headers] = await once(stream, "response");
  let text = "";
  for await (const chunk of stream) text += chunk;
  session.close();
  assert.equal(headers[":status"], 200);
  assert.equal(JSON.parse(text).data.links.self, `${base}/v1/me`);
}
