import { useEffect, useState } from "preact/hooks";
import type { Credential } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { Devices, useDevices } from "../apps/devices.tsx";
import { Tokens } from "../apps/tokens.tsx";
import { deleteLocalCopy, sync } from "../list/subscription-list.ts";
import { anonymousClient, client, currentUser, forgetUser, noRetryClient } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { Dialog, download, Field, useRestoreFocus } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { useSubmit } from "../ui/requests.ts";
import { format, formatDay, formatDayAndTime, useWords } from "../words/index.ts";
import { isWrongCode, OneTimeCodeField, useOneTimeCode } from "./one-time-code.tsx";
import { SecondFactor } from "./second-factor.tsx";
import { explainFormError } from "./sign-in.tsx";
import { Passkeys, SingleSignOn } from "./sign-in-methods.tsx";

export function AccountView() {
  const { account, administration } = useWords();
  const me = useValue(currentUser);
  const devices = useDevices({ polls: false });
  const [isDeleting, setDeleting] = useState(false);
  if (me === undefined) return null;
  // Otherwise an identity provider or a proxy signs the user in.
  const hasPassword = me.issuer === null && me.credential !== null;
  return (
    <>
      <div class="page-head">
        <h1>{account.title}</h1>
        {me.credential !== null && (
          <button type="button" class="button" onClick={() => void signOut()}>
            {account.signOut}
          </button>
        )}
      </div>
      <p>
        <strong>
          <bdi>{replaceControlCharacters(me.name)}</bdi>
        </strong>
        {me.createdAt && <span class="muted"> · {format(account.since, { day: formatDay(me.createdAt) })}</span>}
      </p>
      {me.credential === null && <p class="muted">{account.byProxy}</p>}
      {me.role === "administrator" && (
        <p class="buttons">
          <a class="button" href="#people">
            {administration.title}
          </a>
        </p>
      )}
      <Sessions />
      <Devices {...devices} />
      <Tokens version={undefined} />
      {hasPassword && <ChangePassword name={me.name} />}
      {hasPassword && <SecondFactor />}
      <Passkeys browser={describeBrowser(navigator.userAgent) ?? account.unknownBrowser} />
      <SingleSignOn issuer={me.issuer} />
      <section class="stack" aria-labelledby="data">
        <h2 id="data">{account.data}</h2>
        <p class="muted">{account.exportLead}</p>
        <p class="buttons">
          <button type="button" class="button" onClick={() => void exportAccount()}>
            {account.export}
          </button>
          <button type="button" class="button danger" onClick={() => setDeleting(true)}>
            {account.delete}
          </button>
        </p>
      </section>
      {isDeleting && <DeleteAccount name={hasPassword ? me.name : undefined} onClose={() => setDeleting(false)} />}
    </>
  );
}

const MAX_FLUSH_MS = 3_000;

async function signOut(): Promise<void> {
  // After signing out, the page could no longer send edits. The timeout is for a server that does not respond.
  await sync(AbortSignal.timeout(MAX_FLUSH_MS)).catch(() => {});
  try {
    await anonymousClient.signOut();
    await deleteLocalCopy();
    forgetUser();
    // Reloads the page, so that nothing of the user stays in it.
    location.replace("./");
  } catch (error) {
    showNotice(explainError(error));
  }
}

async function exportAccount(): Promise<void> {
  try {
    download(await client.exportAccount(), "earmark.json", "application/json");
  } catch (error) {
    showNotice(explainError(error));
  }
}

