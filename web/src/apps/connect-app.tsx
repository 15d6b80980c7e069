import { Fragment } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Device } from "../../../client/src/index.ts";
import { accountMode, client, currentUser, isLoopback, publicUrl } from "../server/server.ts";
import { useValue } from "../state/state.ts";
import { CopyField, Icon } from "../ui/components.tsx";
import { isolate } from "../ui/isolate.ts";
import { QrCode } from "../ui/qr-code.tsx";
import { useSubmit } from "../ui/requests.ts";
import { format, useWords } from "../words/index.ts";
import { findAppName, GUIDES, type Guide, type SetupMethod } from "./app-guides.ts";
import { TokenForm } from "./tokens.tsx";

const hasAccounts = accountMode !== "off";

interface Props {
  readonly devices: readonly Device[] | undefined;
  readonly onCreateToken: () => void;
}

/** Guides through the setup of an app, until its first sync. */
export function ConnectApp({ devices, onCreateToken }: Props) {
  const { apps } = useWords();
  const [index, setIndex] = useState<number | undefined>(undefined);
  const names = [...GUIDES.map(({ name }) => name), apps.other];
  const guide = index === undefined ? undefined : GUIDES[index];
  return (
    <>
      <RadioGroup legend={apps.pick} names={names} chosen={index} onChoose={setIndex} />
      {index !== undefined && (
        <div key={index} class="panel stack">
          {guide ? (
            <AppGuide guide={guide} onCreateToken={onCreateToken} />
          ) : (
            <OtherApp onCreateToken={onCreateToken} />
          )}
          <FirstSync app={guide?.name} devices={devices} />
        </div>
      )}
    </>
  );
}

interface RadioGroupProps {
  readonly legend: string;
  readonly names: readonly string[];
  readonly chosen: number | undefined;
  readonly onChoose: (index: number) => void;
}

