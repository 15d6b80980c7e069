import { useState } from "preact/hooks";
import type { AdminClient, AuditEntry } from "../../../client/src/admin.ts";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { Pager } from "../ui/pager.tsx";
import { useLoaded } from "../ui/requests.ts";
import { format, formatDayAndTime, useWords } from "../words/index.ts";

const COMMAND_LINE = "command line";

export function AuditLog({ admin, version }: { admin: AdminClient; version: number }) {
  const words = useWords().administration;
  const [number, setNumber] = useState(1);
  const { value: page, failure } = useLoaded(() => admin.auditLog({ number }), [version, number]);
  return (
    <section class="stack" aria-labelledby="audit">
      <h2 id="audit">{words.audit}</h2>
      <p class="muted">{words.auditLead}</p>
      {failure !== undefined && (
        <p class="error" role="alert">
          {explainError(failure, words.errors)}
        </p>
      )}
      <ul class="cards">
        {page?.items.map((entry) => (
          <li key={entry.id}>
            <div class="details">
              {describe(entry, words.actions, words.noNote)}
              <br />
              <span class="muted">
                {[
                  entry.actor === COMMAND_LINE ? words.commandLine : isolate(entry.actor),
                  formatDayAndTime(entry.actedAt),
                  ...(entry.address === null ? [] : [format(words.from, { address: isolate(entry.address) })]),
                ].join(" · ")}
              </span>
            </div>
          </li>
        ))}
      </ul>
      <Pager number={number} total={page?.total ?? 0} onChange={setNumber} />
    </section>
  );
}

/** A newer server may have actions that this page does not know. */
function describe({ action, target }: AuditEntry, actions: Readonly<Record<string, string>>, noNote: string): string {
  const name = target === "" ? noNote : isolate(target);
  const known = Object.hasOwn(actions, action) ? actions[action] : undefined;
  return known === undefined ? `${action}: ${name}` : format(known, { target: name });
}
