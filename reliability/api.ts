import { type Answer, ATOMIC, callServer } from "../test/harness.ts";

/** Posts operations; undefined when no whole answer came. */
export function post(port: number, operations: readonly object[]): Promise<Answer | undefined> {
  return call(port, "POST", "/v1/operations", JSON.stringify({ "atomic:operations": operations }), ATOMIC);
}

/** Undefined when no whole answer came: the server was lost on the way. */
export async function call(
  port: number,
  method: string,
  path: string,
  body?: string,
  contentType?: string,
): Promise<Answer | undefined> {
  const sent =
    body === undefined || contentType === undefined ? {} : { body, headers: { "Content-Type": contentType } };
  for (;;) {
    const answer = await callServer(port, method, path, sent).catch(() => undefined);
    // On a busy machine it is we who are slow: it did not arrive, so nothing was done, and it is sent again.
    if (answer?.status !== 408) return answer;
  }
}

/** The ids of the whole list in its order, page by page; or the first answer that is no page, undefined when none came. */
export async function walkList(port: number): Promise<readonly string[] | { readonly refused: Answer | undefined }> {
  const ids: string[] = [];
  for (let next: string | null = "/v1/subscriptions?page[size]=100"; next !== null; ) {
    const answer: Answer | undefined = await call(port, "GET", next);
    if (answer?.status !== 200) return { refused: answer };
    for (const { id } of answer.json.data) ids.push(id);
    next = answer.json.links.next;
  }
  return ids;
}

export async function readList(port: number): Promise<readonly string[]> {
  const list = await walkList(port);
  if ("refused" in list) throw new Error(`the list was answered ${list.refused?.status}: ${list.refused?.text}`);
  return list;
}

/** Words that only an engine or its driver would use. */
const DRIVER_WORDS = /sqlite|postgres|errno|\bSQL|disk|I\/O|database|ECONN|EPIPE|relation|syntax|terminat|at \S+:\d+/i;

/** What is wrong with an answer that should refuse: undefined when it is a whole 503 that says when to come again and nothing of the engine. */
export function wrongRefusal({ status, headers, text, json }: Answer): string | undefined {
  if (status !== 503) return `${status} where 503 was due: ${text.slice(0, 200)}`;
  if (!/^\d+$/.test(String(headers["retry-after"]))) return "a 503 without Retry-After";
  if (json?.errors?.[0]?.status !== "503" || json.data !== undefined) return `a 503 that is not whole: ${text}`;
  return DRIVER_WORDS.test(text) ? `a 503 in the words of the engine: ${text}` : undefined;
}

/** Whether a refusal promises that nothing was done. */
export function deniesAll({ text }: Answer): boolean {
  return text.includes("Nothing of this request was carried out");
}
