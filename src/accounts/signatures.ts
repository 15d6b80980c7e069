import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type Credential, isValidAt, NOBODY } from "./account-store.ts";
import { type Accounts, hashSecret } from "./accounts.ts";
import { asUser } from "./caller.ts";
import { isAccountRefusal } from "./refusals.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long a key is used to sign. */
const SIGNING_MS = 30 * DAY_MS;
/** How long a key is accepted: until everything it has signed has expired. */
const ACCEPTED_MS = 31 * DAY_MS;

/**
 * Signs what the server gives to strangers and accepts back for a short time, so that it need not be stored. All processes
 * share the key, which is a row among the credentials.
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
    let key = this.#findCurrent(at);
    if (key === undefined) {
      await this.#readKeys();
      key = this.#findCurrent(at) ?? (await this.#addKey(at));
    }
    return `${key.id}~${authenticate(text, key).toString("base64url")}`;
  }

  async verify(text: string, signature: string, at: Date): Promise<boolean> {
    const [, id = "", code = ""] = SIGNATURE.exec(signature) ?? [];
    if (id === "") return false;
    if (!this.#keys.has(id)) await this.#readKeys();
    const key = this.#keys.get(id);
    if (key === undefined || !isValidAt(key, at)) return false;
    return timingSafeEqual(authenticate(text, key), Buffer.from(code, "base64url"));
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

/** The id of a key, and an HMAC-SHA-256. */
const SIGNATURE = /^([0-9a-f-]{36})~([\w-]{43})$/;
