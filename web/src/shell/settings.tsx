import { useEffect, useId, useState } from "preact/hooks";
import { currentUser, noRetryClient, setUser } from "../server/server.ts";
import { createState, useValue } from "../state/state.ts";
import { storage } from "../state/storage.ts";
import { Dialog } from "../ui/components.tsx";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { getLanguage, LANGUAGES, type Language, setLanguage, useWords } from "../words/index.ts";
import { shortcutsEnabled } from "./shortcuts.ts";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const theme = createState<Theme>(THEMES.find((known) => known === storage.get("theme")) ?? "system");

function setTheme(name: Theme): void {
  theme.set(name);
  storage.set("theme", name === "system" ? null : name);
  if (name === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = name;
}

export function Settings({ onClose }: { onClose: () => void }) {
  const { settings } = useWords();
  const language = getLanguage();
  const selected = useValue(theme);
  return (
    <Dialog title={settings.title} onClose={onClose}>
      <div class="stack">
        <fieldset class="options">
          <legend>{settings.theme}</legend>
          {THEMES.map((name) => (
            <label key={name}>
              <input type="radio" name="theme" checked={selected === name} onChange={() => setTheme(name)} />
              {settings[name]}
            </label>
          ))}
        </fieldset>
        <div class="field">
          <label for="language">{settings.language}</label>
          <select
            id="language"
            value={language}
            onChange={async ({ currentTarget }) => {
              const selected = currentTarget.value as Language;
              storage.set("language", selected);
              if (await setLanguage(selected)) return;
              currentTarget.value = language;
              showNotice(settings.notLoaded);
            }}
          >
            {Object.entries(LANGUAGES).map(([code, name]) => (
              <option key={code} value={code} lang={code}>
                {name}
              </option>
            ))}
          </select>
        </div>
        <FollowMoves />
        <Shortcuts />
      </div>
    </Dialog>
  );
}

/** Unlike the other settings, stored on the server, and for all devices. */
function FollowMoves() {
  const { settings } = useWords();
  const me = useValue(currentUser);
  /** While the server stores it. */
  const [wanted, setWanted] = useState<boolean | undefined>(undefined);
  const [failure, setFailure] = useState<unknown>(undefined);
  const hintId = useId();
  // It may have been changed elsewhere.
  useEffect(() => void noRetryClient.me().then(setUser, () => {}), []);
  if (me === undefined) return null;
  const change = async (followMoves: boolean) => {
    setWanted(followMoves);
    setFailure(undefined);
    try {
      setUser(await noRetryClient.changeMe({ followMoves }));
    } catch (error) {
      setFailure(error);
    }
    setWanted(undefined);
  };
  return (
    <fieldset class="options">
      <legend>{settings.moves}</legend>
      <label>
        <input
          type="checkbox"
          aria-describedby={hintId}
          checked={wanted ?? me.followMoves}
          onChange={({ currentTarget: { checked } }) => void change(checked)}
        />
        {settings.followMoves}
      </label>
      <small id={hintId}>{settings.followHint}</small>
      <Problem error={failure} />
    </fieldset>
  );
}

function Shortcuts() {
  const { settings, list, apps } = useWords();
  const isEnabled = useValue(shortcutsEnabled);
  const shortcuts: readonly (readonly [string, string])[] = [
    ["/", list.search],
    ["l", settings.keyList],
    ["a", settings.keyAdd],
    ["i", settings.keyImport],
    ["u", settings.keyUndo],
    ["?", settings.title],
  ];
  return (
    <fieldset class="options keyboard-only">
      <legend>{settings.shortcuts}</legend>
      <label>
        <input
          type="checkbox"
          checked={isEnabled}
          onChange={({ currentTarget: { checked } }) => {
            shortcutsEnabled.set(checked);
            storage.set("keys", checked ? null : "off");
          }}
        />
        {settings.useShortcuts}
      </label>
      <dl class="shortcuts">
        {shortcuts.map(([key, action]) => (
          <div key={key} class={isEnabled ? "" : "disabled"}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{action}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>↑</kbd> <kbd>↓</kbd>
          </dt>
          <dd>{settings.keyMove}</dd>
        </div>
        <div>
          <dt>
            <kbd>F2</kbd>
          </dt>
          <dd>{apps.rename}</dd>
        </div>
      </dl>
    </fieldset>
  );
}
