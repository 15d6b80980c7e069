import { useState } from "preact/hooks";
import { type AccountSummary, type AdminPage, createAdminClient } from "../../../client/src/admin.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { currentUser, fetchSignedIn, NO_TIMEOUT, serverUrl } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { useRestoreFocus } from "../ui/components.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { Pager } from "../ui/pager.tsx";
import { useLoaded } from "../ui/requests.ts";
import { format, formatDay, useWords } from "../words/index.ts";
import { AccountDialog, type Action } from "./account-dialog.tsx";
import { AuditLog } from "./audit-log.tsx";
import { Invitations } from "./invitations.tsx";
import { signedInRequests } from "./sign-in-requests.ts";

/** Without retries, like other forms. */
const admin = createAdminClient({ url: serverUrl, fetch: fetchSignedIn, retries: 0, timeoutMs: NO_TIMEOUT });
/** The server stops counting here. */
const MAX_ROWS = 10_000;

/** For administrators: accounts, invitations and the audit log. */
export function AdministrationView() {
  const words = useWords().administration;
  const isAdmin = useValue(currentUser)?.role === "administrator";
  const [version, setVersion] = useState(0);
  const onChange = () => setVersion((current) => current + 1);
  const secondFactor = useLoaded(() => (isAdmin ? signedInRequests.secondFactor() : Promise.resolve(undefined)), []);
  if (isAdmin && secondFactor.value === undefined && secondFactor.failure === undefined) return null;
  return (
    <>
      <div class="page-head">
        <h1>{words.title}</h1>
      </div>
      {secondFactor.value?.isRequired === true ? (
        <ErrorMessage
          text={words.errors["second-factor-setup-required"]}
          action={words.setUpSecondFactor}
          onAction={() => location.assign("#account")}
        />
      ) : isAdmin ? (
        <>
          <p class="muted">{words.lead}</p>
          <Accounts version={version} onChange={onChange} />
          <Invitations admin={admin} version={version} onChange={onChange} />
          <AuditLog admin={admin} version={version} />
        </>
      ) : (
        <p>{words.errors["admin-required"]}</p>
      )}
    </>
  );
}

function Accounts({ version, onChange }: { version: number; onChange: () => void }) {
  const words = useWords().administration;
  const me = useValue(currentUser);
  const [number, setNumber] = useState(1);
  const { value: page, failure, load } = useLoaded(() => admin.accounts({ number }), [version, number]);
  const [chosen, setChosen] = useState<AccountSummary | undefined>(undefined);
  useRestoreFocus(page);
  return (
    <section class="stack" aria-labelledby="accounts">
      <h2 id="accounts">{words.accounts}</h2>
      {failure !== undefined && <ErrorMessage text={explainError(failure, words.errors)} onAction={load} />}
      <ul class="cards">
        {page?.items.map((account) => (
          <li key={account.id}>
            <AccountDetails account={account} isSelf={account.name === me?.name && account.issuer === me.issuer} />
            <button
              type="button"
              class="button"
              aria-label={format(words.manageLabel, { name: isolate(account.name) })}
              onClick={() => setChosen(account)}
            >
              {words.manage}
            </button>
          </li>
        ))}
      </ul>
      <Pager number={number} total={page?.total ?? 0} onChange={setNumber} />
      {chosen && (
        <AccountDialog
          admin={admin}
          account={chosen}
          blocked={page === undefined ? [] : blockedActions(chosen, page)}
          onChange={onChange}
          onClose={() => setChosen(undefined)}
        />
      )}
    </section>
  );
}

/** Empty if there may be administrators on another page; the server decides then. */
function blockedActions({ id }: AccountSummary, { items, total }: AdminPage<AccountSummary>): readonly Action[] {
  const admins = items.filter(({ role, disabledAt }) => role === "administrator" && disabledAt === null);
  if (items.length < total || admins.length !== 1 || admins[0]?.id !== id) return [];
  return total === 1 ? ["demote", "disable"] : ["demote", "disable", "delete"];
}

function AccountDetails({ account, isSelf }: { account: AccountSummary; isSelf: boolean }) {
  const core = useWords();
  const words = core.administration;
  const { subscriptions, storedRows } = account;
  const states = [
    ...(isSelf ? [words.you] : []),
    ...(account.role === "administrator" ? [words.administrator] : []),
    ...(account.disabledAt ? [words.disabled] : []),
  ];
  return (
    <div class="details">
      <strong>
        <bdi>{replaceControlCharacters(account.name)}</bdi>
      </strong>
      {states.length > 0 && ` (${states.join(", ")})`}
      <br />
      <span class="muted">
        {[
          format(core.account.since, { day: formatDay(account.createdAt) }),
          account.lastSeenOn ? format(words.seen, { day: formatDay(account.lastSeenOn) }) : words.neverSeen,
          format(core.count, { n: subscriptions }),
          storedRows >= MAX_ROWS ? format(words.rowsOrMore, { n: storedRows }) : format(words.rows, { n: storedRows }),
        ].join(" · ")}
      </span>
    </div>
  );
}
