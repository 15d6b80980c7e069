import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { type Credential, isValidAt, NOBODY } from "./account-store.ts";
import type { Accounts } from "./accounts.ts";
import { asUser } from "./caller.ts";
import { hashSecret } from "./hash-secret.ts";
import { isAccountRefusal } from "./refusals.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long a key is used to sign. */
const SIGNING_MS = 30 * DAY_MS;
/** How long a key is accepted: until everything it has signed has expired. */
const ACCEPTED_MS = 31 * DAY_MS;

/**
 * Signs or encrypts what the server gives to clients and accepts back for a short time, so that it need not be stored. All
 * processes share the key, which is a row among the credentials.
 */
export class Signatures {
  readonly #accounts: Accounts;
  /** By id. */
  readonly #keys = new Map<string, Credential>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  /** The id of the key and the signature, in characters that cookies and URLs allow. */
  async sign(text: string, at: Date): Promise<string> {
    const key = await this.#currentKey(at);
    return `${key.id}~${authenticate(text, key).toString("base64url")}`;
  }

  /** The text, readable by the server only, and only in the same context, such as a purpose and a user. */
  async seal(text: string, context: string, at: Date): Promise<string> {
    const key = await this.#currentKey(at);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, sealingKey(key), nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
    return `${key.id}~${sealed.toString("base64url")}`;
  }

  /** Undefined if it was changed, or sealed in another context or by another server. */
  async unseal(sealed: string, context: string, at: Date): Promise<string | undefined> {
    const [, id = "", code = ""] = SEALED.exec(sealed) ?? [];
    const key = await this.#findKey(id, at);
    const bytes = Buffer.from(code, "base64url");
    if (key === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, sealingKey(key), bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const content = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([content, decipher.final()]).toString();
    } catch {
      return undefined;
    }
  }

  async verify(text: string, signature: string, at: Date): Promise<boolean> {
    const [, id = "", code = ""] = SIGNATURE.exec(signature) ?? [];
    const key = await this.#findKey(id, at);
    return key !== undefined && timingSafeEqual(authenticate(text, key), Buffer.from(code, "base64url"));
  }

  async #currentKey(at: Date): Promise<Credential> {
    const known = this.#findCurrent(at);
    if (known !== undefined) return known;
    await this.#readKeys();
    return this.#findCurrent(at) ?? (await this.#addKey(at));
  }

  /** Undefined if there is none with this id, or it has expired. */
  async #findKey(id: string, at: Date): Promise<Credential | undefined> {
    if (id === "") return undefined;
    if (!this.#keys.has(id)) await this.#readKeys();
    const key = this.#keys.get(id);
    return key !== undefined && isValidAt(key, at) ? key : undefined;
  }

  #findCurrent(at: Date): Credential | undefined {
    return [...this.#keys.values()].find((key) => {
      const age = at.getTime() - key.createdAt.getTime();
      return Math.abs(age) < SIGNING_MS && isValidAt(key, at);
    });
  }

  async #readKeys(): Promise<void> {
    for (const key of await this.#accounts.store.listCredentials(NOBODY, "ticket-key")) this.#keys.set(key.id, key);
  }

  async #addKey(at: Date): Promise<Credential> {
    const label = randomBytes(32).toString("base64url");
    const expiresAt = new Date(at.getTime() + ACCEPTED_MS);
    const key = { kind: "ticket-key", user: NOBODY, scope: "read", label, expiresAt } as const;
    const added = await this.#accounts.addCredential(asUser(NOBODY), key, hashSecret(label), at);
    if (isAccountRefusal(added)) throw new Error(`cannot store a key: ${added.reason}`);
    this.#keys.set(added.id, added);
    return added;
  }
}

function authenticate(text: string, { label }: Credential): Buffer {
  return createHmac("sha256", Buffer.from(label, "base64url")).update(text).digest();
}

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Another key than that of signatures. */
function sealingKey({ label }: Credential): Buffer {
  return Buffer.from(hkdfSync("sha256", Buffer.from(label, "base64url"), "", "earmark seal", 32));
}

/** The id of a key, and what it has encrypted. */
const SEALED = /^([0-9a-f-]{36})~([\w-]{1,8192})$/;
/** The id of a key, and an HMAC-SHA-256. */
const SIGNATURE = /^([0-9a-f-]{36})~([\w-]{43})$/;
