import { isValidAt, NOBODY } from "../accounts/account-store.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { Administration, INVITATION_DAYS } from "../accounts/administration.ts";
import type { AdminAction } from "../accounts/administration-store.ts";
import { asUser } from "../accounts/caller.ts";
import { CREDENTIAL_KINDS } from "../accounts/credential-kinds.ts";
import { referenceOf } from "../accounts/names.ts";
import { isAccountRefusal } from "../accounts/refusals.ts";
import { roleOf, validateLabel } from "../http/api/documents/accounts.ts";
import { isUuidLike } from "../jsonapi/document.ts";
import { UserError } from "../util/user-error.ts";
import { accountOf, DAY_MS, describeRefusal, readDays, withAccounts } from "./accounts.ts";
import { pluralize, type Terminal } from "./terminal.ts";

const PAGE_SIZE = 100;
/** Commands are run by the operator, who needs no account. */
const OPERATOR = asUser(NOBODY);

export async function listUsers(terminal: Terminal, asJson: boolean): Promise<void> {
  await withAdministration(terminal, async (administration) => {
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const { accounts: page } = await administration.store.page({ offset, size: PAGE_SIZE });
      for (const person of page) {
        const { name, issuer, createdAt, subscriptions, disabledAt, seenAt } = person;
        const line = {
          name,
          created_at: createdAt.toISOString(),
          subscriptions,
          issuer: issuer === "" ? null : issuer,
          role: roleOf(person),
          last_seen_on: seenAt?.toISOString().slice(0, 10) ?? null,
          stored_rows: person.rows,
          state: disabledAt === undefined ? "enabled" : "disabled",
        };
        await terminal.writeRecord(line, asJson);
      }
      if (page.length < PAGE_SIZE) return;
    }
  });
}

/** The message after each change. */
const CHANGED: Readonly<Record<AdminAction, (name: string) => string>> = {
  disable: (name) => `Disabled "${name}": nobody can sign in to it, and its apps have no access. Its data is kept.`,
  enable: (name) => `Enabled "${name}".`,
  promote: (name) => `"${name}" is now an administrator.`,
  demote: (name) => `"${name}" is no longer an administrator.`,
};

export async function changeUser(terminal: Terminal, name: string, action: AdminAction): Promise<void> {
  await withAdministration(terminal, async (administration, accounts) => {
    const account = await accountOf(terminal, accounts, name);
    const refused = await administration.change(OPERATOR, account.user, action, terminal.context.now());
    if (refused !== undefined) throw new UserError(describeRefusal(refused));
    terminal.say(CHANGED[action](referenceOf(account)));
  });
}

export async function createResetLink(terminal: Terminal, name: string): Promise<void> {
  await withAdministration(terminal, async (administration, accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    const issued = await administration.createResetLink(OPERATOR, user, terminal.context.now());
    const full = `There are already ${CREDENTIAL_KINDS["password-reset"].max} unused reset links for "${name}". Wait until one expires, or set a password: earmark user passwd ${name}`;
    if (isAccountRefusal(issued)) throw new UserError(describeRefusal(issued, full));
    await writeLink(terminal, "/reset-password", issued.secret, `within a day to set a new password for "${name}"`);
  });
}

export async function resetSecondFactor(terminal: Terminal, name: string): Promise<void> {
  await withAdministration(terminal, async (_administration, accounts) => {
    const { user } = await accountOf(terminal, accounts, name);
    const refusal = await accounts.secondFactor.remove(OPERATOR, terminal.context.now(), user);
    if (refusal !== undefined) throw new UserError(describeRefusal(refusal));
    terminal.say(
      `"${name}" has no authenticator app any more: the password is enough to sign in. Sessions and passkeys remain.`,
    );
  });
}

export async function invite(terminal: Terminal, days: string | undefined, note = ""): Promise<void> {
  const lifetimeDays = readDays(days) ?? INVITATION_DAYS;
  const problem = note === "" ? undefined : validateLabel(note);
  if (problem !== undefined) throw new UserError(`--note ${problem}.`);
  await withAdministration(terminal, async (administration) => {
    const now = terminal.context.now();
    const issued = await administration.invite(OPERATOR, now, {
      note,
      expiresAt: new Date(now.getTime() + lifetimeDays * DAY_MS),
    });
    const full = `There are already ${CREDENTIAL_KINDS.invitation.max} unused invitations. Revoke one: earmark user revoke-invitation ID`;
    if (isAccountRefusal(issued)) throw new UserError(describeRefusal(issued, full));
    await writeLink(terminal, "/join", issued.secret, `within ${pluralize(lifetimeDays, "day")} to create one account`);
  });
}

/** Without EARMARK_PUBLIC_URL only the path of the link is known. */
async function writeLink(terminal: Terminal, path: string, secret: string, purpose: string): Promise<void> {
  const { publicUrl, basePath } = terminal.context.config();
  terminal.say(`Open this ${publicUrl === undefined ? "path on your server" : "link"} ${purpose}:`);
  await terminal.write(`${publicUrl ?? basePath}${path}#${secret}\n`);
}

export async function listInvitations(terminal: Terminal, asJson: boolean): Promise<void> {
  await withAdministration(terminal, async (_administration, accounts) => {
    for (const invitation of await accounts.store.listCredentials(NOBODY, "invitation")) {
      if (!isValidAt(invitation, terminal.context.now())) continue;
      const { id, createdAt, expiresAt, label } = invitation;
      const times = { created_at: createdAt.toISOString(), expires_at: expiresAt?.toISOString() ?? null };
      await terminal.writeRecord({ id, ...times, note: label }, asJson);
    }
  });
}

export async function revokeInvitation(terminal: Terminal, id: string): Promise<void> {
  await withAdministration(terminal, async (_administration, accounts) => {
    const now = terminal.context.now();
    if (!isUuidLike(id) || !(await accounts.removeCredential(OPERATOR, "invitation", id.toLowerCase(), now)))
      throw new UserError(`No invitation with id ${id}. See: earmark user invitations`);
    terminal.say("Invitation revoked.");
  });
}

/** Prints the audit log, newest first. */
export async function listAuditLog(terminal: Terminal, asJson: boolean): Promise<void> {
  await withAdministration(terminal, async (administration) => {
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const { entries } = await administration.store.auditLog({ offset, size: PAGE_SIZE });
      for (const { at, action, actor, address, target } of entries) {
        const from = address === "" ? null : address;
        await terminal.writeRecord({ acted_at: at.toISOString(), action, actor, target, address: from }, asJson);
      }
      if (entries.length < PAGE_SIZE) return;
    }
  });
}

function withAdministration<T>(
  terminal: Terminal,
  work: (administration: Administration, accounts: Accounts) => Promise<T>,
): Promise<T> {
  return withAccounts(terminal, (accounts, store) =>
    work(new Administration(store.administration, accounts), accounts),
  );
}
