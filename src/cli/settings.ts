import { SECRETS, SETTINGS } from "../config/settings.ts";
import { displayNameOf } from "../store/shared/options.ts";
import type { Terminal } from "./terminal.ts";

/** Prints every setting with its value and source. Secrets are hidden. */
export async function showSettings(terminal: Terminal, asJson: boolean): Promise<void> {
  const { environment, config } = terminal.context;
  const { databaseUrl } = config();
  for (const [name, [defaultValue]] of Object.entries(SETTINGS)) {
    const file = environment[`${name}_FILE`];
    const source = file ? `file ${file}` : environment[name] ? "environment" : "default";
    const value = environment[name] || defaultValue;
    const isSecret = SECRETS.some((secret) => secret === name);
    const redacted = name === "DATABASE_URL" ? displayNameOf(databaseUrl) : source === "default" ? "" : "(secret)";
    await terminal.writeRecord({ setting: name, value: isSecret ? redacted : value, source }, asJson);
  }
}
