import type { AuthenticationResponseJSON, RegistrationResponseJSON, WebAuthnCredential } from "@simplewebauthn/server";
import type { Account, Credential, IssuedCredential, PublicKey } from "./account-store.ts";
import type { Accounts, VerifiedCredential } from "./accounts.ts";
import type { Networks } from "./attempts.ts";
import { asUser, type Caller, type UserId } from "./caller.ts";
import { hashSecret } from "./hash-secret.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "./refusals.ts";
import type { Signatures } from "./signatures.ts";
import { issueTicket, readTicket, type Ticket } from "./tickets.ts";

/** How long the user has to confirm on their device. */
const CHALLENGE_MS = 5 * 60 * 1_000;
/** Maximum length of a credential id in WebAuthn, in base64url. */
const MAX_CREDENTIAL_ID = 1_364;
/** EdDSA, ES256 and RS256: every authenticator supports at least one of them. */
const ALGORITHMS = [-8, -7, -257];

/** The site that a passkey belongs to. */
export interface Site {
  /** The host name, which browsers bind passkeys to. */
  readonly host: string;
  /** Origins of the page; several if it is unknown whether a proxy terminates TLS. */
  readonly origins: readonly string[];
}

/**
 * Passkeys (WebAuthn) sign in without a name or password. Each is a credential. A challenge is a ticket; it is stored only when its response has been verified, so that it works once.
 */
export class Passkeys {
  readonly #accounts: Accounts;
  readonly #signatures: Signatures;

  constructor(accounts: Accounts, signatures: Signatures) {
    this.#accounts = accounts;
    this.#signatures = signatures;
  }

  /** Options for `navigator.credentials.create`, in the JSON serialization of the WebAuthn specification. */
  async registrationOptions({ user, name }: Account, { host }: Site, at: Date): Promise<object> {
    const passkeys = await this.#accounts.store.listCredentials(user, "passkey");
    return {
      rp: { id: host, name: "Earmark" },
      user: { id: userHandle(user), name, displayName: name },
      challenge: await this.#newChallenge(String(user), at),
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key", alg })),
      timeout: CHALLENGE_MS,
      excludeCredentials: passkeys.map(({ passkey }) => ({ type: "public-key", id: passkey?.id })),
      authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
      attestation: "none",
    };
  }

  /** Options for `navigator.credentials.get`. The browser knows which passkeys it has for this site. */
  async signInOptions({ host }: Site, at: Date): Promise<object> {
    const challenge = await this.#newChallenge("", at);
    return { rpId: host, challenge, timeout: CHALLENGE_MS, userVerification: "required", allowCredentials: [] };
  }

  async add(
    caller: Caller,
    { name, response, site }: { readonly name: string; readonly response: unknown; readonly site: Site },
    at: Date,
  ): Promise<Credential | AccountRefusal> {
    const { user } = caller;
    const challenge = this.#expectChallenge(String(user), at);
    const created = await verifyRegistration(response, site, challenge.check);
    if (created === undefined || !(await challenge.use(caller))) return refuse({ reason: "invalid-passkey" });
    const requested = { kind: "passkey", user, scope: "write", label: name, expiresAt: undefined } as const;
    const passkey = { ...requested, passkey: created };
    const added = await this.#accounts.addCredential(caller, passkey, hashId(created.id), at);
    return isAccountRefusal(added) && added.reason === "gone" ? refuse({ reason: "invalid-passkey" }) : added;
  }

