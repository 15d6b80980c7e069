import type { ClientAuth, Configuration, CustomFetch } from "openid-client";
import { hashSecret } from "../../accounts/hash-secret.ts";
import type { OidcUser } from "../../accounts/linked-users.ts";
import type { OidcConfig, OidcLoginConfig } from "../../config/config.ts";
import { failure, RequestFailure } from "../../errors/catalog.ts";
import { readBounded } from "../wire/read-bounded.ts";
import { isSubject, MAX_DOCUMENT_BYTES } from "./jwt-verifier.ts";

const TIMEOUT_S = 5;
/** How soon a failed discovery is retried, and a successful one refreshed. */
const COOLDOWN_MS = 5_000;
const MAX_AGE_MS = 600_000;
/** With `profile`, providers return a name that people recognize. */
const SCOPE = "openid profile";

/** Tie a response of the provider to the login of one browser. Derived from a secret that only that browser has. */
interface LoginSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export function loginSecretsOf(secret: string): LoginSecrets {
  const derive = (purpose: string) => hashSecret(`${purpose} ${secret}`);
  return { state: derive("state"), nonce: derive("nonce"), verifier: derive("verifier") };
}

/** The authorization code flow of OpenID Connect with PKCE, state and nonce. */
interface OidcClient {
  /** The URL at the provider that the browser opens. */
  authorizationUrl(redirectUri: string, secrets: LoginSecrets): Promise<string>;
  /** The user that the provider authenticated, with a display name. `callback` is the redirect URI with its query. */
  finish(callback: URL, secrets: LoginSecrets): Promise<OidcUser & { readonly label: string }>;
}

/** Errors are RequestFailures: `oidc-denied`, `oidc-failed` or `identity-provider-unavailable`. */
export function createOidcClient(
  { issuer }: OidcConfig,
  login: OidcLoginConfig,
  onUnavailable: (reason: string) => void,
): OidcClient {
  let configuration: Promise<Configuration> | undefined;
  let renewAt = 0;
  const configure = (): Promise<Configuration> => {
    if (configuration === undefined || performance.now() >= renewAt) {
      renewAt = performance.now() + MAX_AGE_MS;
      configuration = discover(issuer, login);
      configuration.catch(() => {
        renewAt = performance.now() + COOLDOWN_MS;
      });
    }
    return configuration;
  };
  const attempt = async <T>(step: () => Promise<T>): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      const converted = await toFailure(error);
      if (converted.error.code === "identity-provider-unavailable") onUnavailable(describe(error));
      throw converted;
    }
  };

  return {
    authorizationUrl: (redirectUri, { state, nonce, verifier }) =>
      attempt(async () => {
        const { buildAuthorizationUrl } = await import("openid-client");
        const url = buildAuthorizationUrl(await configure(), {
          redirect_uri: redirectUri,
          scope: SCOPE,
          state,
          nonce,
          code_challenge: hashSecret(verifier),
          code_challenge_method: "S256",
        });
        if (url.protocol !== "https:" && url.protocol !== new URL(issuer).protocol)
          throw new Error("the authorization_endpoint is not an https: URL");
        return url.href;
      }),

    finish: (callback, { state, nonce, verifier }) =>
      attempt(async () => {
        const { authorizationCodeGrant } = await import("openid-client");
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        };
        const claims = (await authorizationCodeGrant(await configure(), callback, checks)).claims();
        if (!isSubject(claims?.sub)) throw failure("oidc-failed");
        const names = [claims["preferred_username"], claims["email"], claims["name"]];
        const label = names.find((name) => typeof name === "string" && name !== "") ?? claims.sub;
        return { issuer, subject: claims.sub, label: String(label) };
      }),
  };
}

async function discover(issuer: string, { clientId, clientSecret }: OidcLoginConfig): Promise<Configuration> {
  const library = await import("openid-client");
  const authenticate: ClientAuth = (provider, ...rest) => {
    const methods = provider.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const isBasic = methods.includes("client_secret_basic");
    (isBasic ? library.ClientSecretBasic : library.ClientSecretPost)(clientSecret)(provider, ...rest);
  };
  const url = new URL(issuer);
  return library.discovery(url, clientId, undefined, clientSecret === undefined ? library.None() : authenticate, {
    [library.customFetch]: boundedFetch,
    timeout: TIMEOUT_S,
    execute: [
      // Otherwise the signature of an ID token that comes from the provider directly would not be verified.
      library.enableNonRepudiationChecks,
      // The settings allow http only for an issuer on this machine.
      ...(url.protocol === "http:" ? [library.allowInsecureRequests] : []),
    ],
  });
}

/** `fetch` with a limit on the length of the response. Redirects are not followed. */
const boundedFetch: CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  const { status, headers } = response;
  const body = await readBounded(response, MAX_DOCUMENT_BYTES);
  return new Response(status === 204 || status === 304 ? null : body, { status, headers });
};

async function toFailure(error: unknown): Promise<RequestFailure> {
  if (error instanceof RequestFailure) return error;
  const { AuthorizationResponseError, ClientError, ResponseBodyError } = await import("openid-client");
  if (error instanceof AuthorizationResponseError)
    return failure(error.error === "access_denied" ? "oidc-denied" : "oidc-failed");
  // The code was invalid, expired or already used. Other errors concern the settings, such as a wrong client secret.
  if (error instanceof ResponseBodyError && error.error === "invalid_grant") return failure("oidc-failed");
  const isInvalid = error instanceof ClientError && INVALID_RESPONSE.has(error.code ?? "");
  return failure(isInvalid ? "oidc-failed" : "identity-provider-unavailable");
}

/** For the log: short, and without the content of tokens. */
function describe(error: unknown): string {
  const { name, message, code, error: oauthError, cause } = error as Error & { code?: unknown; error?: unknown };
  const { code: causeCode } = (cause ?? {}) as { readonly code?: unknown };
  return [name, message, code, oauthError, causeCode].filter(Boolean).join(", ").slice(0, MAX_REASON);
}

const MAX_REASON = 300;

/** State, issuer, nonce, signature or times do not match, or parameters are missing or repeated. */
const INVALID_RESPONSE: ReadonlySet<string> = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_KEY_SELECTION_FAILED",
]);
