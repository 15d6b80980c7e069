import { useId, useState } from "preact/hooks";
import type { AdminClient, Invitation, NewLink } from "../../../client/src/admin.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { Field, useRestoreFocus } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { Pager } from "../ui/pager.tsx";
import { useLoaded, useSubmit } from "../ui/requests.ts";
import { format, formatDay, useWords } from "../words/index.ts";
import { LinkDialog } from "./link-dialog.tsx";

const DAY_MS = 24 * 60 * 60 * 1_000;
const DAYS = [1, 7, 30, 90];

interface InvitationsProps {
  readonly admin: AdminClient;
  readonly version: number;
  readonly onChange: () => void;
}

/** Creates, lists and revokes invitations. */
export function Invitations({ admin, version, onChange }: InvitationsProps) {
  const words = useWords().administration;
  const [number, setNumber] = useState(1);
  const { value: page, failure } = useLoaded(() => admin.invitations({ number }), [version, number]);
  const [revoking, setRevoking] = useState<Invitation | undefined>(undefined);
  useRestoreFocus(page);
  const nameOf = ({ note }: Invitation) => (note === "" ? words.noNote : note);
  return (
    <>
      <section class="stack" aria-labelledby="invite">
        <h2 id="invite">{words.inviteTitle}</h2>
        <InvitationForm admin={admin} onCreate={onChange} />
      </section>
      <section class="stack" aria-labelledby="invitations">
        <h2 id="invitations">{words.invitations}</h2>
        {failure !== undefined && (
          <p class="error" role="alert">
            {explainError(failure, words.errors)}
          </p>
        )}
        {page?.total === 0 && <p class="muted">{words.noInvitations}</p>}
        {page !== undefined && page.items.length > 0 && (
          <ul class="cards">
            {page.items.map((invitation) => (
              <li key={invitation.id}>
                <InvitationDetails invitation={invitation} name={nameOf(invitation)} />
                <button
                  type="button"
                  class="button danger"
                  aria-label={format(words.revokeLabel, { note: isolate(nameOf(invitation)) })}
                  onClick={() => setRevoking(invitation)}
                >
                  {words.revoke}
                </button>
              </li>
            ))}
          </ul>
        )}
        <Pager number={number} total={page?.total ?? 0} onChange={setNumber} />
        {revoking && (
          <Confirm
            title={format(words.revokeLabel, { note: isolate(nameOf(revoking)) })}
            lead={words.revokeLead}
            action={words.revoke}
            explain={(cause) => explainError(cause, words.errors)}
            onConfirm={async () => {
              await admin.revokeInvitation(revoking.id);
              setRevoking(undefined);
              onChange();
            }}
            onClose={() => setRevoking(undefined)}
          />
        )}
      </section>
    </>
  );
}

function InvitationDetails({ invitation, name }: { invitation: Invitation; name: string }) {
  const { apps, administration: words } = useWords();
  return (
    <div class="details">
      <strong>
        <bdi>{replaceControlCharacters(name)}</bdi>
      </strong>
      <br />
      <span class="muted">
        {[
          format(apps.createdOn, { day: formatDay(invitation.createdAt) }),
          format(words.until, { day: formatDay(invitation.expiresAt) }),
        ].join(" · ")}
      </span>
    </div>
  );
}

function InvitationForm({ admin, onCreate }: { admin: AdminClient; onCreate: () => void }) {
  const words = useWords().administration;
  const id = useId();
  const [note, setNote] = useState("");
  const [days, setDays] = useState(7);
  const [created, setCreated] = useState<NewLink | undefined>(undefined);
  const { isBusy, error, submit } = useSubmit(
    async () => {
      const expiresAt = new Date(Date.now() + days * DAY_MS);
      setCreated(await admin.invite({ note: note.trim(), expiresAt }));
      setNote("");
      onCreate();
    },
    (cause) => explainError(cause, words.errors),
  );
  return (
    <form class="panel stack" onSubmit={submit}>
      <Field
        label={words.note}
        hint={words.noteHint}
        error={error}
        value={note}
        maxLength={100}
        autocomplete="off"
        onInput={({ currentTarget }) => setNote(currentTarget.value)}
      />
      <div class="field">
        <label for={id}>{words.validFor}</label>
        <select id={id} value={days} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
          {DAYS.map((count) => (
            <option key={count} value={count}>
              {format(words.days, { n: count })}
            </option>
          ))}
        </select>
      </div>
      <p class="buttons">
        <button type="submit" class="button primary" aria-disabled={isBusy}>
          {words.create}
        </button>
      </p>
      {created && (
        <LinkDialog
          title={words.linkTitle}
          lead={words.linkLead}
          link={created}
          onClose={() => setCreated(undefined)}
        />
      )}
    </form>
  );
}
