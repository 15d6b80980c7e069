import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { NOBODY } from "./account-store.ts";
import type { Accounts } from "./accounts.ts";
import { asUser } from "./subscriptions.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long a key signs. */
const SIGNING_MS = 30 * DAY_MS;
/** How long a key is known: longer than anything that it has signed is accepted. */
const KNOWN_MS = 120 * DAY_MS;
/** One for each process that has started meanwhile. Beyond it, a process still verifies what it has signed itself. */
const MAX_KEYS = 10_000;
const MAX_REMEMBERED = 10_000;

interface SigningKey {
  readonly id: string;
  readonly privateKey: KeyObject;
  readonly createdAt: number;
}

/**
 * Signs what the server gives to apps instead of storing it. Every process has a key pair of its own and stores the public
 * key, so that any process can verify a signature, also after a restart, while nobody can make one from the database or a
 * backup.
 */
export class AppSignatures {
  readonly #accounts: Accounts;
  #key: Promise<SigningKey> | undefined;
  /** Signatures by what they sign, and texts whose signature was verified: both take longer than all else. */
  readonly #signed = new Map<string, string>();
  readonly #verified = new Set<string>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  /** The key and the signature, without characters that a cookie or a URL cannot have. */
  async sign(text: string, at: Date): Promise<string> {
    const { id, privateKey } = await this.#currentKey(at);
    const remembered = this.#signed.get(`${id} ${text}`);
    if (remembered !== undefined) return remembered;
    const signature = `${id}~${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
    if (this.#signed.size >= MAX_REMEMBERED) this.#signed.clear();
    this.#signed.set(`${id} ${text}`, signature);
    return signature;
  }

  async verify(text: string, signature: string, at: Date): Promise<boolean> {
    const claim = `${signature} ${text}`;
    if (this.#verified.has(claim)) return true;
    const [, id = "", bytes = ""] = SIGNATURE.exec(signature) ?? [];
    if (id === "" || !(await this.#isKey(id, at))) return false;
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: id }, format: "jwk" });
    if (!verify(null, Buffer.from(text), key, Buffer.from(bytes, "base64url"))) return false;
    if (this.#verified.size >= MAX_REMEMBERED) this.#verified.clear();
    this.#verified.add(claim);
    return true;
  }

  async #isKey(id: string, at: Date): Promise<boolean> {
    return id === (await this.#key)?.id || (await this.#accounts.verifyHash(id, "signing-key", at)) !== undefined;
  }

  async #currentKey(at: Date): Promise<SigningKey> {
    const current = await this.#key;
    if (current !== undefined && at.getTime() - current.createdAt < SIGNING_MS) return current;
    const created = this.#createKey(at);
    this.#key = created;
    // What cannot be stored now is tried again with the next signature.
    created.catch(() => {
      this.#key = undefined;
    });
    return created;
  }

  async #createKey(at: Date): Promise<SigningKey> {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const id = publicKey.export({ format: "jwk" }).x ?? "";
    const expiresAt = new Date(at.getTime() + KNOWN_MS);
    const key = { kind: "signing-key", user: NOBODY, scope: "read", label: "", expiresAt } as const;
    await this.#accounts.addCredential(asUser(NOBODY), key, id, at, { atMost: MAX_KEYS });
    return { id, privateKey, createdAt: at.getTime() };
  }
}

/** A public key and what it verifies. */
const SIGNATURE = /^([\w-]{43})~([\w-]{86})$/;
