import { Component, type ComponentChild, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { explainUnusedInvitation, hideToken, SignInDialog, SignInPage } from "../accounts/sign-in.tsx";
import { appLoginId } from "../apps/app-login-link.ts";
import { ListView } from "../list/list.tsx";
import { refusals, subscriptionList, updateRefusals } from "../list/subscription-list.ts";
import { accountMode, connectionProblem, currentUser, needsSignIn, serverUrl } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";
import { Icon, IconButton, useRestoreFocus } from "../ui/components.tsx";
import { explainCode } from "../ui/errors.ts";
import { shortName } from "../ui/feed-url.ts";
import { isolate } from "../ui/isolate.ts";
import {
  announcement,
  dismissNotice,
  focusContent,
  notice,
  pauseNotice,
  resumeNotice,
  runNoticeAction,
  showNotice,
} from "../ui/notices.ts";
import { format, getWords, useWords } from "../words/index.ts";
import { shortcutsEnabled } from "./shortcuts.ts";

type View = () => ComponentChild;

const loadAdd = () => import("../import/add.tsx");
const loadImport = () => import("../import/import.tsx");
const MENU = {
  list: () => <ListView loadPodcastComponents={() => import("../podcasts/list-features.tsx")} />,
  add: lazyView(async () => (await loadAdd()).AddView),
  import: lazyView(async () => (await loadImport()).ImportView),
  apps: lazyView(async () => (await import("../apps/apps.tsx")).AppsView),
  account: lazyView(async () => (await import("../accounts/account.tsx")).AccountView),
};
const VIEWS: Readonly<Record<keyof typeof MENU | "appLogin" | "people" | "removed", View>> = {
  ...MENU,
  people: lazyView(async () => (await import("../accounts/administration.tsx")).AdministrationView),
  removed: lazyView(async () => (await import("../list/removed.tsx")).RemovedView),
  appLogin: lazyView(async () => (await import("../apps/app-login.tsx")).AppLoginView),
};
type ViewName = keyof typeof VIEWS;

/** The view is in the URL's fragment, so that "back" works and the server needs only one page. */
function readView(): ViewName {
  if (accountMode !== "off" && appLoginId.value !== undefined) return "appLogin";
  const name = location.hash.slice(1);
  if (name === "account" && accountMode === "off") return "list";
  if (name === "removed") return name;
  if (name === "people" && accountMode !== "off") return "people";
  return Object.hasOwn(MENU, name) ? (name as keyof typeof MENU) : "list";
}

const currentView = createState(readView());
/** Undefined while it is closed. */
const settingsDialog = createState<ComponentType<{ onClose: () => void }> | undefined>(undefined);

async function openSettings(): Promise<void> {
  try {
    settingsDialog.set((await import("./settings.tsx")).Settings);
  } catch {
    showNotice(getWords().failure.unreachable);
  }
}

/** Shows the view at once: `hashchange` may fire only after the next key press. */
function showView(view: ViewName): void {
  location.hash = view;
  currentView.set(view);
}

const focusSearch = () => document.getElementById("search")?.focus();
/** Called instead of focusing the content when the next view is rendered. */
let focusNext: (() => void) | undefined;

const SHORTCUTS: Readonly<Record<string, () => void>> = {
  "?": openSettings,
  "/": () => {
    if (currentView.value === "list") return focusSearch();
    focusNext = focusSearch;
    showView("list");
  },
  l: () => showView("list"),
  a: () => showView("add"),
  i: () => showView("import"),
  u: () => notice.value?.action && runNoticeAction(),
};

addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (!shortcutsEnabled.value || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const editable = "input:not([type=radio], [type=checkbox]), textarea, select, dialog";
  if ((target instanceof Element && target.closest(editable)) || !Object.hasOwn(SHORTCUTS, key)) return;
  SHORTCUTS[key]?.();
  event.preventDefault();
});
addEventListener("hashchange", () => {
  hideToken();
  scrollTo({ top: 0 });
  currentView.set(readView());
});
// A file dropped outside the drop zone would otherwise replace the page.
addEventListener("dragover", (event) => {
  if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
});
addEventListener("drop", (event) => {
  const [file] = event.dataTransfer?.files ?? [];
  if (file === undefined) return;
  event.preventDefault();
  showView("import");
  // If the code cannot be loaded, the view says so.
  loadImport()
    .then(({ previewImport }) => previewImport(file))
    .catch(() => {});
});

export function App() {
  const words = useWords();
  const user = useValue(currentUser);
  const isSignInNeeded = useValue(needsSignIn);
  const view = useValue(currentView);
  const Settings = useValue(settingsDialog);

  const isFirst = useRef(true);
  useLayoutEffect(() => {
    const focus = focusNext ?? focusContent;
    focusNext = undefined;
    if (!isFirst.current) focus();
    isFirst.current = false;
  }, [view]);

  const isSignedIn = user !== undefined || accountMode === "off";
  const titles = {
    ...words.views,
    appLogin: words.appLogin.title,
    people: words.administration.title,
    removed: words.list.recentlyRemoved,
  };
  const viewTitle = titles[view];
  const title = isSignedIn ? viewTitle : words.account.signIn;
  useEffect(() => {
    document.title = `${title} – Earmark`;
  }, [title]);
  useRestoreFocus(isSignedIn);
  useEffect(hideToken, []);
  useEffect(() => {
    // Preloads the view: feeds can also be added without a connection.
    if (isSignedIn) void loadAdd().catch(() => {});
  }, [isSignedIn]);
  useEffect(() => {
    if (user !== undefined) explainUnusedInvitation(user.name);
  }, [user?.name]);

  const View = VIEWS[view];
  return (
    <>
      <button type="button" class="skip-link" onClick={focusContent}>
        {words.skip}
      </button>
      <header class="top">
        <a class="brand" href="#list">
          <img src="./assets/icon.svg" alt="" width="28" height="28" />
          Earmark
        </a>
        {isSignedIn && <Menu view={view} />}
        <IconButton icon="settings" label={words.settings.title} onClick={openSettings} />
      </header>
      <ConnectionBanner />
      {isSignedIn ? (
        <main id="content" tabIndex={-1}>
          <Refusals />
          <ErrorBoundary key={view}>
            <View />
          </ErrorBoundary>
        </main>
      ) : isSignInNeeded ? (
        <SignInPage />
      ) : (
        <main class="sign-in" id="content" tabIndex={-1}>
          <p class="muted">{words.loading}</p>
        </main>
      )}
      <footer>
        <a href={`${serverUrl}/docs`}>{words.api}</a>
      </footer>
      <Notices />
      {isSignInNeeded && isSignedIn && <SignInDialog />}
      {Settings && <Settings onClose={() => settingsDialog.set(undefined)} />}
    </>
  );
}

