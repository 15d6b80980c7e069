import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from "jose";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { createJwtVerifier, type JwtVerifierOptions } from "../../src/http/auth/jwt-verifier.ts";

export const AUDIENCE = "https://earmark.example/";
export const DISCOVERY = "/.well-known/openid-configuration";
export const NOW = new Date();
/** A JWT timestamp, in seconds from now. */
export const at = (seconds: number) => Math.floor(NOW.getTime() / 1_000) + seconds;
export const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000);

export type Pair = Awaited<ReturnType<typeof generateKeyPair>> & { readonly alg: string; readonly jwk: JWK };

export async function newKey(alg = "ES256"): Promise<Pair> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, alg, jwk: { ...(await exportJWK(pair.publicKey)), kid: randomUUID() } };
}

export type Respond = (response: ServerResponse) => void;

export const json =
  (document: unknown): Respond =>
  (response) =>
    void response.end(JSON.stringify(document));

/** An issuer whose responses can be changed at any time, and which can stop and start again. */
export async function startIssuer() {
  const key = await newKey();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    response.setHeader("connection", "close");
    const respond = issuer.responses[request.url ?? ""];
    if (respond === undefined) response.writeHead(404).end();
    else respond(response);
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  after(stop);
  const claims = { iss: url, aud: AUDIENCE, sub: "alice", iat: at(0), exp: at(600) };
  const issuer = {
    url,
    key,
    requests,
    responses: {
      [DISCOVERY]: json({ issuer: url, jwks_uri: `${url}/keys` }),
      "/keys": json({ keys: [key.jwk] }),
    } as Record<string, Respond>,
    /** Undefined removes a claim or a part of the header. */
    sign: (
      { alg, jwk, privateKey }: Pair,
      changes: Record<string, unknown> = {},
      header: Record<string, unknown> = {},
    ) =>
      new SignJWT({ ...claims, ...changes })
        .setProtectedHeader({ alg, kid: jwk.kid, ...header } as JWTHeaderParameters)
        .sign(privateKey),
    stop,
    start: () => listen(port),
  };
  return issuer;
}

/** An issuer with which logins can be started, but not finished. Returns its URL. */
export async function startDiscovery(): Promise<string> {
  const { url, responses } = await startIssuer();
  responses[DISCOVERY] = (response) => {
    response.setHeader("content-type", "application/json");
    json({ issuer: url, authorization_endpoint: `${url}/auth` })(response);
  };
  return url;
}

/** A verifier for an issuer, with all errors that it reported. */
export function verifierFor(issuer: string, options: Partial<JwtVerifierOptions> = {}) {
  const reported: unknown[] = [];
  const verifier = createJwtVerifier({
    issuer,
    audience: AUDIENCE,
    onError: (error) => reported.push(error),
    ...options,
  });
  return { reported, verify: (jwt: string, now = NOW) => verifier(jwt, now) };
}

export const isUnavailable = (error: unknown) => {
  assert.ok(error instanceof RequestFailure);
  assert.deepEqual(error.error, {
    status: 503,
    code: "identity-provider-unavailable",
    title: "Service Unavailable",
    detail: "The identity provider is unavailable. Nothing was changed; try again.",
  });
  assert.deepEqual(error.headers, { "retry-after": "5" });
  return true;
};
