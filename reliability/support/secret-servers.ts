import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { newToken, signUp } from "../../test/support/accounts.ts";
import { listen } from "../../test/support/listen.ts";
import { type RunningServer, start } from "../../test/support/process.ts";
import { callServer } from "../../test/support/server.ts";
import { baseHeaders, type Person } from "./secret-asks.ts";
import { assertWithout, canary, type Headers, keep } from "./secret-search.ts";

export const METRICS_TOKEN = keep(`metrics.${randomBytes(16).toString("hex")}`, "the token of metrics");

export async function startVerbose(settings: Headers): Promise<RunningServer> {
  return start({
    EARMARK_ACCOUNTS: "true",
    EARMARK_SIGN_UP: "true",
    EARMARK_ADMIN_USER: canary("EARMARK_ADMIN_USER"),
    EARMARK_ADMIN_PASSWORD: canary("EARMARK_ADMIN_PASSWORD"),
    EARMARK_LOG_LEVEL: "debug",
    EARMARK_METRICS: "true",
    EARMARK_METRICS_TOKEN: METRICS_TOKEN,
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    EARMARK_CORS_ORIGINS: "https://app.example",
    ...settings,
  });
}

/** Someone who has an account, a session and a token, whose secrets are canaries as well. */
export async function makePerson(port: number): Promise<Person> {
  const [name, agent, label] = [canary("name"), canary("User-Agent"), canary("label of a token")];
  const person = await signUp(port, name, canary("password"), baseHeaders(agent));
  keep(person.session, "the secret of a session");
  const { token } = await newToken(port, person, { label, scope: "write" });
  return { ...person, agent, label, token: keep(token, "a token") };
}

export interface Line {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly type: string; readonly message: string };
}

/** Stops the server, and gives every line of its log: each an object, and without a secret. */
export async function readLog(server: RunningServer): Promise<Line[]> {
  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 0, server.output());
  const output = server.output();
  assertWithout(output, "the log");
  const lines = output.trim().split("\n");
  const parsed = lines.map((line) => JSON.parse(line) as Line);
  const members =
    /^(level|time|pid|hostname|msg|reqId|method|route|status|ms|omitted|err|url|database|version|signal|client|way)$/;
  for (const line of parsed) for (const key of Object.keys(line)) assert.match(key, members);
  return parsed;
}

export async function assertMetricsWithout(port: number): Promise<void> {
  const { status, text } = await callServer(port, "GET", "/metrics", {
    headers: { Authorization: `Bearer ${METRICS_TOKEN}` },
  });
  assert.equal(status, 200);
  assert.match(text, /route="\/v1\/tokens\/:id"/);
  assertWithout(text, "the metrics");
}

/** An identity provider, and JWTs that it has signed or that claim so. */
export async function startProvider() {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" }] };
  const issuer: string = await listen((request, response) => {
    const isDiscovery = request.url?.startsWith("/.well-known/") === true;
    response.end(JSON.stringify(isDiscovery ? { issuer, jwks_uri: `${issuer}/keys` } : keys));
  });
  const sign = async (claims: Record<string, unknown>, header: Record<string, string> = {}) => {
    const all = { iss: issuer, aud: "earmark", sub: canary("sub"), [canary("claim")]: canary("value"), ...claims };
    const jwt = new SignJWT(all).setProtectedHeader({ alg: "ES256", kid: "1", ...header }).setIssuedAt();
    return jwt.setExpirationTime("1h").sign(privateKey);
  };
  const write = (header: object, claims: object) =>
    [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  /** None of these is accepted. */
  const wrong = async () => [
    await sign({ aud: canary("aud") }),
    await sign({ iss: canary("iss") }),
    await sign({ sub: [canary("sub")] }),
    await sign({ sub: canary("long sub").repeat(20) }),
    await sign({}, { typ: canary("typ") }),
    await sign({}, { kid: canary("kid") }),
    await sign({ aud: canary("aud") }, { cty: canary("cty"), jku: `http://${canary("jku")}.example` }),
    `${write({ alg: "none" }, { sub: canary("sub") })}.${canary("signature")}`,
    `${write({ alg: canary("alg"), kid: "1" }, { sub: canary("sub") })}.${canary("signature")}`,
    `${write({ alg: "ES256", kid: "1" }, { iss: issuer, sub: canary("sub") })}.${canary("signature")}`,
    `${canary("header")}.${canary("claims")}.${canary("signature")}`,
  ];
  return { issuer, sign, wrong };
}