/** A view whose code is loaded when it is first shown. */
function lazyView(load: () => Promise<View>): View {
  let Loaded: View | undefined;
  return function LazyView() {
    const words = useWords();
    const [status, setStatus] = useState<"loading" | "loaded" | "failed">("loading");
    useEffect(() => {
      const show = (view: View) => {
        Loaded = view;
        setStatus("loaded");
      };
      if (status === "loading" && Loaded === undefined) load().then(show, () => setStatus("failed"));
    }, [status]);
    if (Loaded !== undefined) return <Loaded />;
    if (status !== "failed") return <p class="muted">{words.loading}</p>;
    // With a connection, the cause is that the server is newer than this page.
    if (navigator.onLine && connectionProblem.value !== "unreachable") return <RenderFailure />;
    return (
      <div class="message danger" role="alert">
        <p>{words.failure.unreachable}</p>
        <button type="button" class="button" onClick={() => setStatus("loading")}>
          {words.retry}
        </button>
      </div>
    );
  };
}

/** Keeps the other views usable when one fails to render. */
class ErrorBoundary extends Component<{ children: ComponentChildren }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static override getDerivedStateFromError() {
    return { hasFailed: true };
  }

  render() {
    return this.state.hasFailed ? <RenderFailure /> : this.props.children;
  }
}

function RenderFailure() {
  const { failure, connection } = useWords();
  return (
    <div class="message danger" role="alert">
      <p>{failure.crashed}</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        {connection.reload}
      </button>
    </div>
  );
}

function Menu({ view }: { view: ViewName }) {
  const { views, mainMenu } = useWords();
  const names = (Object.keys(MENU) as (keyof typeof MENU)[]).filter(
    (name) => name !== "account" || accountMode !== "off",
  );
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

/** Edits are usually sent within a moment, which is not worth mentioning. */
const MENTION_AFTER_MS = 3_000;

function ConnectionBanner() {
  const { connection: words, errors } = useWords();
  const problem = useValue(connectionProblem);
  const { pending } = useValue(subscriptionList);
  const [isOffline, setOffline] = useState(!navigator.onLine);
  useEffect(() => {
    const onChange = () => setOffline(!navigator.onLine);
    addEventListener("online", onChange);
    addEventListener("offline", onChange);
    return () => {
      removeEventListener("online", onChange);
      removeEventListener("offline", onChange);
    };
  }, []);
  const isPending = pending > 0;
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setWaiting(isPending), isPending ? MENTION_AFTER_MS : 0);
    return () => clearTimeout(timer);
  }, [isPending]);
  return (
    <div role="status">
      {(isOffline || problem || (isWaiting && isPending)) && (
        <p class="banner">
          {isOffline ? words.offline : problem === "disabled" ? errors["account-disabled"] : problem && words[problem]}
          {isPending && <strong>{format(words.waiting, { n: pending })}</strong>}
          {problem === "blocked" && (
            <button type="button" class="link" onClick={() => location.reload()}>
              {words.reload}
            </button>
          )}
        </p>
      )}
    </div>
  );
}

const MAX_REFUSALS = 5;

/** Edits that were made earlier, perhaps offline, and that the server does not accept. */
function Refusals() {
  const words = useWords();
  const all = useValue(refusals);
  const { items } = useValue(subscriptionList);
  useRestoreFocus(all.length > 0);
  if (all.length === 0) return null;
  return (
    <div class="message danger refusals" role="alert">
      <p>{format(words.list.refused, { n: all.length })}</p>
      <IconButton icon="close" label={words.close} onClick={() => updateRefusals(() => [])} />
      <ul>
        {all.slice(0, MAX_REFUSALS).map(({ operation, error }, index) => {
          const { id, feedUrl = items.find((item) => item.id === id)?.feedUrl } = { feedUrl: undefined, ...operation };
          return (
            <li key={index}>
              {feedUrl !== undefined && `${shortName(feedUrl)}: `}
              {isolate(explainCode(error.code, error.detail ?? error.title))}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Notices() {
  const words = useWords();
  const current = useValue(notice);
  const announced = useValue(announcement);
  return (
    <>
      <div class="visually-hidden" role="status">
        {announced}
      </div>
      <div
        class="notices"
        role="status"
        onMouseEnter={pauseNotice}
        onMouseLeave={resumeNotice}
        onFocusIn={pauseNotice}
        onFocusOut={resumeNotice}
      >
        {current && (
          <div class="notice">
            <span>{current.text}</span>
            {current.action && (
              <button type="button" class="link" onClick={runNoticeAction}>
                {current.action.label}
              </button>
            )}
            <IconButton icon="close" label={words.close} onClick={dismissNotice} />
          </div>
        )}
      </div>
    </>
  );
}