function Sessions() {
  const words = useWords();
  const { account, apps } = words;
  const [sessions, setSessions] = useState<readonly Credential[] | undefined>(undefined);
  const load = async () => {
    try {
      setSessions(await client.sessions());
    } catch (error) {
      showNotice(explainError(error));
    }
  };
  useEffect(() => void load(), []);
  useRestoreFocus(sessions);
  const [ending, setEnding] = useState<Credential | undefined>(undefined);
  const labelOf = (session: Credential) => describeBrowser(session.label) ?? account.unknownBrowser;
  const end = async (session: Credential) => {
    await client.revoke(session);
    showNotice(account.sessionEnded);
    setEnding(undefined);
    await load();
  };
  return (
    <section class="stack" aria-labelledby="sessions">
      <h2 id="sessions">{account.sessions}</h2>
      <ul class="cards">
        {sessions?.map((session) => {
          const label = labelOf(session);
          return (
            <li key={session.id}>
              <div class="details">
                <strong class="truncate" title={isolate(session.label)}>
                  <bdi>{replaceControlCharacters(label)}</bdi>
                </strong>
                <span class="muted">
                  {[
                    ...(session.isCurrent ? [account.here] : []),
                    format(account.since, { day: formatDayAndTime(session.createdAt) }),
                    ...(session.lastUsedAt ? [format(apps.used, { day: formatDayAndTime(session.lastUsedAt) })] : []),
                  ].join(" · ")}
                </span>
              </div>
              {!session.isCurrent && (
                <button
                  type="button"
                  class="button danger"
                  aria-label={format(account.endSession, { label: isolate(label) })}
                  onClick={() => setEnding(session)}
                >
                  {account.signOut}
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {ending && (
        <Confirm
          title={format(account.endSession, { label: isolate(labelOf(ending)) })}
          lead={account.endSessionLead}
          action={account.signOut}
          onConfirm={() => end(ending)}
          onClose={() => setEnding(undefined)}
        />
      )}
    </section>
  );
}

/** By their name in a User-Agent header. The order matters: Edge also claims to be Chrome, and Chrome to be Safari. */
const BROWSERS = {
  Edg: "Edge",
  OPR: "Opera",
  SamsungBrowser: "Samsung Internet",
  Firefox: "Firefox",
  Chrome: "Chrome",
  Safari: "Safari",
};
const SYSTEMS = { Android: "Android", iPhone: "iPhone", iPad: "iPad", Windows: "Windows", Mac: "Mac", Linux: "Linux" };

/** A readable form of a user agent string, such as "Firefox, Windows". */
function describeBrowser(agent: string): string | undefined {
  const find = (names: Readonly<Record<string, string>>) =>
    Object.entries(names).find(([name]) => agent.includes(name))?.[1];
  const browser = find(BROWSERS);
  if (browser === undefined) return agent === "" ? undefined : agent.slice(0, 40);
  const system = find(SYSTEMS);
  return system ? `${browser}, ${system}` : browser;
}

function ChangePassword({ name }: { name: string }) {
  const { account } = useWords();
  const [current, setCurrent] = useState("");
  const [newPassword, setNewPassword] = useState("");
  const [revokeTokens, setRevokeTokens] = useState(false);
  const { isBusy, cause, submit } = useSubmit(async () => {
    await noRetryClient.changePassword({ current, new: newPassword, revokeTokens });
    setCurrent("");
    setNewPassword("");
    setRevokeTokens(false);
    showNotice(revokeTokens ? account.changedWithApps : account.changed);
  });
  const error = cause === undefined ? undefined : explainFormError(cause);
  return (
    <section class="stack" aria-labelledby="password">
      <h2 id="password">{account.changePassword}</h2>
      <form class="panel stack" onSubmit={submit}>
        <input
          class="visually-hidden"
          name="username"
          autocomplete="username"
          value={name}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <Field
          label={account.current}
          error={error?.field === "currentPassword" ? error.text : undefined}
          type="password"
          autocomplete="current-password"
          required
          maxLength={256}
          value={current}
          onInput={({ currentTarget }) => setCurrent(currentTarget.value)}
        />
        <Field
          label={account.newPassword}
          hint={account.passwordHint}
          error={error && error.field !== "currentPassword" ? error.text : undefined}
          type="password"
          autocomplete="new-password"
          required
          minLength={8}
          maxLength={256}
          value={newPassword}
          onInput={({ currentTarget }) => setNewPassword(currentTarget.value)}
        />
        <div class="options">
          <label>
            <input
              type="checkbox"
              checked={revokeTokens}
              onChange={({ currentTarget }) => setRevokeTokens(currentTarget.checked)}
            />
            {account.revokeTokens}
          </label>
        </div>
        <p class="buttons">
          <button type="submit" class="button primary" aria-disabled={isBusy}>
            {account.change}
          </button>
        </p>
      </form>
    </section>
  );
}

/** `name` is undefined if the account has no password to ask for. */
function DeleteAccount({ name, onClose }: { name: string | undefined; onClose: () => void }) {
  const words = useWords();
  const { account } = words;
  const [password, setPassword] = useState("");
  const code = useOneTimeCode();
  const { isBusy, cause, submit } = useSubmit(() =>
    code.ask(async (oneTimeCode) => {
      // The server requires a recent sign-in, since a browser may have been left open.
      if (name !== undefined) await anonymousClient.signIn({ name, password, oneTimeCode });
      await noRetryClient.deleteAccount();
      await deleteLocalCopy();
      forgetUser();
      location.reload();
    }),
  );
  const error = cause === undefined || isWrongCode(cause) ? undefined : explainFormError(cause);
  return (
    <Dialog title={account.deleteTitle} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p>{account.deleteLead}</p>
        {name === undefined ? (
          <Problem error={cause} />
        ) : (
          <Field
            label={account.deleteConfirm}
            error={error?.field === "password" ? words.errors["wrong-password"] : error?.text}
            type="password"
            autocomplete="current-password"
            required
            maxLength={256}
            value={password}
            onInput={({ currentTarget }) => setPassword(currentTarget.value)}
          />
        )}
        <OneTimeCodeField code={code} cause={cause} />
        <p class="buttons">
          <button type="submit" class="button danger" aria-disabled={isBusy}>
            {account.delete}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {words.cancel}
          </button>
        </p>
      </form>
    </Dialog>
  );
}
