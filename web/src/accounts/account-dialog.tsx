import { useState } from "preact/hooks";
import type { AccountSummary, AdminClient, NewLink } from "../../../client/src/admin.ts";
import { anonymousClient, currentUser } from "../server/server.ts";
import { Dialog, Field } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { format, useWords } from "../words/index.ts";
import { LinkDialog } from "./link-dialog.tsx";
import { OneTimeCodeField, useOneTimeCode } from "./one-time-code.tsx";

const ACTIONS = ["resetPassword", "resetSecondFactor", "promote", "demote", "enable", "disable", "delete"] as const;
export type Action = (typeof ACTIONS)[number];
const DANGEROUS: readonly Action[] = ["resetSecondFactor", "demote", "disable", "delete"];
/** The server requires a recent sign-in for these, since a browser may have been left open. */
const NEEDS_SIGN_IN: readonly Action[] = ["resetSecondFactor", "delete"];

interface AccountDialogProps {
  readonly admin: AdminClient;
  readonly account: AccountSummary;
  /** What the server would refuse, because nobody else is an administrator. */
  readonly blocked: readonly Action[];
  readonly onChange: () => void;
  readonly onClose: () => void;
}

/** What an administrator can do with an account. Every action is explained and must be confirmed. */
export function AccountDialog({ admin, account, blocked, onChange, onClose }: AccountDialogProps) {
  const words = useWords().administration;
  const [action, setAction] = useState<Action | undefined>(undefined);
  const [link, setLink] = useState<NewLink | undefined>(undefined);
  const [password, setPassword] = useState("");
  const code = useOneTimeCode();
  const me = currentUser.value;
  // Otherwise an identity provider or a proxy signs the administrator in.
  const hasPassword = me?.issuer === null && me.credential !== null;
  const name = isolate(account.name);
  if (link !== undefined)
    return <LinkDialog title={words.resetTitle} lead={words.resetLead} link={link} onClose={onClose} />;
  if (action === undefined) {
    return (
      <Dialog title={format(words.manageLabel, { name })} onClose={onClose}>
        {blocked.length > 0 && <p class="message">{words.errors["last-admin"]}</p>}
        <p class="buttons">
          {ACTIONS.filter((each) => isPossible(each, account) && !blocked.includes(each)).map((each) => (
            <button
              key={each}
              type="button"
              class={DANGEROUS.includes(each) ? "button danger" : "button"}
              onClick={() => setAction(each)}
            >
              {words[each]}
            </button>
          ))}
        </p>
      </Dialog>
    );
  }
  const needsSignIn = NEEDS_SIGN_IN.includes(action) && hasPassword;
  const apply = async (oneTimeCode: string | undefined) => {
    if (action === "resetPassword") {
      setLink(await admin.createResetLink(account.id));
      return onChange();
    }
    if (me !== undefined && needsSignIn) await anonymousClient.signIn({ name: me.name, password, oneTimeCode });
    if (action === "delete") await admin.deleteAccount(account.id);
    else if (action === "resetSecondFactor") await admin.resetSecondFactor(account.id);
    else await admin.changeAccount(account.id, CHANGES[action]);
    showNotice(action === "delete" ? format(words.deleted, { name }) : format(words.changed, { name }));
    onClose();
    onChange();
  };
  return (
    <Confirm
      title={`${words[action]}: ${name}`}
      lead={action === "resetPassword" ? words.resetLead : words[`${action}Lead`]}
      action={words[action]}
      isHarmless={!DANGEROUS.includes(action)}
      explain={(cause) => explainError(cause, words.errors)}
      onConfirm={() => code.ask(apply)}
      onClose={onClose}
    >
      {needsSignIn && (
        <Field
          label={words.yourPassword}
          type="password"
          autocomplete="current-password"
          required
          maxLength={256}
          value={password}
          onInput={({ currentTarget }) => setPassword(currentTarget.value)}
        />
      )}
      <OneTimeCodeField code={code} />
    </Confirm>
  );
}

const CHANGES = {
  promote: { role: "administrator" },
  demote: { role: "member" },
  enable: { disabled: false },
  disable: { disabled: true },
} as const;

function isPossible(action: Action, { role, disabledAt, issuer, hasSecondFactor }: AccountSummary): boolean {
  switch (action) {
    case "resetSecondFactor":
      return hasSecondFactor;
    case "resetPassword":
      return disabledAt === null && issuer === null;
    case "promote":
      return role === "member";
    case "demote":
      return role === "administrator";
    case "enable":
      return disabledAt !== null;
    case "disable":
      return disabledAt === null;
    case "delete":
      return true;
  }
}
