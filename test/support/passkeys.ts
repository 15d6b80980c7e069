import { Authenticator } from "./authenticator.ts";
import { callServer } from "./server.ts";

/** What a browser that is signed in with these headers returns for a new passkey. */
export async function createPasskey(port: number, headers: Readonly<Record<string, string>>): Promise<object> {
  const { status, json, text } = await callServer(port, "GET", "/v1/passkey-options/registration", { headers });
  if (status !== 200) throw new Error(text);
  const { challenge, rp } = json.meta.options;
  return new Authenticator().create({
    challenge,
    host: rp.id,
    origin: `http://${headers["Host"] ?? `127.0.0.1:${port}`}`,
  });
}
