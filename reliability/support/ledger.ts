import { add, newId } from "../../test/support/server.ts";
import { call, deniesAll, post, wrongRefusal } from "./api.ts";

const BATCH = 100;

/** What a client knows about a batch: nothing without a response; a refusal may rule it out. */
type Fate = "unknown" | "confirmed" | "denied";

/** What clients have sent, and what they know about it. */
export class Ledger {
  readonly confirmed = new Set<string>();
  readonly wrongResponses: string[] = [];
  refusals = 0;
  readonly lost = new Set<string>();
  readonly neverSent = new Set<string>();
  readonly torn = new Set<readonly string[]>();
  readonly #batches = new Map<readonly string[], Fate>();
  readonly #sent = new Set<string>();
  /** Removals by id; true when confirmed. */
  readonly #removals = new Map<string, boolean>();

  noteBatch(ids: readonly string[], fate: Fate): void {
    this.#batches.set(ids, fate);
    for (const id of ids) {
      this.#sent.add(id);
      if (fate === "confirmed") this.confirmed.add(id);
    }
  }

  /** Undefined without a response; no ids after a refusal. */
  async sendBatch(
    port: number,
    size = BATCH,
    headers?: Readonly<Record<string, string>>,
  ): Promise<readonly string[] | undefined> {
    const ids = Array.from({ length: size }, newId);
    this.noteBatch(ids, "unknown");
    const response = await post(
      port,
      ids.map((id) => add(id, `https://feeds.example/${id}`)),
      headers,
    );
    if (response?.status === 200) {
      const results: readonly { data?: { id: string } }[] = response.json["atomic:results"];
      if (results.map(({ data }) => data?.id).join() === ids.join()) this.noteBatch(ids, "confirmed");
      else this.wrongResponses.push(`new feeds were answered ${response.text.slice(0, 200)}`);
      return ids;
    }
    if (response !== undefined) this.refusals += 1;
    const wrong = response && wrongRefusal(response);
    if (wrong !== undefined) this.wrongResponses.push(wrong);
    if (response !== undefined && deniesAll(response)) this.noteBatch(ids, "denied");
    return response && [];
  }

  async sendRemoval(port: number, id: string): Promise<void> {
    this.#removals.set(id, false);
    const response = await call(port, "DELETE", `/v1/subscriptions/${id}`);
    if (response?.status === 204) this.#removals.set(id, true);
  }

  /** Finds items that are lost, were never sent, or exist despite a removal or a refusal, and partial batches. */
  compare(list: readonly string[]): string[] {
    const found = new Set(list);
    const wrong: string[] = [];
    const lost = [...this.confirmed].filter((id) => !found.has(id) && !this.#removals.has(id));
    const neverSent = list.filter((id) => !this.#sent.has(id));
    const back = list.filter((id) => this.#removals.get(id) === true);
    const torn = [...this.#batches].filter(([ids, fate]) => {
      const there = ids.filter((id) => found.has(id) || this.#removals.has(id)).length;
      return fate === "denied" ? there > 0 : there > 0 && there < ids.length;
    });
    if (list.length !== found.size) wrong.push("an item is in the list twice");
    if (lost.length > 0) wrong.push(`${lost.length} confirmed items are lost`);
    if (neverSent.length > 0) wrong.push(`${neverSent.length} items were never sent`);
    if (back.length > 0) wrong.push(`${back.length} removed items came back`);
    if (torn.length > 0) wrong.push(`${torn.length} batches are stored in part, or although they were refused`);
    for (const id of lost) this.lost.add(id);
    for (const id of neverSent) this.neverSent.add(id);
    for (const [ids] of torn) this.torn.add(ids);
    return wrong;
  }
}
