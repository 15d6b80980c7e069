import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest();
const encode = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64url");

const [USER_PRESENT, USER_VERIFIED, HAS_KEY] = [0x01, 0x04, 0x40];

/** What the browser sends along with a response; changes make it invalid. */
export interface Ceremony {
  readonly challenge: string;
  readonly origin: string;
  readonly host: string;
  /** Instead of the type of this ceremony. */
  readonly type?: string;
  readonly isVerified?: boolean;
  readonly crossOrigin?: boolean;
}

/** An authenticator in software, with one passkey. */
export class Authenticator {
  readonly id = randomBytes(16).toString("base64url");
  counter = 0;
  userHandle = "";
  readonly #key: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };

  constructor() {
    this.#key = generateKeyPairSync("ec", { namedCurve: "P-256" });
  }

  /** The response of `navigator.credentials.create`, as JSON. */
  create(
    ceremony: Ceremony,
    { fmt = "none", statement = [0xa0] }: { fmt?: string; statement?: number[] } = {},
  ): object {
    const { x = "", y = "" } = this.#key.publicKey.export({ format: "jwk" });
    const coordinate = (label: number, value: string) => [label, 0x58, 32, ...Buffer.from(value, "base64url")];
    const key = Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, ...coordinate(0x21, x), ...coordinate(0x22, y)]);
    const id = Buffer.from(this.id, "base64url");
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, key]);
    const data = Buffer.concat([this.#data(ceremony, HAS_KEY), attested]);
    const text = (value: string) => [0x60 + value.length, ...Buffer.from(value)];
    const object = Buffer.from([
      ...[0xa3, ...text("fmt"), ...text(fmt), ...text("attStmt"), ...statement],
      ...[...text("authData"), 0x59, data.length >> 8, data.length & 255, ...data],
    ]);
    const clientDataJSON = this.#clientData(ceremony, "webauthn.create");
    return this.#credential({ clientDataJSON, attestationObject: encode(object), transports: ["internal"] });
  }

  /** The response of `navigator.credentials.get`, as JSON. */
  use(ceremony: Ceremony): object {
    const data = this.#data(ceremony, 0);
    const clientDataJSON = this.#clientData(ceremony, "webauthn.get");
    const signed = Buffer.concat([data, sha256(Buffer.from(clientDataJSON, "base64url"))]);
    const signature = encode(sign("sha256", signed, this.#key.privateKey));
    const { userHandle } = this;
    return this.#credential({ clientDataJSON, authenticatorData: encode(data), signature, userHandle });
  }

  #credential(response: object): object {
    return { id: this.id, rawId: this.id, type: "public-key", clientExtensionResults: {}, response };
  }

  #data({ host, isVerified = true }: Ceremony, flags: number): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    return Buffer.concat([
      sha256(host),
      Buffer.from([USER_PRESENT | (isVerified ? USER_VERIFIED : 0) | flags]),
      counter,
    ]);
  }

  #clientData({ challenge, origin, type, crossOrigin = false }: Ceremony, expected: string): string {
    return encode(JSON.stringify({ type: type ?? expected, challenge, origin, crossOrigin }));
  }
}
