import { argon2Sync, randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { NOBODY } from "../../src/accounts/account-store.ts";
import { Accounts } from "../../src/accounts/accounts.ts";
import { Administration } from "../../src/accounts/administration.ts";
import { asUser, type UserId } from "../../src/accounts/caller.ts";
import { isAccountRefusal } from "../../src/accounts/refusals.ts";
import type { Store } from "../../src/store/shared/contract.ts";
import { type CallOptions, callServer, isStream, PLAIN } from "./server.ts";

/** Someone with an account who is signed in. */
export interface SignedIn {
  readonly name: string;
  readonly password: string;
  /** The secret of the session. */
  readonly session: string;
  /** As a browser sends it. */
  readonly cookie: string;
}

type Headers = Readonly<Record<string, string>>;

let networks = 0;

/** Headers of a request from a separate network, because sign-in attempts are counted per network, up to a /24. */
export function fromElsewhere(): Headers {
  networks += 1;
  return { "X-Forwarded-For": `10.${(networks >> 8) & 255}.${networks & 255}.1` };
}

/** A document with one resource object, for the account routes. */
export function document(type: string, attributes: object): string {
  return JSON.stringify({ data: { type, attributes } });
}

/** Posts a document and returns what was created; fails if nothing was. */
async function make(port: number, path: string, headers: Headers, body: string) {
  const options: CallOptions = { headers: { "Content-Type": PLAIN, ...headers }, body };
  const response = await callServer(port, "POST", path, options);
  if (response.status !== 201) throw new Error(`POST ${path}: ${response.status} ${response.text}`);
  const session = /^[^=]*earmark=([\w-]{43});/.exec(String(response.headers["set-cookie"] ?? ""))?.[1] ?? "";
  return { id: String(response.json.data.id), token: String(response.json.data.attributes.token), session };
}

/** A valid hash of a password with the lowest costs, for tests of something else: the server's own costs take 50 ms. */
export function hashCheaply(password: string): string {
  const nonce = randomBytes(16);
  const costs = { memory: 8, passes: 1, parallelism: 1, tagLength: 32 };
  const [salt, hash] = [nonce, argon2Sync("argon2id", { message: password, nonce, ...costs })].map((bytes) =>
    bytes.toString("base64").replaceAll("=", ""),
  );
  return `$argon2id$v=19$m=8,t=1,p=1$${salt}$${hash}`;
}

/** Creates an account in the database, and signs in. Every later sign-in is fast, too. */
export async function createAccount(
  { accounts: store }: Pick<Store, "accounts">,
  { name, password, label = "" }: { readonly name: string; readonly password: string; readonly label?: string },
  at: Date,
): Promise<SignedIn & { readonly user: UserId }> {
  const hash = hashCheaply(password);
  const account = { name, issuer: "", passwordHash: hash, isCreatedByOperator: false, invitationHash: undefined };
  const user = await store.create(randomInt(2, 2 ** 48 - 1), account, at);
  if (typeof user === "string") throw new Error(user);
  const proof = { password: { passwordHash: hash } };
  const issued = await new Accounts(store, { signUp: false }).openSession({ user }, proof, label, at);
  if (isAccountRefusal(issued)) throw new Error(issued.reason);
  return { user, name, password, session: issued.secret, cookie: `earmark=${issued.secret}` };
}

/** Creates an account on a server with open sign-up, and signs in. */
export async function signUp(port: number, name: string, password: string, headers: Headers = {}): Promise<SignedIn> {
  const { session } = await make(port, "/v1/accounts", headers, document("account", { name, password }));
  return { name, password, session, cookie: `earmark=${session}` };
}

/** The secret of a new invitation. */
export async function inviteTo(store: Store, at = new Date()): Promise<string> {
  const administration = new Administration(store.administration, new Accounts(store.accounts, { signUp: false }));
  const issued = await administration.invite(asUser(NOBODY), at);
  if (isAccountRefusal(issued)) throw new Error(issued.reason);
  return issued.secret;
}

/** Opens another session. */
export async function signIn(
  port: number,
  { name, password }: { readonly name: string; readonly password: string },
  headers: Headers = {},
): Promise<SignedIn & { readonly id: string }> {
  const { id, session } = await make(port, "/v1/sessions", headers, document("session", { name, password }));
  return { name, password, id, session, cookie: `earmark=${session}` };
}

export function newToken(
  port: number,
  { cookie }: { readonly cookie: string },
  attributes: { readonly label: string; readonly scope: "read" | "write"; readonly expires_at?: string },
): Promise<{ readonly id: string; readonly token: string }> {
  return make(port, "/v1/tokens", { Cookie: cookie }, document("token", attributes));
}

/** Sends bytes over a new connection, and returns everything received until it is closed. */
export function exchange(port: number, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1");
    // Longer than the server waits for anything.
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no end of the response to ${bytes}`)));
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (isStream(chunk.toString("latin1"))) socket.destroy();
    });
    socket.on("close", () => resolve(Buffer.concat(chunks).toString()));
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // A client that is refused while it is still sending may find the connection closed.
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
    socket.write(bytes);
  });
}

/** The bytes of a request that closes the connection. */
export function writeRequest(method: string, target: string, headers: Headers, body: string | undefined): string {
  const all: Record<string, string> = { Host: "127.0.0.1", ...headers };
  if (body !== undefined) all["Content-Length"] = String(Buffer.byteLength(body));
  const lines = Object.entries({ ...all, Connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`;
}

/** Sends a request except for its last byte, awaits `meanwhile`, and then sends the last byte. */
export async function holdBack(
  port: number,
  bytes: string,
  meanwhile: () => Promise<unknown>,
): Promise<{ status: number; bytes: string }> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => (text += chunk)).on("error", () => undefined);
  const closed = once(socket, "close");
  socket.write(bytes.slice(0, -1));
  // Long enough for the server to authenticate the request; otherwise that alone would reject it.
  await sleep(20);
  await meanwhile();
  socket.write(bytes.slice(-1));
  await closed;
  return { status: Number(text.split(" ")[1]), bytes: text.replace(/^Date: .*\r\n/im, "") };
}
