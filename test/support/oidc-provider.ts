import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { exportJWK } from "jose";
import { newKey } from "./oidc-issuer.ts";

/** The part of the oidc-provider package that tests use; it has no types. */
interface OidcProvider {
  readonly Provider: new (issuer: string, configuration: object) => { callback(): RequestListener };
}

export const CLIENT = { id: "app", secret: "secret" } as const;

/** Cookies and requests like those of a browser that follows no redirects by itself. */
export class Browser {
  readonly cookies = new Map<string, string>();

  /** Cookies are kept by host and port, unlike in a real browser, so that providers and servers do not mix them up. */
  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(url);
    const own = [...this.cookies].filter(([key]) => key.startsWith(`${host} `));
    const cookie = own.map(([key, value]) => `${key.slice(host.length + 1)}=${value}`).join("; ");
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === "" ? {} : { cookie }) };
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/; max-age=0/i.test(line)) this.cookies.delete(`${host} ${name}`);
      else this.cookies.set(`${host} ${name}`, value);
    }
    return response;
  }

  /** Signs in at the provider and consents. Returns the URL that the provider redirects to, without opening it. */
  async logIn(authorizationUrl: string, back: string, login: string): Promise<string> {
    const forms: Record<string, string>[] = [{ prompt: "login", login, password: "any" }, { prompt: "consent" }];
    let next = authorizationUrl;
    for (let hops = 0; !next.startsWith(back); hops += 1) {
      assert.ok(hops < 10, next);
      const form = next.includes("/interaction/") ? forms.shift() : undefined;
      const response = await this.send(next, form && { method: "POST", body: new URLSearchParams(form) });
      const location = response.headers.get("location");
      assert.ok(location, await response.text());
      next = new URL(location, next).href;
    }
    return next;
  }
}

/** Listens for a certified third-party provider, which `configure` starts once its clients are known. */
export async function listenForProvider() {
  const name: string = "oidc-provider";
  const { Provider }: OidcProvider = await import(name);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await newKey("RS256");
  const configure = async (redirectUris: readonly string[], more: object = {}) => {
    const grants = ["client_credentials", "authorization_code"];
    const client = { client_id: CLIENT.id, client_secret: CLIENT.secret, grant_types: grants };
    const provider = new Provider(url, {
      jwks: { keys: [{ ...(await exportJWK(privateKey)), use: "sig", alg: "RS256" }] },
      clients: [{ ...client, redirect_uris: redirectUris }],
      features: { clientCredentials: { enabled: true } },
      // Equal to the defaults, which print warnings if they are not set.
      findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
      ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      ...more,
    });
    server.removeAllListeners("request");
    server.on("request", provider.callback());
  };
  return { url, configure };
}
