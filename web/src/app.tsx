import { Component, type ComponentChild, type ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { AccountView } from "./account.tsx";
import { AddView } from "./add.tsx";
import { AppsView } from "./apps.tsx";
import { isolate } from "./control-characters.ts";
import { ImportView, look } from "./import.tsx";
import { undo } from "./library.ts";
import { ListView } from "./list.tsx";
import { act, hush, notice, pause, resume, say, spoken } from "./notices.ts";
import { Icon, IconButton, useFocusKept } from "./parts.tsx";
import { accounts, address, isSignedOut, person, trouble } from "./server.ts";
import { hasKeys, Settings } from "./settings.tsx";
import { Door, isJoining, SignInAgain } from "./sign-in.tsx";
import { useValue } from "./state.ts";
import { useWords } from "./words/index.ts";

const VIEWS: Record<"list" | "add" | "import" | "apps" | "account", () => ComponentChild> = {
  list: ListView,
  add: AddView,
  import: ImportView,
  apps: AppsView,
  account: AccountView,
};
type ViewName = keyof typeof VIEWS;

/** The fragment names the view, so that "back" works and the server needs one page alone. */
function readView(): ViewName {
  const name = location.hash.slice(1);
  if (name === "account" && accounts === "off") return "list";
  return Object.hasOwn(VIEWS, name) ? (name as ViewName) : "list";
}

const KEYS: Readonly<Record<string, () => void>> = {
  l: () => go("list"),
  a: () => go("add"),
  i: () => go("import"),
  u: undo,
};

function go(view: ViewName): void {
  location.hash = view;
}

export function App() {
  const words = useWords();
  const me = useValue(person);
  const isOut = useValue(isSignedOut);
  const [view, setView] = useState(readView);
  const [isSettings, setSettings] = useState(false);
  const main = useRef<HTMLElement>(null);

  useEffect(() => {
    const follow = () => {
      setView(readView());
      scrollTo({ top: 0 });
      main.current?.focus({ preventScroll: true });
    };
    const press = (event: KeyboardEvent) => {
      const { key, target } = event;
      if (!hasKeys.value || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (
        target instanceof Element &&
        target.closest("input:not([type=radio], [type=checkbox]), textarea, select, dialog")
      )
        return;
      if (key === "?") setSettings(true);
      else if (key === "/") {
        if (readView() !== "list") go("list");
        // When the view is there.
        setTimeout(() => document.getElementById("search")?.focus(), 50);
      } else if (Object.hasOwn(KEYS, key)) KEYS[key]?.();
      else return;
      event.preventDefault();
    };
    // A file that misses its place would otherwise replace the page.
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      const [file] = event.dataTransfer?.files ?? [];
      if (file === undefined) return;
      event.preventDefault();
      go("import");
      void look(file);
    };
    addEventListener("hashchange", follow);
    addEventListener("keydown", press);
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("keydown", press);
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, []);

  const isInside = me !== undefined || accounts === "off";
  const title = isInside ? words.views[view] : words.account.signIn;
  useEffect(() => {
    document.title = `${title} – Earmark`;
  }, [title]);

  useFocusKept(isInside);
  useEffect(() => {
    if (me !== undefined && isJoining) say(words.account.alreadyIn(isolate(me.name)));
  }, [me?.name]);

  const View = VIEWS[view];
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        {words.skip}
      </button>
      <header class="top">
        <a class="brand" href="#list">
          <img src="./assets/icon.svg" alt="" width="28" height="28" />
          Earmark
        </a>
        {isInside && <Menu view={view} />}
        <IconButton icon="settings" label={words.settings.title} onClick={() => setSettings(true)} />
      </header>
      <Trouble />
      {isInside ? (
        <main id="content" ref={main} tabIndex={-1}>
          <Safe key={view}>
            <View />
          </Safe>
        </main>
      ) : isOut ? (
        <Door />
      ) : (
        <main class="door" id="content" tabIndex={-1}>
          <p class="quiet">{words.loading}</p>
        </main>
      )}
      <footer>
        <a href={`${address}/docs`}>{words.api}</a>
      </footer>
      <Notices />
      {isOut && isInside && <SignInAgain />}
      {isSettings && <Settings onClose={() => setSettings(false)} />}
    </>
  );
}

/** What goes wrong in one view leaves the others. */
class Safe extends Component<{ children: ComponentChildren }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static override getDerivedStateFromError() {
    return { hasFailed: true };
  }

  render() {
    return this.state.hasFailed ? <Failed /> : this.props.children;
  }
}

function Failed() {
  const { crashed, reload } = useWords().trouble;
  return (
    <div class="note bad" role="alert">
      <p>{crashed}</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        {reload}
      </button>
    </div>
  );
}

function Menu({ view }: { view: ViewName }) {
  const { views, mainMenu } = useWords();
  const names = (Object.keys(VIEWS) as ViewName[]).filter((name) => name !== "account" || accounts !== "off");
  return (
    <nav aria-label={mainMenu}>
      {names.map((name) => (
        <a key={name} href={`#${name}`} aria-current={view === name ? "page" : undefined}>
          <Icon name={name} />
          <span>{views[name]}</span>
        </a>
      ))}
    </nav>
  );
}

function Trouble() {
  const words = useWords().trouble;
  const reason = useValue(trouble);
  const [isOffline, setOffline] = useState(!navigator.onLine);
  useEffect(() => {
    const take = () => setOffline(!navigator.onLine);
    addEventListener("online", take);
    addEventListener("offline", take);
    return () => {
      removeEventListener("online", take);
      removeEventListener("offline", take);
    };
  }, []);
  return (
    <div role="status">
      {(isOffline || reason) && (
        <p class="trouble">
          {isOffline ? words.offline : reason && words[reason]}
          {reason === "blocked" && (
            <button type="button" class="link" onClick={() => location.reload()}>
              {words.reload}
            </button>
          )}
        </p>
      )}
    </div>
  );
}

function Notices() {
  const words = useWords();
  const now = useValue(notice);
  const heard = useValue(spoken);
  return (
    <>
      <div class="unseen" role="status">
        {heard}
      </div>
      <div
        class="notices"
        role="status"
        onMouseEnter={pause}
        onMouseLeave={resume}
        onFocusIn={pause}
        onFocusOut={resume}
      >
        {now && (
          <div class="notice">
            <span>{now.text}</span>
            {now.action && (
              <button type="button" class="link" onClick={act}>
                {now.action.label}
              </button>
            )}
            <IconButton icon="close" label={words.close} onClick={hush} />
          </div>
        )}
      </div>
    </>
  );
}
