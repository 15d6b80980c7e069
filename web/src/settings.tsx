import { say } from "./notices.ts";
import { Dialog } from "./parts.tsx";
import { createState, memory, useValue } from "./state.ts";
import { LANGUAGES, type Language, speak, speech, useWords } from "./words/index.ts";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const theme = createState<Theme>(THEMES.find((known) => known === memory.get("theme")) ?? "system");
/** Some people's tools speak in single keys to the page; they can switch ours off. */
export const hasKeys = createState(memory.get("keys") !== "off");

function setTheme(wanted: Theme): void {
  theme.set(wanted);
  memory.set("theme", wanted === "system" ? null : wanted);
  if (wanted === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = wanted;
}

export function Settings({ onClose }: { onClose: () => void }) {
  const { settings, list } = useWords();
  const { language } = useValue(speech);
  const chosen = useValue(theme);
  const isOn = useValue(hasKeys);
  const keys: readonly (readonly [string, string])[] = [
    ["/", list.search],
    ["l", settings.keyList],
    ["a", settings.keyAdd],
    ["i", settings.keyImport],
    ["u", settings.keyUndo],
    ["?", settings.title],
  ];
  return (
    <Dialog title={settings.title} onClose={onClose}>
      <div class="stack">
        <fieldset class="options">
          <legend>{settings.theme}</legend>
          {THEMES.map((name) => (
            <label key={name}>
              <input type="radio" name="theme" checked={chosen === name} onChange={() => setTheme(name)} />
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
              const wanted = currentTarget.value as Language;
              memory.set("language", wanted);
              if (await speak(wanted)) return;
              currentTarget.value = language;
              say(settings.notLoaded);
            }}
          >
            {Object.entries(LANGUAGES).map(([code, name]) => (
              <option key={code} value={code} lang={code}>
                {name}
              </option>
            ))}
          </select>
        </div>
        <fieldset class="options with-keys">
          <legend>{settings.keys}</legend>
          <label>
            <input
              type="checkbox"
              checked={isOn}
              onChange={({ currentTarget: { checked } }) => {
                hasKeys.set(checked);
                memory.set("keys", checked ? null : "off");
              }}
            />
            {settings.useKeys}
          </label>
          <dl class="keys">
            {keys.map(([key, what]) => (
              <div key={key} class={isOn ? "" : "off"}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
            <div>
              <dt>
                <kbd>↑</kbd> <kbd>↓</kbd>
              </dt>
              <dd>{settings.keyMove}</dd>
            </div>
          </dl>
        </fieldset>
      </div>
    </Dialog>
  );
}