  async signIn(
    { response, site, networks, label }: { response: unknown; site: Site; networks: Networks; label: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const tooOften = await this.#accounts.countAttempt(networks, at);
    if (tooOften !== undefined) return tooOften;
    const found = await this.#find(response, at);
    if (found?.passkey === undefined) return refuse({ reason: "invalid-passkey" });
    const { user, hash, passkey } = found;
    const challenge = this.#expectChallenge("", at);
    const counter = await verifyAuthentication(response, passkey, user, site, challenge.check);
    // Only the owner may learn that the account is disabled.
    if (counter !== undefined && (await this.#accounts.get(user))?.disabledAt !== undefined)
      return refuse({ reason: "disabled" });
    if (counter === undefined || !(await challenge.use({ ...asUser(user), credentialHash: hash })))
      return refuse({ reason: "invalid-passkey" });
    if (counter !== passkey.counter && !(await this.#accounts.store.replaceCounter(hash, passkey.counter, counter)))
      return refuse({ reason: "invalid-passkey" });
    return this.#accounts.openSession({ user }, { credentialHash: hash }, label, at);
  }

  async #find(response: unknown, at: Date): Promise<VerifiedCredential | undefined> {
    const { id } = (response ?? {}) as { readonly id?: unknown };
    if (typeof id !== "string" || id.length > MAX_CREDENTIAL_ID) return undefined;
    // Not from the cache: the counter must be current.
    return this.#accounts.verifyUncached(hashId(id), "passkey", at);
  }

  /** The ticket is encoded again, because WebAuthn expects a challenge in base64url. */
  async #newChallenge(subject: string, at: Date): Promise<string> {
    const { text } = await issueTicket(this.#signatures, "passkey", subject, CHALLENGE_MS, at);
    return Buffer.from(text).toString("base64url");
  }

  #expectChallenge(subject: string, at: Date) {
    let ticket: Ticket | undefined;
    return {
      check: async (challenge: string): Promise<boolean> => {
        const text = Buffer.from(challenge, "base64url").toString();
        ticket = await readTicket(this.#signatures, "passkey", text, at);
        return ticket?.subject === subject;
      },
      /** False if the challenge was used before. */
      use: async (caller: Caller): Promise<boolean> => {
        if (ticket === undefined) return false;
        const { random, expiresAt } = ticket;
        const { user } = caller;
        const used = { kind: "used-challenge", user, scope: "read", label: "", expiresAt } as const;
        const hash = hashSecret(`challenge ${random}`);
        return !isAccountRefusal(await this.#accounts.addCredential(caller, used, hash, at));
      },
    };
  }
}

type CheckChallenge = (challenge: string) => Promise<boolean>;

/** Undefined unless the response creates a passkey for this site with a valid challenge. */
async function verifyRegistration(
  response: unknown,
  { host, origins }: Site,
  expectedChallenge: CheckChallenge,
): Promise<PublicKey | undefined> {
  // Loaded on demand, because most requests need none of it.
  const [{ verifyRegistrationResponse }, { decodeAttestationObject, isoBase64URL }] = await Promise.all([
    import("@simplewebauthn/server"),
    import("@simplewebauthn/server/helpers"),
  ]);
  try {
    const given = response as RegistrationResponseJSON;
    // To check certificates, the library would fetch revocation lists from any host that they name.
    if (decodeAttestationObject(isoBase64URL.toBuffer(given.response.attestationObject)).get("attStmt").get("x5c"))
      return undefined;
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: given,
      expectedChallenge,
      expectedOrigin: [...origins],
      expectedRPID: host,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!verified || registrationInfo.credential.id.length > MAX_CREDENTIAL_ID) return undefined;
    const { id, publicKey, counter } = registrationInfo.credential;
    return { id, publicKey: Buffer.from(publicKey).toString("base64url"), counter };
  } catch {
    return undefined;
  }
}

/**
 * The new counter. Undefined unless the response was signed by this passkey for this site with a valid challenge and a
 * higher counter.
 */
async function verifyAuthentication(
  response: unknown,
  { id, publicKey, counter }: PublicKey,
  user: UserId,
  { host, origins }: Site,
  expectedChallenge: CheckChallenge,
): Promise<number | undefined> {
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  try {
    const given = response as AuthenticationResponseJSON;
    if (given.response.userHandle !== userHandle(user)) return undefined;
    const key = Buffer.from(publicKey, "base64url") as WebAuthnCredential["publicKey"];
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: given,
      expectedChallenge,
      expectedOrigin: [...origins],
      expectedRPID: host,
      credential: { id, publicKey: key, counter },
    });
    return verified ? authenticationInfo.newCounter : undefined;
  } catch {
    return undefined;
  }
}

/** Identifies the account to the authenticator, which replaces an older passkey of the same account. */
function userHandle(user: UserId): string {
  return Buffer.from(String(user)).toString("base64url");
}

function hashId(id: string): string {
  return hashSecret(`passkey ${id}`);
}
