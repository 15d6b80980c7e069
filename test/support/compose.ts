import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { load } from "js-yaml";

/** The compose files in deploy/, as Docker Compose reads them. */
export const DEPLOY = new URL("../../deploy/", import.meta.url);
export const readDeployed = (name: string) => readFileSync(new URL(name, DEPLOY), "utf8");

export const COMPOSE_FILES = readdirSync(DEPLOY, { recursive: true })
  .map((name) => String(name).replaceAll("\\", "/"))
  .filter((name) => /(^|\/)(docker-)?compose[\w.]*\.yml$/.test(name))
  .sort();

export interface Service {
  readonly image: string;
  readonly command?: string | readonly string[];
  readonly user?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks?: Readonly<Record<string, { readonly ipv4_address: string }>>;
  readonly read_only?: boolean;
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes?: Readonly<Record<string, unknown>>;
}

/** The repository that the release workflow publishes from; every file must name the same. */
export const REPOSITORY = "earmark/earmark";
export const IMAGE = `ghcr.io/${REPOSITORY}`;

/** What the image sets. */
const [, imageSettings = ""] = /^ENV NODE_ENV=production (.*)$/m.exec(readDeployed("Dockerfile")) ?? [];
export const IMAGE_SETTINGS: Readonly<Record<string, string>> = Object.fromEntries(
  imageSettings.split(" ").map((setting) => setting.split("=", 2)),
);

/** A variable as compose files name it, with its default or the message for one that must be set. */
const VARIABLE = /\$\$|\$\{(\w+)(?::([-?])((?:[^{}$])*))?\}/g;

/** Replaces variables as Docker Compose does. */
export function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(VARIABLE, (found, name: string, kind: string | undefined, rest: string) => {
    if (found === "$$") return "$";
    const value = variables[name];
    if (value !== undefined && value !== "") return value;
    assert.ok(kind !== "?", `${name}: ${rest}`);
    return kind === "-" ? rest : "";
  });
}

export function variablesOf(text: string): string[] {
  const names = [...text.matchAll(VARIABLE)].flatMap(([, name]) => (name === undefined ? [] : [name]));
  return [...new Set(names)];
}

/** Docker Compose replaces variables in values, after it has parsed the file. */
export function readCompose(name: string, variables: Readonly<Record<string, string>> = {}): ComposeFile {
  const replace = (value: unknown): unknown => {
    if (typeof value === "string") return interpolate(value, variables);
    if (Array.isArray(value)) return value.map(replace);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replace(each)]));
  };
  return replace(load(readDeployed(name))) as ComposeFile;
}
