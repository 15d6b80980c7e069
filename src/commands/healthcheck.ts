import type { Config } from "../config.ts";

const PATIENCE_MS = 3_000;

/** Whether the server with these settings is ready to serve; what it says if not. */
export async function healthcheck({ host, port }: Config): Promise<{ ready: boolean; words: string }> {
  const everywhere = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host;
  const url = `http://${everywhere.includes(":") && !everywhere.startsWith("[") ? `[${everywhere}]` : everywhere}:${port}/readyz`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
    await answer.body?.cancel();
    return { ready: answer.ok, words: answer.ok ? "ready" : `not ready: ${url} answered ${answer.status}` };
  } catch (error) {
    const { message, cause } = error as Error;
    return {
      ready: false,
      words: `not ready: ${url} cannot be reached (${(cause as Error | undefined)?.message ?? message})`,
    };
  }
}
