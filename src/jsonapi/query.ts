import { failure } from "../errors/catalog.ts";
import { replaceControlCharacters } from "../util/control-characters.ts";

const DEFAULT_PAGE_SIZE = 25;
export const MAX_PAGE_SIZE = 100;

export interface PageQuery {
  readonly number: number;
  readonly size: number;
}

export type Parameters = ReadonlyMap<string, string>;

/** Reads the query string of a request for a collection without sparse fieldsets. */
export function readPageQuery(query: string): PageQuery {
  return readPage(readParameters(query, PAGE_PARAMETERS));
}

export const PAGE_PARAMETERS = ["page[number]", "page[size]"];

export function readPage(parameters: Parameters, maxSize = MAX_PAGE_SIZE): PageQuery {
  return {
    number: readPositive(parameters, "page[number]", Number.MAX_SAFE_INTEGER) ?? 1,
    size: readPositive(parameters, "page[size]", maxSize, { page: { maxSize } }) ?? DEFAULT_PAGE_SIZE,
  };
}

export function requireNoQuery(query: string): void {
  if (query !== "") readParameters(query, []);
}

export function readParameters(query: string, supported: readonly string[]): Parameters {
  const parameters = new Map<string, string>();
  for (const part of query.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const rawName = equals === -1 ? part : part.slice(0, equals);
    const name = decode(rawName) ?? reject(rawName, "is not percent-encoded UTF-8");
    if (!supported.includes(name))
      reject(
        name,
        supported.length === 0
          ? "is not supported; this request takes no parameters"
          : `is not supported; supported: ${supported.join(", ")}`,
      );
    if (parameters.has(name)) reject(name, "must not be repeated");
    parameters.set(
      name,
      decode(equals === -1 ? "" : part.slice(equals + 1)) ??
        reject(name, "has a value that is not percent-encoded UTF-8"),
    );
  }
  return parameters;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

export function readPositive(
  parameters: Parameters,
  name: string,
  max: number,
  meta?: Record<string, unknown>,
): number | undefined {
  const text = parameters.get(name);
  if (text === undefined) return undefined;
  const value = /^[0-9]+$/.test(text) ? Number(text) : 0;
  if (value === 0 || value > max) reject(name, `must be an integer from 1 to ${max}`, meta);
  return value;
}

export function readFields<Name extends string>(
  parameters: Parameters,
  parameter: string,
  supported: readonly Name[],
): readonly Name[] | undefined {
  const text = parameters.get(parameter);
  if (text === undefined) return undefined;
  const fields = new Set<Name>();
  for (const name of text === "" ? [] : text.split(",")) {
    fields.add(
      supported.find((field) => field === name) ??
        reject(parameter, `has an unsupported field; supported: ${supported.join(", ")}`),
    );
  }
  return [...fields];
}

export function reject(parameter: string, reason: string, meta?: Record<string, unknown>): never {
  throw failure("invalid-query", {
    parameter: shorten(parameter),
    reason,
    source: { parameter },
    ...(meta === undefined ? {} : { meta }),
  });
}

function shorten(text: string): string {
  return replaceControlCharacters(text.length <= 64 ? text : `${text.slice(0, 64)}…`);
}
