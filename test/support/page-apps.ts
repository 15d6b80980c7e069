import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { server } from "./page-accounts.ts";
import type { HttpResponse, TestServer } from "./server.ts";
import { en } from "./words.ts";

export interface App {
  readonly user: string;
  readonly password: string;
  readonly userAgent?: string;
}

/** Sends a request as an app does. */
export function callAs(
  { user, password, userAgent = "AntennaPod/3.9.0" }: App,
  method: string,
  path: string,
  body?: object,
  { call }: Pick<TestServer, "call"> = server,
): Promise<HttpResponse> {
  const Authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  const headers = { Authorization, "User-Agent": userAgent };
  return call(method, path, body === undefined ? { headers } : { headers, body: JSON.stringify(body) });
}

/** Signs in, creates the device and uploads the feeds, as an app of the gPodder API does when it is connected. */
export async function syncDevice(
  app: App,
  device: { readonly id: string; readonly caption: string; readonly feeds?: readonly string[] },
  target: Pick<TestServer, "call"> = server,
): Promise<void> {
  const name = encodeURIComponent(app.user);
  const send = async (path: string, body?: object) => {
    const { status, text } = await callAs(app, "POST", path, body, target);
    assert.equal(status, 200, `${path}: ${text}`);
  };
  await send(`/api/2/auth/${name}/login.json`);
  await send(`/api/2/devices/${name}/${device.id}.json`, { caption: device.caption, type: "mobile" });
  if (device.feeds) await send(`/api/2/subscriptions/${name}/${device.id}.json`, { add: device.feeds, remove: [] });
}

/** An app asks for access: where it sends the user, and how it asks whether it was allowed. */
export async function startLogin(userAgent: string | undefined) {
  const headers = userAgent === undefined ? {} : { "User-Agent": userAgent };
  const { status, json } = await server.call("POST", "/index.php/login/v2", { headers });
  assert.equal(status, 200);
  const token = new URLSearchParams({ token: json.poll.token }).toString();
  return {
    link: json.login as string,
    poll: () => server.call("POST", new URL(json.poll.endpoint).pathname, { headers, body: token }),
  };
}

/** Makes the page look for devices at once. */
export async function returnToTab(page: Page): Promise<void> {
  await page.evaluate(`document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))`);
}

/** The values that the guide shows to be typed, by their labels in the app. */
export async function valuesToType(page: Page): Promise<Record<string, string>> {
  const fields = await page.locator(".steps .field:has(code)").all();
  return Object.fromEntries(
    await Promise.all(
      fields.map(async (each) => [
        (await each.locator(".label").textContent()) ?? "",
        (await each.locator("code").textContent()) ?? "",
      ]),
    ),
  );
}

export const deviceItem = (page: Page, caption: string) =>
  page.getByRole("region", { name: en.apps.devices }).getByRole("listitem").filter({ hasText: caption });
export const tokenItem = (page: Page, label: string) =>
  page.getByRole("region", { name: en.apps.tokens }).getByRole("listitem").filter({ hasText: label });
