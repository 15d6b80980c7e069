import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { explainUnusedInvitation, hideToken, SignInDialog, SignInPage } from "../accounts/sign-in.tsx";
import { appLoginId } from "../apps/app-login-link.ts";
import { Box, loadAdding } from "../import/box.tsx";
import { ListView } from "../list/list.tsx";
import { unfinishedImport } from "../list/subscription-list.ts";
import { accountMode, currentUser, needsSignIn } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";
import { IconButton, useRestoreFocus } from "../ui/components.tsx";
import { focusContent, notice, runNoticeAction, showNotice } from "../ui/notices.ts";
import { getWords, useWords } from "../words/index.ts";
import { ConnectionBanner } from "./connection-banner.tsx";
import { ErrorBoundary, lazyView, type View } from "./lazy-view.tsx";
import { MoreView, Navigation } from "./navigation.tsx";
import { Notices } from "./notices.tsx";
import { Refusals } from "./refusals.tsx";
import { shortcutsEnabled } from "./shortcuts.ts";

const loadAddMany = () => import("../import/add.tsx");
const loadImport = () => import("../import/import.tsx");
/** By the name that the URL's fragment has for the view. */
const VIEWS = {
  list: () => <ListView Box={Box} loadPodcastComponents={() => import("../podcasts/list-features.tsx")} />,
  "add-many": lazyView(async () => (await loadAddMany()).AddView),
  listening: lazyView(async () => (await import("../listening/listening.tsx")).ListeningView),
  history: lazyView(async () => (await import("../history/history.tsx")).HistoryView),
  more: () => <MoreView onSettings={openSettings} />,
  import: lazyView(async () => (await loadImport()).ImportView),
  apps: lazyView(async () => (await import("../apps/apps.tsx")).AppsView),
  links: lazyView(async () => (await import("../links/links.tsx")).LinksView),
  alerts: lazyView(async () => (await import("../alerts/alerts.tsx")).AlertsView),
  duplicates: lazyView(async () => (await import("../podcasts/duplicates.tsx")).DuplicatesView),
  account: lazyView(async () => (await import("../accounts/account.tsx")).AccountView),
  people: lazyView(async () => (await import("../accounts/administration.tsx")).AdministrationView),
  server: lazyView(async () => (await import("./server-status.tsx")).ServerView),
  appLogin: lazyView(async () => (await import("../apps/app-login.tsx")).AppLoginView),
} satisfies Readonly<Record<string, View>>;
type ViewName = keyof typeof VIEWS;

/** The view is in the URL's fragment, so that "back" works and the server needs only one page. */
function readView(): ViewName {
  if (accountMode !== "off" && appLoginId.value !== undefined) return "appLogin";
  const fragment = location.hash.slice(1);
  // With the secret of a link, whose list is shown as an import.
  if (fragment.startsWith("import=")) return "import";
  // The box at the top of the list; see `takeAddFragment`.
  if (fragment === "add" || fragment.startsWith("add=")) return "list";
  // What follows a question mark or a slash is for the view.
  const [name = ""] = fragment.split(/[?/]/, 1);
  // A part of the view.
  if (name === "move") return "import";
  // As it was called before.
  if (name === "removed") return "history";
  if ((name === "account" || name === "people") && accountMode === "off") return "list";
  return Object.hasOwn(VIEWS, name) && name !== "appLogin" ? (name as ViewName) : "list";
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

function showBox(): void {
  if (currentView.value === "list") focusSearch();
  else {
    focusNext = focusSearch;
    showView("list");
  }
}

const SHORTCUTS: Readonly<Record<string, () => void>> = {
  "?": openSettings,
  "/": showBox,
  l: () => showView("list"),
  a: showBox,
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
  const view = readView();
  // The list stays where it is when something above it is opened or closed.
  if (view !== "list" || currentView.value !== "list") scrollTo({ top: 0 });
  currentView.set(view);
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
    server: words.server.title,
    history: words.history.title,
    links: words.links.title,
    alerts: words.alerts.title,
    duplicates: words.duplicates.title,
    "add-many": words.add.title,
  };
  const viewTitle = titles[view];
  const title = isSignedIn ? viewTitle : words.account.signIn;
  useEffect(() => {
    document.title = `${title} – Earmark`;
  }, [title]);
  useRestoreFocus(isSignedIn);
  useEffect(hideToken, []);
  useEffect(() => {
    // Preloads what the box does and the view: feeds can also be added without a connection.
    if (isSignedIn) void Promise.all([loadAdding(), loadAddMany()]).catch(() => {});
  }, [isSignedIn]);
  const isImportUnfinished = useValue(unfinishedImport) !== "";
  useEffect(() => {
    // An import that a reload has interrupted. If the code cannot be loaded, the next reload continues it.
    if (isSignedIn && isImportUnfinished)
      loadImport()
        .then(({ resumeImport }) => resumeImport())
        .catch(() => {});
  }, [isSignedIn, isImportUnfinished]);
  useEffect(() => {
    if (user !== undefined) explainUnusedInvitation(user.name);
  }, [user?.name]);

  const View = VIEWS[view];
  return (
    <div class={isSignedIn ? "frame" : "frame signed-out"}>
      <button type="button" class="skip-link" onClick={focusContent}>
        {words.skip}
      </button>
      {isSignedIn ? (
        <Navigation view={view} onSettings={openSettings} />
      ) : (
        <header class="top">
          <a class="brand" href="#list">
            <img src="./assets/icon.svg" alt="" width="28" height="28" />
            Earmark
          </a>
          <IconButton icon="settings" label={words.settings.title} onClick={openSettings} />
        </header>
      )}
      <div class="page">
        <ConnectionBanner />
        {isSignedIn ? (
          <main id="content" tabIndex={-1} data-view={view}>
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
      </div>
      <Notices />
      {isSignInNeeded && isSignedIn && <SignInDialog />}
      {Settings && <Settings onClose={() => settingsDialog.set(undefined)} />}
    </div>
  );
}
