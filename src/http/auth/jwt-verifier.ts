import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey, RemoteJWKSet } from "jose";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { isObject } from "../../util/is-object.ts";
import { readBounded } from "../wire/read-bounded.ts";

/** The user that a JWT identifies. */
interface VerifiedJwt {
  readonly subject: string;
  readonly issuedAt: Date;
}

/**
 * Returns undefined if the JWT is invalid. Throws RequestFailure 503 if the provider is unavailable, so that the JWT cannot
 * be verified.
 */
export type VerifyJwt = (jwt: string, now: Date) => Promise<VerifiedJwt | undefined>;

export interface JwtVerifierOptions {
  readonly issuer: string;
  readonly audience: string;
  /** Called with errors of the provider, for the log: at most once per cool-down, never with any part of a JWT. */
  readonly onError?: (error: unknown) => void;
  /** Minimum time between requests to the provider after a failure or after fetching its keys. */
  readonly cooldownMs?: number;
  /** Timeout of one request to the provider. */
  readonly timeoutMs?: number;
  /** Keys are fetched again after this time, so that keys the provider has withdrawn stop working. */
  readonly maxAgeMs?: number;
}

const MAX_JWT_LENGTH = 8 * 1024;
/** Rejects encrypted JWTs, which have five parts, and unsigned ones, whose last part is empty. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** No symmetric algorithms: anyone could sign with a public key of the provider as the secret. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** Access tokens and ID tokens. Providers also sign other JWTs, such as logout tokens. */
const TYPES = /^(application\/)?(at\+)?jwt$/i;
/** Allowed clock skew between the provider and this server. */
const CLOCK_TOLERANCE_S = 30;
/** Limit of the OpenID Connect specification. */
const MAX_SUBJECT_LENGTH = 255;
/** Includes lone surrogates: UTF-8 encodes all of them the same, so different users would share an account. */
const INVALID_IN_SUBJECT = /[\p{Cc}\p{Cs}]/u;
/** Real documents are a few KiB. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Accepts access tokens and ID tokens of one identity provider. Its keys are fetched when first needed. */
export function createJwtVerifier({
  issuer,
  audience,
  onError,
  cooldownMs = 5_000,
  timeoutMs = 3_000,
  maxAgeMs = 600_000,
}: JwtVerifierOptions): VerifyJwt {
  const provider = { issuer, cooldownMs, timeoutMs, maxAgeMs };
  let reportedAt = Number.NEGATIVE_INFINITY;
  // A bad key causes an error for every JWT that names it, and anyone can send those.
  const report = (error: unknown) => {
    if (performance.now() < reportedAt + cooldownMs) return;
    reportedAt = performance.now();
    onError?.(error);
  };
  const keyFor = createKeyFinder(provider, report);

  return async (jwt, now) => {
    if (jwt.length > MAX_JWT_LENGTH || !JWT.test(jwt)) return undefined;
    // Loaded on demand, because most servers have no identity provider.
    const { errors, jwtVerify } = await import("jose");
    try {
      const { payload, protectedHeader } = await jwtVerify(jwt, keyFor, {
        algorithms: ALGORITHMS,
        issuer,
        audience,
        requiredClaims: ["exp", "iat", "sub"],
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: now,
      });
      return TYPES.test(protectedHeader.typ ?? "JWT") ? readClaims(payload, now) : undefined;
    } catch (error) {
      if (error instanceof RequestFailure) throw error;
      // Other errors mean an unusable key. They are safe to log; errors about a JWT contain its claims.
      if (!(error instanceof errors.JOSEError) || error instanceof errors.JWKSInvalid) report(error);
      return undefined;
    }
  };
}

function readClaims({ sub, iat }: JWTPayload, now: Date): VerifiedJwt | undefined {
  if (!isSubject(sub)) return undefined;
  const issuedAt = new Date((iat ?? Number.NaN) * 1_000);
  // A JWT issued in the future would count as a recent sign-in for too long. Also rejects invalid dates.
  if (!(issuedAt.getTime() <= now.getTime() + CLOCK_TOLERANCE_S * 1_000)) return undefined;
  return { subject: sub, issuedAt };
}

export function isSubject(sub: unknown): sub is string {
  return typeof sub === "string" && sub !== "" && sub.length <= MAX_SUBJECT_LENGTH && !INVALID_IN_SUBJECT.test(sub);
}

type Provider = Readonly<Record<"cooldownMs" | "timeoutMs" | "maxAgeMs", number>> & { readonly issuer: string };

/**
 * Finds the key that a JWT names. Compared with plain `jose`, it does not fetch again for every JWT after a failure, and it
 * keeps expired keys while the provider is down.
 */
function createKeyFinder(
  { issuer, cooldownMs, timeoutMs, maxAgeMs }: Provider,
  report: (error: unknown) => void,
): JWTVerifyGetKey {
  let failedAt: number | undefined;
  let renewAt = Number.POSITIVE_INFINITY;
  let keys: Promise<RemoteJWKSet> | undefined;

  const isCoolingDown = () => failedAt !== undefined && performance.now() < failedAt + cooldownMs;

  /** Sends a request to the provider, unless the last one has just failed. */
  const attempt = async <T>(request: () => Promise<T>): Promise<T> => {
    if (isCoolingDown()) throw failure("identity-provider-unavailable");
    try {
      const result = await request();
      failedAt = undefined;
      return result;
    } catch (error) {
      failedAt = performance.now();
      report(error);
      throw failure("identity-provider-unavailable");
    }
  };

  const discover = async () => {
    const jose = await import("jose");
    return jose.createRemoteJWKSet(await attempt(() => discoverKeysUrl(issuer, timeoutMs)), {
      cooldownDuration: cooldownMs,
      timeoutDuration: timeoutMs,
      cacheMaxAge: Number.POSITIVE_INFINITY,
      [jose.customFetch]: (url, { signal }) =>
        attempt(async () => {
          const document = await fetchJson(url, signal);
          // Throws if it is not a key set.
          jose.createLocalJWKSet(document as JSONWebKeySet);
          renewAt = performance.now() + maxAgeMs;
          return Response.json(document);
        }),
    });
  };

  return async (header, token) => {
    keys ??= discover().catch((error: unknown) => {
      keys = undefined;
      throw error;
    });
    const keySet = await keys;
    if (performance.now() >= renewAt && !isCoolingDown()) {
      const renewal = keySet.reload().catch(() => undefined);
      // While the provider is down, requests use the cached keys instead of waiting.
      if (failedAt === undefined) await renewal;
    }
    return keySet(header, token);
  };
}

/** Returns the URL of the keys. */
async function discoverKeysUrl(issuer: string, timeoutMs: number): Promise<URL> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = await fetchJson(url, AbortSignal.timeout(timeoutMs));
  if (!isObject(document)) throw new Error(`${url} is not an object`);
  if (document["issuer"] !== issuer) throw new Error(`${url} names another issuer`);
  const keysUrl = URL.parse(String(document["jwks_uri"]));
  // An attacker who can modify the keys in transit can impersonate any user.
  if (keysUrl?.protocol === "https:") return keysUrl;
  if (keysUrl?.protocol === "http:" && URL.parse(issuer)?.protocol === "http:") return keysUrl;
  throw new Error(`${url} has a jwks_uri that is not an https: URL`);
}

/** Does not follow redirects: they could lead to http: or to the internal network. */
async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { redirect: "manual", signal, headers: { accept: "application/json" } });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url} returned ${response.status}`);
  }
  return JSON.parse((await readBounded(response, MAX_DOCUMENT_BYTES)).toString());
}
