/** Why the browser creates no passkeys here; undefined if it does. They are bound to a host name, which an IP address is not. */
export const passkeyObstacle: "plainHttp" | "ipAddress" | "oldBrowser" | undefined = findObstacle();

function findObstacle(): typeof passkeyObstacle {
  if (!isSecureContext) return "plainHttp";
  if (/^[\d.]+$|^\[/.test(location.hostname)) return "ipAddress";
  if ("PublicKeyCredential" in globalThis && "parseRequestOptionsFromJSON" in PublicKeyCredential) return undefined;
  return "oldBrowser";
}

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
