import { useState } from "preact/hooks";
import { CopyButton, CopyField, Dialog, download, Field } from "../ui/components.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { explainError } from "../ui/errors.ts";
import { showNotice } from "../ui/notices.ts";
import { Problem } from "../ui/problem.tsx";
import { QrCode } from "../ui/qr-code.tsx";
import { useLoaded, useSubmit } from "../ui/requests.ts";
import { format, useWords } from "../words/index.ts";
import { type Enrollment, signedInRequests } from "./sign-in-requests.ts";

/** The authenticator app of the account, and recovery codes. */
export function SecondFactor() {
  const { secondFactor: words } = useWords();
  const { value: state, failure, load } = useLoaded(() => signedInRequests.secondFactor(), []);
  const [enrollment, setEnrollment] = useState<Enrollment | undefined>(undefined);
  const [codes, setCodes] = useState<readonly string[] | undefined>(undefined);
  const [asked, setAsked] = useState<"newCodes" | "remove" | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);

  const start = async () => {
    setError(undefined);
    try {
      setEnrollment(await signedInRequests.enrollment());
    } catch (cause) {
      setError(cause);
    }
  };
  const show = (created: readonly string[]) => {
    setEnrollment(undefined);
    setAsked(undefined);
    setCodes(created);
    return load();
  };
  const remove = async () => {
    await signedInRequests.removeSecondFactor();
    setAsked(undefined);
    showNotice(words.removed);
    await load();
  };

  return (
    <section class="stack" aria-labelledby="second-factor">
      <h2 id="second-factor">{words.title}</h2>
      <Problem error={error ?? failure} />
      {state?.isRequired && <p class="message">{words.required}</p>}
      <p class="muted">
        {state?.isEnabled ? `${words.isOn} ${format(words.codesLeft, { n: state.recoveryCodesLeft })}` : words.lead}
      </p>
      {state && (
        <p class="buttons">
          {state.isEnabled ? (
            <>
              <button type="button" class="button" onClick={() => setAsked("newCodes")}>
                {words.newCodes}
              </button>
              <button type="button" class="button danger" onClick={() => setAsked("remove")}>
                {words.remove}
              </button>
            </>
          ) : (
            <button type="button" class="button" onClick={() => void start()}>
              {words.add}
            </button>
          )}
        </p>
      )}
      {enrollment && (
        <EnrollmentDialog enrollment={enrollment} onDone={show} onClose={() => setEnrollment(undefined)} />
      )}
      {codes && <RecoveryCodes codes={codes} onClose={() => setCodes(undefined)} />}
      {asked && (
        <Confirm
          title={words[asked]}
          lead={words[`${asked}Lead`]}
          action={words[asked]}
          isHarmless={asked === "newCodes"}
          onConfirm={async () => (asked === "remove" ? remove() : show(await signedInRequests.replaceRecoveryCodes()))}
          onClose={() => setAsked(undefined)}
        />
      )}
    </section>
  );
}

interface EnrollmentDialogProps {
  readonly enrollment: Enrollment;
  readonly onDone: (recoveryCodes: readonly string[]) => Promise<void>;
  readonly onClose: () => void;
}

function EnrollmentDialog({ enrollment: { ticket, secret, uri }, onDone, onClose }: EnrollmentDialogProps) {
  const { cancel, secondFactor: words } = useWords();
  const [code, setCode] = useState("");
  const { isBusy, error, submit } = useSubmit(
    async () => onDone(await signedInRequests.addSecondFactor({ ticket, one_time_code: code })),
    explainError,
  );
  return (
    <Dialog title={words.add} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p>{words.scan}</p>
        <QrCode text={uri} label={words.qr} />
        <p>
          <a href={uri}>{words.onThisDevice}</a>
        </p>
        <CopyField label={words.key} text={secret} />
        <p class="message">{words.podcastApps}</p>
        <Field
          label={words.code}
          error={error}
          name="one-time-code"
          autocomplete="one-time-code"
          inputMode="numeric"
          required
          maxLength={64}
          value={code}
          onInput={({ currentTarget }) => setCode(currentTarget.value)}
        />
        <p class="buttons">
          <button type="submit" class="button primary" aria-disabled={isBusy}>
            {words.turnOn}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {cancel}
          </button>
        </p>
      </form>
    </Dialog>
  );
}

/** Shown once. It cannot be closed by accident. */
function RecoveryCodes({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  const { apps, secondFactor: words } = useWords();
  const text = codes.join("\n");
  return (
    <Dialog title={words.codes}>
      <p>{words.codesLead}</p>
      <ol class="recovery-codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ol>
      <p class="buttons">
        <CopyButton text={text} />
        <button
          type="button"
          class="button"
          onClick={() => download(`${text}\n`, "earmark-recovery-codes.txt", "text/plain")}
        >
          {words.download}
        </button>
        <button type="button" class="button primary" onClick={onClose}>
          {apps.finished}
        </button>
      </p>
    </Dialog>
  );
}
