import { EarmarkError } from "../../../client/src/index.ts";
import { format, getWords } from "../words/index.ts";
import { isolate } from "./isolate.ts";

/** The translated text for an error code, else the server's own text. */
export function explainCode(code: string | undefined, fallback: string): string {
  const { errors } = getWords();
  return code !== undefined && Object.hasOwn(errors, code) ? errors[code as keyof typeof errors] : fallback;
}

/** `viewErrors` has the texts of errors that only some views get. */
export function explainError(error: unknown, viewErrors: Readonly<Record<string, string>> = {}): string {
  const { failure } = getWords();
  if (!(error instanceof EarmarkError)) return failure.unreachable;
  const { status, code = "", detail, title } = error;
  if (Object.hasOwn(viewErrors, code)) return viewErrors[code] as string;
  if (code === "invalid-password") return explainPassword(error);
  const general = status === 403 ? failure.forbidden : format(failure.other, { detail: isolate(detail ?? title) });
  return explainCode(code, status === 503 ? failure.busy : general);
}

function explainPassword({ errors: [first] }: EarmarkError): string {
  const { errors, passwordProblems } = getWords();
  const problem = String(first?.meta?.["problem"]);
  return Object.hasOwn(passwordProblems, problem)
    ? passwordProblems[problem as keyof typeof passwordProblems]
    : errors["invalid-password"];
}
