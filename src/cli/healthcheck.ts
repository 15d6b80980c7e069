import type { Config } from "../config/config.ts";

const TIMEOUT_MS = 3_000;

/** Checks whether the server that these settings describe is ready. */
export async function healthcheck({ host, port }: Config): Promise<{ ready: boolean; message: string }> {
  const address = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host;
  const url = `http://${address.includes(":") && !address.startsWith("[") ? `[${address}]` : address}:${port}/readyz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.body?.cancel();
    return { ready: response.ok, message: response.ok ? "ready" : `not ready: ${url} returned ${response.status}` };
  } catch (error) {
    return { ready: false, message: `not ready: ${url} is unreachable (${reasonOf(error)})` };
  }
}

/** Why a request failed: `fetch` only says that it did. */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return (cause as Error | undefined)?.message ?? message;
}
