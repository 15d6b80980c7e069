import { useEffect, useState } from "preact/hooks";
import type { Device } from "../../../client/src/index.ts";
import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { client, noRetryClient } from "../server/server.ts";
import { Dialog, Field, useRestoreFocus } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { showNotice } from "../ui/notices.ts";
import { useSubmit } from "../ui/requests.ts";
import { format, formatAge, useWords } from "../words/index.ts";
import { findAppName } from "./app-guides.ts";

const POLL_MS = 4_000;

interface DeviceList {
  readonly devices: readonly Device[] | undefined;
  /** Why the devices could not be loaded. */
  readonly failure: string | undefined;
  readonly load: () => Promise<void>;
}

/** With `polls`, the list is loaded again every few seconds while the page is visible. */
export function useDevices({ polls }: { readonly polls: boolean }): DeviceList {
  const [devices, setDevices] = useState<readonly Device[] | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const load = async () => {
    try {
      setDevices(await noRetryClient.devices());
      setFailure(undefined);
    } catch (error) {
      setFailure(explainError(error));
    }
  };
  useEffect(() => {
    let isLoading = false;
    const poll = async () => {
      if (isLoading || document.visibilityState !== "visible") return;
      isLoading = true;
      await load();
      isLoading = false;
    };
    void poll();
    if (!polls) return;
    const timer = setInterval(poll, POLL_MS);
    addEventListener("visibilitychange", poll);
    return () => {
      clearInterval(timer);
      removeEventListener("visibilitychange", poll);
    };
  }, []);
  return { devices, failure, load };
}

export function Devices({ devices, failure, load }: DeviceList) {
  const words = useWords();
  const { apps } = words;
  const [renaming, setRenaming] = useState<Device | undefined>(undefined);
  const [forgetting, setForgetting] = useState<Device | undefined>(undefined);
  useRestoreFocus(devices?.length);
  return (
    <section class="stack" aria-labelledby="devices">
      <h2 id="devices">{apps.devices}</h2>
      {devices === undefined && failure && <ErrorMessage text={failure} onAction={load} />}
      {devices?.length === 0 && <p class="muted">{apps.noDevices}</p>}
      {devices !== undefined && devices.length > 0 && (
        <ul class="cards">
          {devices.map((device) => (
            <li key={device.id}>
              <div class="details">
                <strong class="truncate">
                  <bdi>{replaceControlCharacters(device.caption)}</bdi>
                </strong>
                <span class="muted" title={device.app === null ? undefined : isolate(device.app)}>
                  {device.app !== null && `${findAppName(device.app) ?? isolate(device.app)} · `}
                  {format(apps.lastSync, { when: formatAge(device.lastSyncAt) })}
                </span>
              </div>
              <div class="buttons">
                <button
                  type="button"
                  class="button"
                  aria-label={format(apps.renameLabel, { device: isolate(device.caption) })}
                  onClick={() => setRenaming(device)}
                >
                  {apps.rename}
                </button>
                <button
                  type="button"
                  class="button danger"
                  aria-label={format(apps.forgetLabel, { device: isolate(device.caption) })}
                  onClick={() => setForgetting(device)}
                >
                  {apps.forget}
                </button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {renaming && <RenameDialog device={renaming} onChange={load} onClose={() => setRenaming(undefined)} />}
      {forgetting && (
        <Confirm
          title={format(apps.forgetLabel, { device: isolate(forgetting.caption) })}
          lead={apps.forgetLead}
          action={apps.forget}
          onConfirm={async () => {
            await client.forgetDevice(forgetting.id);
            showNotice(format(apps.forgotten, { device: isolate(forgetting.caption) }));
            setForgetting(undefined);
            await load();
          }}
          onClose={() => setForgetting(undefined)}
        />
      )}
    </section>
  );
}

interface DeviceDialogProps {
  readonly device: Device;
  readonly onChange: () => Promise<void>;
  readonly onClose: () => void;
}

function RenameDialog({ device, onChange, onClose }: DeviceDialogProps) {
  const words = useWords();
  const { apps } = words;
  const [caption, setCaption] = useState(device.caption);
  const { isBusy, error, submit } = useSubmit(async () => {
    await noRetryClient.changeDevice(device.id, { caption: caption.trim() });
    await onChange();
    onClose();
  });
  return (
    <Dialog title={format(apps.renameLabel, { device: isolate(device.caption) })} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field
          label={apps.deviceName}
          error={error}
          value={caption}
          maxLength={100}
          required
          pattern=".*\S.*"
          autocomplete="off"
          onInput={({ currentTarget }) => setCaption(currentTarget.value)}
        />
        <p class="buttons">
          <button type="submit" class="button primary" aria-disabled={isBusy}>
            {apps.save}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {words.cancel}
          </button>
        </p>
      </form>
    </Dialog>
  );
}