function RadioGroup({ legend, names, chosen, onChoose }: RadioGroupProps) {
  const group = useId();
  return (
    <fieldset class="filter choice">
      <legend>{legend}</legend>
      {names.map((name, index) => (
        <label key={name}>
          <input type="radio" name={group} checked={index === chosen} onChange={() => onChoose(index)} />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  );
}

function AppGuide({ guide, onCreateToken }: { guide: Guide; onCreateToken: () => void }) {
  const { apps } = useWords();
  const { name, methods } = guide;
  const userName = useValue(currentUser)?.name ?? "";
  const isRefused = (method: SetupMethod) => hasAccounts && method.refusedName?.test(userName) === true;
  const [index, setIndex] = useState(() =>
    Math.max(
      0,
      methods.findIndex((method) => !isRefused(method)),
    ),
  );
  const method = methods[index] ?? methods[0];
  const names = methods.map(({ credentials }) => (credentials ? apps.withToken : apps.inBrowser));
  return (
    <>
      {methods.length > 1 && <RadioGroup legend={apps.way} names={names} chosen={index} onChoose={setIndex} />}
      {isRefused(method) ? (
        <p class="message">{format(apps.refusedName, { app: name, way: apps.inBrowser })}</p>
      ) : (
        <Steps key={index} app={name} method={method} userName={userName} onCreateToken={onCreateToken} />
      )}
    </>
  );
}

interface StepsProps {
  readonly app: string;
  readonly method: SetupMethod;
  readonly userName: string;
  readonly onCreateToken: () => void;
}

function Steps({ app, method, userName, onCreateToken }: StepsProps) {
  const { apps } = useWords();
  const [token, setToken] = useState<string | undefined>(undefined);
  const { menu, server, credentials, device, buttons } = method;
  return (
    <div class="connect">
      <ol class="steps">
        <li>
          {format(apps.menu, { app })} <MenuPath items={menu} />
        </li>
        <li>
          <div class="stack">
            {apps.enter}
            <CopyField label={server} text={publicUrl} />
            {credentials && hasAccounts && (
              <>
                <CopyField label={credentials[0]} text={userName} />
                <TokenField
                  label={credentials[1]}
                  app={app}
                  token={token}
                  onCreate={(secret) => {
                    setToken(secret);
                    onCreateToken();
                  }}
                />
              </>
            )}
            {credentials && !hasAccounts && <p>{apps.anyCredentials}</p>}
            {device && <CopyField label={device[0]} text={device[1]} />}
          </div>
        </li>
        {buttons.length > 0 && (
          <li>
            {apps.press} <MenuPath items={buttons} />
          </li>
        )}
        {!credentials && hasAccounts && <li>{apps.allowThere}</li>}
      </ol>
      {isLoopback ? (
        <p class="message">{apps.localOnly}</p>
      ) : (
        <div class="codes">
          <Code text={publicUrl} label={apps.qr} />
          {token && <Code text={token} label={apps.tokenQr} />}
        </div>
      )}
      <small>{apps.menuNote}</small>
    </div>
  );
}

function MenuPath({ items }: { items: readonly string[] }) {
  return (
    <span lang="en" dir="ltr">
      {items.map((item, index) => (
        <Fragment key={item}>
          {index > 0 && " → "}
          <b>{item}</b>
        </Fragment>
      ))}
    </span>
  );
}

function Code({ text, label }: { text: string; label: string }) {
  return (
    <figure>
      <QrCode text={text} label={label} />
      <figcaption aria-hidden="true">{label}</figcaption>
    </figure>
  );
}

/** A button that creates the token, which then takes its place. */
function TokenField(props: {
  label: string;
  app: string;
  token: string | undefined;
  onCreate: (secret: string) => void;
}) {
  const { label, app, token, onCreate } = props;
  const { apps } = useWords();
  const { isBusy, error, submit } = useSubmit(async () => onCreate((await client.createToken({ label: app })).secret));
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (token) ref.current?.focus();
  }, [token]);

  if (token !== undefined) {
    return (
      <div ref={ref} tabIndex={-1}>
        <CopyField label={label} text={token} />
        <small>{apps.tokenOnce}</small>
      </div>
    );
  }
  return (
    <div class="field">
      <span class="label" lang="en">
        {label}
      </span>
      <p class="buttons">
        <button type="button" class="button primary" aria-disabled={isBusy} onClick={submit}>
          {apps.create}
        </button>
      </p>
      {error && (
        <small class="error" role="alert">
          {error}
        </small>
      )}
    </div>
  );
}

function OtherApp({ onCreateToken }: { onCreateToken: () => void }) {
  const { apps } = useWords();
  const userName = useValue(currentUser)?.name;
  return (
    <>
      <p>{apps.otherLead}</p>
      <CopyField label={apps.serverUrl} text={publicUrl} />
      {hasAccounts && userName !== undefined ? (
        <>
          <CopyField label={apps.userName} text={userName} />
          <TokenForm onCreate={onCreateToken} />
        </>
      ) : (
        <p>{apps.anyCredentials}</p>
      )}
    </>
  );
}

/** Shows that the page is waiting for the app, and then which device has synced. */
function FirstSync({ app, devices }: { app: string | undefined; devices: readonly Device[] | undefined }) {
  const { apps } = useWords();
  const before = useRef<ReadonlyMap<string, Date> | undefined>(undefined);
  if (devices !== undefined) before.current ??= new Map(devices.map(({ id, lastSyncAt }) => [id, lastSyncAt]));
  const synced = devices?.find(({ id, lastSyncAt, app: agent }) => {
    const last = before.current?.get(id);
    return last === undefined || (lastSyncAt > last && findAppName(agent) === app);
  });
  return (
    <p class={`first-sync ${synced ? "done" : ""}`} role="status">
      <Icon name={synced ? "check" : "waiting"} />
      {synced ? describeSync(synced, apps) : apps.waiting}
    </p>
  );
}

function describeSync(device: Device, apps: ReturnType<typeof useWords>["apps"]): string {
  const { caption, subscriptions } = device;
  const app = findAppName(device.app);
  const isNamed = app === undefined || caption.toLowerCase().includes(app.toLowerCase());
  const name = isNamed ? isolate(caption) : format(apps.appOn, { app, device: isolate(caption) });
  // An app creates its device before it uploads its list.
  return subscriptions === 0
    ? format(apps.connected, { device: name })
    : format(apps.synced, { n: subscriptions, device: name });
}
