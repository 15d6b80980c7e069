import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey, RemoteJWKSet } from "jose";
import { failure, RequestFailure } from "../errors.ts";
import { isObject } from "../jsonapi/resource.ts";

/** Whom an identity provider names in a JWT. */
export interface Vouched {
  readonly subject: string;
  readonly issuedAt: Date;
}

/**
 * Undefined when the JWT does not hold. Throws RequestFailure 503 when the provider cannot be reached and so nothing can
 * be said.
 */
export type Verify = (jwt: string, now: Date) => Promise<Vouched | undefined>;

export interface VerifierOptions {
  readonly issuer: string;
  readonly audience: string;
  /** Hears what is wrong with the provider, for the log; at most once in a cool-down, and never any part of a JWT. */
  readonly onTrouble?: (error: unknown) => void;
  /** How long the provider is left alone after a failure, and after its keys were fetched. */
  readonly cooldownMs?: number;
  /** How long one answer of the provider may take. */
  readonly timeoutMs?: number;
  /** After this time keys are fetched again, so that a key which the provider has withdrawn stops working. */
  readonly maxAgeMs?: number;
}

const MAX_JWT_LENGTH = 8 * 1024;
/** An encrypted JWT has five parts, and one without a signature an empty one. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** With a symmetric algorithm whoever can verify can sign, and the provider's public keys are known to everyone. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512"],
  ...["PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512"],
  ...["EdDSA", "Ed25519"],
];
/** Access tokens and ID tokens. Providers sign other things too, such as the notice that someone has logged out. */
const TYPES = /^(application\/)?(at\+)?jwt$/i;
/** The provider's clock is not ours. Clocks that are kept in time at all are within a few seconds of each other. */
const CLOCK_TOLERANCE_S = 30;
/** The limit that OpenID Connect sets. */
const MAX_SUBJECT_LENGTH = 255;
/** Lone surrogates too: in UTF-8 they would all be the same, and so would their owners. */
const UNFIT_FOR_SUBJECT = /[\p{Cc}\p{Cs}]/u;
/** Real documents have a few KiB. */
const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Accepts the access tokens and ID tokens of one identity provider. It is first asked when a JWT needs its keys. */
export function createVerifier({
  issuer,
  audience,
  onTrouble,
  cooldownMs = 5_000,
  timeoutMs = 3_000,
  maxAgeMs = 600_000,
}: VerifierOptions): Verify {
  const provider = { issuer, cooldownMs, timeoutMs, maxAgeMs };
  let troubleAt = Number.NEGATIVE_INFINITY;
  // What is wrong with a key is found with every JWT that names it, and strangers can send many of those.
  const report = (error: unknown) => {
    if (performance.now() < troubleAt + cooldownMs) return;
    troubleAt = performance.now();
    onTrouble?.(error);
  };
  const keyFor = createKeyFinder(provider, report);

  return async (jwt, now) => {
    if (jwt.length > MAX_JWT_LENGTH || !JWT.test(jwt)) return undefined;
    // Here, so that a server without an identity provider does not load it.
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
      // Anything else comes of a key that cannot be used. These errors know of the key alone, those of a JWT hold its claims.
      if (!(error instanceof errors.JOSEError) || error instanceof errors.JWKSInvalid) report(error);
      return undefined;
    }
  };
}

function readClaims({ sub, iat }: JWTPayload, now: Date): Vouched | undefined {
  if (typeof sub !== "string" || sub === "" || sub.length > MAX_SUBJECT_LENGTH) return undefined;
  if (UNFIT_FOR_SUBJECT.test(sub)) return undefined;
  const issuedAt = new Date((iat ?? Number.NaN) * 1_000);
  // A JWT of the future would outlive what is revoked by the time of its issue. This is false for an invalid date too.
  if (!(issuedAt.getTime() <= now.getTime() + CLOCK_TOLERANCE_S * 1_000)) return undefined;
  return { subject: sub, issuedAt };
}

type Provider = Readonly<Record<"cooldownMs" | "timeoutMs" | "maxAgeMs", number>> & { readonly issuer: string };

/**
 * Finds the key that a JWT names. `jose` alone would fetch again with every JWT after a failure, and would give up keys that
 * have grown old even when there are no others to be had.
 */
function createKeyFinder(
  { issuer, cooldownMs, timeoutMs, maxAgeMs }: Provider,
  report: (error: unknown) => void,
): JWTVerifyGetKey {
  let failedAt: number | undefined;
  let renewAt = Number.POSITIVE_INFINITY;
  let keys: Promise<RemoteJWKSet> | undefined;

  const isLeftAlone = () => failedAt !== undefined && performance.now() < failedAt + cooldownMs;

  /** Asks something of the provider, unless it has failed just now. */
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    if (isLeftAlone()) throw failure("identity-provider-unavailable");
    try {
      const answer = await question();
      failedAt = undefined;
      return answer;
    } catch (error) {
      failedAt = performance.now();
      report(error);
      throw failure("identity-provider-unavailable");
    }
  };

  const discover = async () => {
    const jose = await import("jose");
    return jose.createRemoteJWKSet(await ask(() => discoverKeys(issuer, timeoutMs)), {
      cooldownDuration: cooldownMs,
      timeoutDuration: timeoutMs,
      cacheMaxAge: Number.POSITIVE_INFINITY,
      [jose.customFetch]: (url, { signal }) =>
        ask(async () => {
          const document = await fetchJson(url, signal);
          // Throws when it is no set of keys: that is a failure as any other.
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
    const known = await keys;
    if (performance.now() >= renewAt && !isLeftAlone()) {
      const renewal = known.reload().catch(() => undefined);
      // While the provider is down nobody waits for it to come back, since the keys that are known will do.
      if (failedAt === undefined) await renewal;
    }
    return known(header, token);
  };
}

/** Where the keys are. */
async function discoverKeys(issuer: string, timeoutMs: number): Promise<URL> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = await fetchJson(url, AbortSignal.timeout(timeoutMs));
  if (!isObject(document)) throw new Error(`${url} is not an object`);
  if (document["issuer"] !== issuer) throw new Error(`${url} is of another issuer`);
  const keys = URL.parse(String(document["jwks_uri"]));
  // Whoever can change the keys on their way can be everyone.
  if (keys?.protocol === "https:") return keys;
  if (keys?.protocol === "http:" && URL.parse(issuer)?.protocol === "http:") return keys;
  throw new Error(`${url} has a jwks_uri that is no https: address`);
}

/** Follows no redirects: they could lead from https: to http:, or to what only this machine can reach. */
async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { redirect: "manual", signal, headers: { accept: "application/json" } });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url} answered ${response.status}`);
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.byteLength;
    if (length > MAX_DOCUMENT_BYTES) throw new Error(`${url} is longer than ${MAX_DOCUMENT_BYTES} bytes`);
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString());
}
