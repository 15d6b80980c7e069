import { stepAt, totpCode } from "../../src/accounts/totp.ts";
import { callServer } from "./server.ts";

/** What the page sends to add an authenticator app: a ticket, and the code of the app at this time. */
export async function createSecondFactor(
  port: number,
  headers: Readonly<Record<string, string>>,
  at: Date,
): Promise<{ readonly ticket: string; readonly one_time_code: string }> {
  const { status, json, text } = await callServer(port, "GET", "/v1/second-factor/enrollment", { headers });
  if (status !== 200) throw new Error(text);
  return { ticket: json.meta.ticket, one_time_code: totpCode(json.meta.secret, stepAt(at)) };
}
