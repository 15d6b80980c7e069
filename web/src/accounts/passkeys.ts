/** Browsers offer passkeys only over https, and bind them to a host name, which an IP address is not. */
export const canUsePasskeys =
  isSecureContext &&
  "PublicKeyCredential" in globalThis &&
  "parseRequestOptionsFromJSON" in PublicKeyCredential &&
  !/^[\d.]+$|^\[/.test(location.hostname);

/** Why the browser returned no passkey: the user canceled or waited too long, or the device already has one. */
export type PasskeyFailure = "canceled" | "exists";

/** Asks the user for one of their passkeys for this site. */
export function requestPasskey(options: object): Promise<object | PasskeyFailure> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON);
  return ask(() => navigator.credentials.get({ publicKey }));
}

export function createPasskey(options: object): Promise<object | PasskeyFailure> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON);
  return ask(() => navigator.credentials.create({ publicKey }));
}

async function ask(request: () => Promise<Credential | null>): Promise<object | PasskeyFailure> {
  try {
    return ((await request()) as PublicKeyCredential).toJSON();
  } catch (error) {
    return error instanceof DOMException && error.name === "InvalidStateError" ? "exists" : "canceled";
  }
}
