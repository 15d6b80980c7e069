import {
  type AccountCounts,
  type AccountImportProgress,
  type AccountSource,
  createAccountImports,
} from "../../../client/src/account-imports.ts";
import { EarmarkError } from "../../../client/src/index.ts";
import { isStale, SIGNED_IN } from "../server/server.ts";
import { createState } from "../state/state.ts";
import { explainError } from "../ui/errors.ts";
import { isolate } from "../ui/isolate.ts";
import { announce } from "../ui/notices.ts";
import { format, getWords } from "../words/index.ts";

export interface AccountImportState {
  readonly step: "form" | "checking" | "preview" | "running" | "done";
  readonly url: string;
  readonly userName: string;
  readonly password: string;
  /** Login page of a Nextcloud server, while the person has not allowed access. */
  readonly loginUrl: string | undefined;
  /** From a preview with a login: the import takes it instead of name and password. */
  readonly login: string | undefined;
  readonly progress: AccountImportProgress | undefined;
  /** Of the preview, then of the import. */
  readonly counts: AccountCounts | undefined;
  readonly failure: string | undefined;
}

const NOTHING: Pick<AccountImportState, "loginUrl" | "login" | "progress" | "counts" | "failure"> = {
  loginUrl: undefined,
  login: undefined,
  progress: undefined,
  counts: undefined,
  failure: undefined,
};

/** Kept while another view is shown; a running import continues. */
export const accountImport = createState<AccountImportState>({
  step: "form",
  url: "",
  userName: "",
  password: "",
  ...NOTHING,
});
const update = (change: Partial<AccountImportState>) => accountImport.update((state) => ({ ...state, ...change }));

const imports = createAccountImports(SIGNED_IN);
let stop = new AbortController();

addEventListener("beforeunload", (event) => {
  if (accountImport.value.step === "running" && !isStale()) event.preventDefault();
});

export function edit(change: Partial<Pick<AccountImportState, "url" | "userName" | "password">>): void {
  update(change);
}

/** Back to the form. What was added stays. */
export function leave(): void {
  stop.abort();
  update({ step: "form", ...NOTHING });
}

/** Reads what the other server has, and counts what an import would add. */
export function preview(): Promise<void> {
  return work("checking", async (signal) => {
    const { url, userName, password } = accountImport.value;
    await check({ url: readAddress(url), userName, password }, signal);
  });
}

/** `openPage` gets the login page, on which the person allows access. */
export function previewWithLogin(openPage: (loginUrl: string | undefined) => void): Promise<void> {
  return work("checking", async (signal) => {
    const url = readAddress(accountImport.value.url);
    const { loginUrl, login } = await imports.startLogin(url, { signal }).catch((error) => {
      openPage(undefined);
      throw error;
    });
    if (!/^https?:\/\//.test(loginUrl)) throw new Error("not a web page");
    update({ loginUrl });
    openPage(loginUrl);
    await check({ url, login }, signal);
  });
}

async function check(source: AccountSource, signal: AbortSignal): Promise<void> {
  const counts = await imports.importAccount(source, { dryRun: true, onProgress: showProgress, signal });
  update({ step: "preview", counts, login: counts.login, loginUrl: undefined, progress: undefined });
  announce(format(getWords().accountImport.previewOf, { address: isolate(source.url) }));
}

export function run(): Promise<void> {
  return work("running", async (signal) => {
    const { url, userName, password, login } = accountImport.value;
    const address = readAddress(url);
    const source: AccountSource = login === undefined ? { url: address, userName, password } : { url: address, login };
    const counts = await imports.importAccount(source, { onProgress: showProgress, signal });
    update({ step: "done", counts, login: undefined, password: "", progress: undefined });
    announce(getWords().accountImport.done);
  });
}

function showProgress(progress: AccountImportProgress): void {
  update({ progress, ...(progress.stage === "waiting" ? {} : { loginUrl: undefined }) });
}

async function work(step: "checking" | "running", task: (signal: AbortSignal) => Promise<void>): Promise<void> {
  stop = new AbortController();
  const { signal } = stop;
  const { login } = accountImport.value;
  update({ ...NOTHING, step, login });
  try {
    await task(signal);
  } catch (error) {
    if (!signal.aborted) update({ ...NOTHING, step: "form", failure: explain(error) });
  }
}

function explain(error: unknown): string {
  const words = getWords().accountImport;
  if (error instanceof EarmarkError && error.code === "import-server-failed")
    return format(words.serverFailed, { detail: isolate(error.detail ?? error.title) });
  return explainError(error, words.errors);
}

/** People leave out the scheme. */
function readAddress(text: string): string {
  const trimmed = text.trim();
  return /^[a-z][a-z\d+.-]*:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`;
}
