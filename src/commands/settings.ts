import { SECRETS, SETTINGS } from "../config.ts";
import { nameOf } from "../store/store-options.ts";
import type { Terminal } from "./terminal.ts";

/** Every setting as it is in force here, and where it comes from. Secrets stay secret. */
export async function showSettings(terminal: Terminal, asJson: boolean): Promise<void> {
  const { environment } = terminal.world;
  const config = terminal.world.config();
  for (const [name, [standard]] of Object.entries(SETTINGS)) {
    const file = environment[`${name}_FILE`];
    const source = file ? `file ${file}` : environment[name] ? "environment" : "default";
    const given = environment[name] || standard;
    const isSecret = SECRETS.some((secret) => secret === name);
    const hidden = name === "DATABASE_URL" ? nameOf(config.databaseUrl) : source === "default" ? "" : "(secret)";
    await terminal.line({ setting: name, value: isSecret ? hidden : given, source }, asJson);
  }
}
