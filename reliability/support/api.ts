import { ATOMIC, callServer, type HttpResponse } from "../../test/support/server.ts";

type Headers = Readonly<Record<string, string>>;

/** Posts operations; undefined without a complete response. */
export function post(
  port: number,
  operations: readonly object[],
  headers?: Headers,
): Promise<HttpResponse | undefined> {
  return call(port, "POST", "/v1/operations", JSON.stringify({ "atomic:operations": operations }), ATOMIC, headers);
}

/** Posts operations; throws unless each of them succeeds. */
export async function addAll(port: number, operations: readonly object[]): Promise<void> {
  const response = await post(port, operations);
  if (response?.status !== 200 || response.text.includes('"errors"'))
    throw new Error(`${response?.status}: ${response?.text.slice(0, 500)}`);
}

/** Undefined without a complete response, because the connection was lost. */
export async function call(
  port: number,
  method: string,
  path: string,
  body?: string,
  contentType?: string,
  headers: Headers = {},
): Promise<HttpResponse | undefined> {
  const sent =
    body === undefined || contentType === undefined
      ? { headers }
      : { body, headers: { "Content-Type": contentType, ...headers } };
  for (;;) {
    const response = await callServer(port, method, path, sent).catch(() => undefined);
    // On a busy machine this client may be too slow. Nothing was changed, so send it again.
    if (response?.status !== 408) return response;
  }
}

/** The ids of the whole list in order, or the first response that is not a page. */
export async function walkList(
  port: number,
  headers?: Headers,
): Promise<readonly string[] | { readonly refused: HttpResponse | undefined }> {
  const ids: string[] = [];
  for (let next: string | null = "/v1/subscriptions?page[size]=100"; next !== null; ) {
    const response: HttpResponse | undefined = await call(port, "GET", next, undefined, undefined, headers);
    if (response?.status !== 200) return { refused: response };
    for (const { id } of response.json.data) ids.push(id);
    next = response.json.links.next;
  }
  return ids;
}

export async function readList(port: number, headers?: Headers): Promise<readonly string[]> {
  const list = await walkList(port, headers);
  if ("refused" in list) throw new Error(`GET of the list returned ${list.refused?.status}: ${list.refused?.text}`);
  return list;
}

/** Words that only come from an engine or its driver. */
const DRIVER_WORDS = /sqlite|postgres|errno|\bSQL|disk|I\/O|ECONN|EPIPE|relation|syntax|terminat|at \S+:\d+/i;

/** What is wrong with a refusal; undefined for a complete 503 with Retry-After that says nothing about the engine. */
export function wrongRefusal({ status, headers, text, json }: HttpResponse): string | undefined {
  if (status !== 503) return `${status} instead of 503: ${text.slice(0, 200)}`;
  if (!/^\d+$/.test(String(headers["retry-after"]))) return "a 503 without Retry-After";
  if (json?.errors?.[0]?.status !== "503" || json.data !== undefined) return `an incomplete 503: ${text}`;
  return DRIVER_WORDS.test(text) ? `a 503 with words of the engine: ${text}` : undefined;
}

/** Whether a refusal promises that nothing was changed. */
export function deniesAll({ json }: HttpResponse): boolean {
  const code = json?.errors?.[0]?.code;
  return typeof code === "string" && code !== "outcome-unknown" && code !== "import-interrupted";
}
