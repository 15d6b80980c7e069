import { useEffect, useState } from "preact/hooks";
import type { Access } from "../../client/src/index.ts";
import { isolate, revealControlCharacters } from "./control-characters.ts";
import { settle } from "./library.ts";
import { say } from "./notices.ts";
import { Dialog, download, Field, useFocusKept } from "./parts.tsx";
import { client, door, explain, person, prompt, sayGoodbye } from "./server.ts";
import { explainRefusal } from "./sign-in.tsx";
import { useValue } from "./state.ts";
import { formatDay, useWords } from "./words/index.ts";

export function AccountView() {
  const { account } = useWords();
  const me = useValue(person);
  const [isDeleting, setDeleting] = useState(false);
  if (me === undefined) return null;
  return (
    <>
      <div class="head">
        <h1>{account.title}</h1>
        <button type="button" class="button" onClick={() => void leave()}>
          {account.signOut}
        </button>
      </div>
      <p>
        <strong>
          <bdi>{revealControlCharacters(me.name)}</bdi>
        </strong>
        {me.createdAt && <span class="quiet"> · {account.since(formatDay(me.createdAt))}</span>}
      </p>
      <Sessions />
      {me.issuer === null && <ChangePassword name={me.name} />}
      <section class="stack" aria-labelledby="data">
        <h2 id="data">{account.data}</h2>
        <p class="quiet">{account.exportLead}</p>
        <p class="buttons">
          <button type="button" class="button" onClick={() => void takeEverything()}>
            {account.export}
          </button>
          <button type="button" class="button bad" onClick={() => setDeleting(true)}>
            {account.delete}
          </button>
        </p>
      </section>
      {isDeleting && <Delete name={me.name} onClose={() => setDeleting(false)} />}
    </>
  );
}

const SETTLE_MS = 3_000;

/** Nothing of the person stays in this browser. */
async function leave(): Promise<void> {
  // What was removed and waits to be taken back is removed now: afterwards nobody may. Unless the server is gone.
  await Promise.race([settle(), new Promise((resolve) => setTimeout(resolve, SETTLE_MS))]);
  try {
    await door.signOut();
    sayGoodbye();
    location.replace("./");
  } catch (error) {
    say(explain(error));
  }
}

async function takeEverything(): Promise<void> {
  try {
    download(await client.exportAccount(), "earmark.json", "application/json");
  } catch (error) {
    say(explain(error));
  }
}

function Sessions() {
  const words = useWords();
  const { account, apps } = words;
  const [sessions, setSessions] = useState<readonly Access[] | undefined>(undefined);
  const load = async () => {
    try {
      setSessions(await client.sessions());
    } catch (error) {
      say(explain(error));
    }
  };
  useEffect(() => void load(), []);
  useFocusKept(sessions);
  const end = async (session: Access) => {
    try {
      await client.revoke(session);
      say(account.ended);
    } catch (error) {
      say(explain(error));
    }
    await load();
  };
  return (
    <section class="stack" aria-labelledby="sessions">
      <h2 id="sessions">{account.sessions}</h2>
      <ul class="cards">
        {sessions?.map((session) => {
          const label = nameBrowser(session.label) ?? account.unknownBrowser;
          return (
            <li key={session.id}>
              <div class="what">
                <strong class="line" title={isolate(session.label)}>
                  <bdi>{revealControlCharacters(label)}</bdi>
                </strong>
                <span class="quiet">
                  {[
                    ...(session.isCurrent ? [account.here] : []),
                    account.since(formatDay(session.createdAt)),
                    ...(session.lastUsedAt ? [apps.used(formatDay(session.lastUsedAt))] : []),
                  ].join(" · ")}
                </span>
              </div>
              {!session.isCurrent && (
                <button
                  type="button"
                  class="button bad"
                  aria-label={account.endSession(isolate(label))}
                  onClick={() => void end(session)}
                >
                  {account.signOut}
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The first of these that a browser says of itself; nearly all of them also say those that come after. */
const BROWSERS = {
  Edg: "Edge",
  OPR: "Opera",
  SamsungBrowser: "Samsung Internet",
  Firefox: "Firefox",
  Chrome: "Chrome",
  Safari: "Safari",
};
const SYSTEMS = { Android: "Android", iPhone: "iPhone", iPad: "iPad", Windows: "Windows", Mac: "Mac", Linux: "Linux" };

/** What a browser says of itself, as people call it. */
function nameBrowser(agent: string): string | undefined {
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
  const [wanted, setWanted] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<{ isCurrent: boolean; text: string } | undefined>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setWrong(undefined);
    try {
      await prompt.changePassword({ current, wanted });
      setCurrent("");
      setWanted("");
      say(account.changed);
    } catch (error) {
      const { text } = explainRefusal(error);
      setWrong({ isCurrent: text === account.notCurrent, text });
    }
    setBusy(false);
  };
  return (
    <section class="stack" aria-labelledby="password">
      <h2 id="password">{account.changePassword}</h2>
      <form class="panel stack" onSubmit={submit}>
        <input
          class="unseen"
          name="username"
          autocomplete="username"
          value={name}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <Field
          label={account.current}
          error={wrong?.isCurrent ? wrong.text : undefined}
          type="password"
          autocomplete="current-password"
          required
          maxLength={256}
          value={current}
          onInput={({ currentTarget }) => setCurrent(currentTarget.value)}
        />
        <Field
          label={account.wanted}
          hint={account.passwordHint}
          error={wrong && !wrong.isCurrent ? wrong.text : undefined}
          type="password"
          autocomplete="new-password"
          required
          minLength={8}
          maxLength={256}
          value={wanted}
          onInput={({ currentTarget }) => setWanted(currentTarget.value)}
        />
        <p class="buttons">
          <button type="submit" class="button main" aria-disabled={isBusy}>
            {account.change}
          </button>
        </p>
      </form>
    </section>
  );
}

function Delete({ name, onClose }: { name: string; onClose: () => void }) {
  const words = useWords();
  const { account } = words;
  const [password, setPassword] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      // Who deletes must have signed in just now: a browser may have been left open.
      await door.signIn({ name, password });
      await prompt.deleteAccount();
      sayGoodbye();
      location.reload();
    } catch (cause) {
      const { member, text } = explainRefusal(cause);
      setError(member === "password" ? account.notCurrent : text);
      setBusy(false);
    }
  };
  return (
    <Dialog title={account.deleteTitle} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p>{account.deleteLead}</p>
        <Field
          label={account.deleteConfirm}
          error={error}
          type="password"
          autocomplete="current-password"
          required
          maxLength={256}
          value={password}
          onInput={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <p class="buttons">
          <button type="submit" class="button bad" aria-disabled={isBusy}>
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
