import { argon2 as argon2WithCallback, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { FairQueue } from "../util/fair-queue.ts";

const argon2 = promisify(argon2WithCallback);

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 256;

/** What a new hash costs: the minimum that OWASP recommends. Tests lower it. */
export const HASH_COST = { memoryKib: 19 * 1024, passes: 2 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** A hash takes about 50 ms of one core and 19 MiB; two at a time leave the rest for other requests. */
const MAX_AT_A_TIME = 2;
const MAX_WAITING = 30;

/** Too many passwords are waiting to be hashed. */
export class HashQueueFull extends Error {
  override readonly name = "HashQueueFull";
}

interface Waiter {
  readonly network: string;
  readonly start: () => void;
  readonly refuse: (error: HashQueueFull) => void;
}

/**
 * Runs two hashes at a time, at most one per network; waiting networks take turns. When the queue is full, the last
 * attempt of the network with the most waiting ones is refused, so a network that floods the server loses its own attempts.
 */
class HashScheduler {
  readonly #running = new Set<string>();
  readonly #queue = new FairQueue<string, Waiter>();

  async run<T>(network: string, work: () => Promise<T>): Promise<T> {
    if (this.#running.size >= MAX_AT_A_TIME || this.#running.has(network)) await this.#wait(network);
    else this.#running.add(network);
    try {
      return await work();
    } finally {
      this.#running.delete(network);
      this.#startNext();
    }
  }

  /** Takes the slot at once, so that no new attempt can get it first. */
  #startNext(): void {
    const next = this.#queue.shift((network) => !this.#running.has(network));
    if (next === undefined) return;
    this.#running.add(next.network);
    next.start();
  }

  #wait(network: string): Promise<void> {
    return new Promise((start, refuse) => {
      this.#queue.push(network, { network, start, refuse });
      if (this.#queue.length > MAX_WAITING) this.#queue.dropFromLongest(network)?.refuse(new HashQueueFull());
    });
  }
}

const scheduler = new HashScheduler();

/**
 * The hash of a password in the PHC format, which names its algorithm and costs. Hashing is shared fairly between
 * networks of clients; `network` is empty for the command line.
 */
export async function hashPassword(password: string, network = ""): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(network, password, salt, HASH_COST.memoryKib, HASH_COST.passes, 1, HASH_BYTES);
  return format(salt, hash);
}

function format(salt: Buffer, hash: Buffer): string {
  return `$argon2id$v=19$m=${HASH_COST.memoryKib},t=${HASH_COST.passes},p=1$${encode(salt)}$${encode(hash)}`;
}

/**
 * Whether the password matches the hash. For a name without an account or password, which has no hash, takes
 * equally long and returns false.
 */
export async function verifyPassword(password: string, hashed: string | undefined, network = ""): Promise<boolean> {
  const parts = PHC.exec(hashed || format(randomBytes(SALT_BYTES), randomBytes(HASH_BYTES)))?.groups;
  if (parts === undefined) throw new Error("a stored password hash has an unknown format");
  const { memory, passes, lanes, salt = "", hash = "" } = parts;
  const expected = Buffer.from(hash, "base64");
  const actual = await derive(
    network,
    password,
    Buffer.from(salt, "base64"),
    Number(memory),
    Number(passes),
    Number(lanes),
    expected.length,
  );
  return timingSafeEqual(actual, expected);
}

const PHC =
  /^\$argon2id\$v=19\$m=(?<memory>\d+),t=(?<passes>\d+),p=(?<lanes>\d+)\$(?<salt>[A-Za-z0-9+/]+)\$(?<hash>[A-Za-z0-9+/]+)$/;

function encode(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("=", "");
}

function derive(
  network: string,
  password: string,
  nonce: Buffer,
  memory: number,
  passes: number,
  parallelism: number,
  tagLength: number,
): Promise<Buffer> {
  return scheduler.run(network, () =>
    argon2("argon2id", { message: Buffer.from(password), nonce, memory, passes, parallelism, tagLength }),
  );
}

let commonPasswords: Promise<ReadonlySet<string>> | undefined;

/** Why a new password is refused, and how to say so after "The password". Clients get the code as `meta.problem`. */
export const PASSWORD_PROBLEMS = {
  "too-short": `must have at least ${MIN_PASSWORD} characters`,
  "too-long": `must have at most ${MAX_PASSWORD} characters`,
  "lone-surrogates": "must not contain lone surrogates",
  "same-as-name": "must not be the same as the name",
  "too-common": "is one of the most common; choose another",
} as const;

export type PasswordProblem = keyof typeof PASSWORD_PROBLEMS;

/** Undefined if the new password is accepted. */
export async function validatePassword(password: string, name: string): Promise<PasswordProblem | undefined> {
  const length = [...password].length;
  if (length < MIN_PASSWORD) return "too-short";
  if (length > MAX_PASSWORD) return "too-long";
  if (!password.isWellFormed()) return "lone-surrogates";
  // Full-width and zero-width characters do not make a password less common.
  const plain = password
    .normalize("NFKC")
    .replaceAll(/\p{Cf}/gu, "")
    .toLowerCase();
  if (plain === name.toLowerCase()) return "same-as-name";
  commonPasswords ??= loadCommonPasswords();
  return (await commonPasswords).has(plain) || new Set(plain).size === 1 ? "too-common" : undefined;
}

/** Loaded when first needed: it has tens of thousands of entries. */
async function loadCommonPasswords(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import("@zxcvbn-ts/language-common");
  return new Set<string>(dictionary["passwords-common"]);
}
