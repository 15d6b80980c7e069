import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { NOBODY } from "./account-store.ts";
import type { Accounts } from "./accounts.ts";
import { asUser } from "./caller.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long a key is used to sign. */
const SIGNING_MS = 30 * DAY_MS;
/** How long a key is accepted: until everything it has signed has expired. */
const ACCEPTED_MS = 120 * DAY_MS;
const MAX_CACHED = 10_000;

interface SigningKey {
  readonly id: string;
  readonly privateKey: KeyObject;
  readonly createdAt: number;
}

/**
 * Signs what the server gives to apps and browsers instead of storing it. Every process has a key pair of its own and
 * stores the public key, so that any process can verify a signature, even after a restart, while nobody can forge one
 * with the content of the database or a backup.
 */
export class Signatures {
  readonly #accounts: Accounts;
  #key: Promise<SigningKey> | undefined;
  /** Caches, because signing and verifying take longer than the rest of a request. */
  readonly #signed = new Map<string, string>();
  readonly #verified = new Set<string>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  /** The public key and the signature, in characters that cookies and URLs allow. */
  async sign(text: string, at: Date): Promise<string> {
    const { id, privateKey } = await this.#currentKey(at);
    const cached = this.#signed.get(`${id} ${text}`);
    if (cached !== undefined) return cached;
    const signature = `${id}~${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
    if (this.#signed.size >= MAX_CACHED) this.#signed.clear();
    this.#signed.set(`${id} ${text}`, signature);
    return signature;
  }

  async verify(text: string, signature: string, at: Date): Promise<boolean> {
    const claim = `${signature} ${text}`;
    if (this.#verified.has(claim)) return true;
    const [, id = "", bytes = ""] = SIGNATURE.exec(signature) ?? [];
    if (id === "" || !(await this.#isAcceptedKey(id, at))) return false;
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: id }, format: "jwk" });
    if (!verify(null, Buffer.from(text), key, Buffer.from(bytes, "base64url"))) return false;
    if (this.#verified.size >= MAX_CACHED) this.#verified.clear();
    this.#verified.add(claim);
    return true;
  }

  async #isAcceptedKey(id: string, at: Date): Promise<boolean> {
    return id === (await this.#key)?.id || (await this.#accounts.verifyHash(id, "signing-key", at)) !== undefined;
  }

  async #currentKey(at: Date): Promise<SigningKey> {
    const current = await this.#key;
    if (current !== undefined && at.getTime() - current.createdAt < SIGNING_MS) return current;
    const created = this.#createKey(at);
    this.#key = created;
    // If the key cannot be stored, the next signature tries again.
    created.catch(() => {
      this.#key = undefined;
    });
    return created;
  }

  async #createKey(at: Date): Promise<SigningKey> {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const id = publicKey.export({ format: "jwk" }).x ?? "";
    const expiresAt = new Date(at.getTime() + ACCEPTED_MS);
    const key = { kind: "signing-key", user: NOBODY, scope: "read", label: "", expiresAt } as const;
    await this.#accounts.addCredential(asUser(NOBODY), key, id, at);
    return { id, privateKey, createdAt: at.getTime() };
  }
}

/** A public key and a signature. */
const SIGNATURE = /^([\w-]{43})~([\w-]{86})$/;
