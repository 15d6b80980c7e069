import { serverUrl } from "../server/server.ts";

/** The only script URL that the security policy of the page allows. */
const SCRIPT = `${serverUrl}/service-worker.js`;

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: () => string },
  ): { createScriptURL(url: string): string };
}

/**
 * Lets this browser open the page without the server. Browsers allow that on https and localhost only. Nothing depends on
 * it, so a failure is ignored: the certificate may be untrusted, or storage blocked.
 */
export function enableOfflineStart(): void {
  const { serviceWorker } = navigator as { readonly serviceWorker?: ServiceWorkerContainer };
  if (serviceWorker === undefined) return;
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy("service-worker", { createScriptURL: () => SCRIPT });
  const url = policy?.createScriptURL("") ?? SCRIPT;
  const register = () =>
    void serviceWorker.register(url, { scope: `${serverUrl}/`, updateViaCache: "none" }).catch(() => {});
  // It downloads every view, which must not delay the first one.
  if (document.readyState === "complete") register();
  else addEventListener("load", register, { once: true });
}
