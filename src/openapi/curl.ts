import { writeJson } from "./json.ts";
import type { Method, OpenApi, Operation, Parameter, Reference } from "./types.ts";

export interface Curl {
  /** What has to be said once, before the commands. */
  readonly preparation: string;
  readonly command: (path: string, method: Method, operation: Operation) => string;
}

/** Commands that do what an operation does, with its own examples. In a shell that was prepared they run as they stand. */
export function createCurl(document: OpenApi): Curl {
  const { components, servers, security: everywhere } = document;
  const base = servers[0]?.url.replace(/\/$/, "") ?? "";
  const { token, metricsToken } = components.securitySchemes;
  const parameterOf = ({ $ref }: Reference) => components.parameters[$ref.slice($ref.lastIndexOf("/") + 1)] ?? [];

  const credentials = ({ security = everywhere, responses }: Operation): readonly string[] => {
    const names = security.flatMap((requirement) => Object.keys(requirement));
    if (names.includes("token")) return ['-H "Authorization: Bearer $TOKEN"'];
    if (names.includes("metricsToken")) return ['-H "Authorization: Bearer $METRICS_TOKEN"'];
    if (names.length > 0) return ["-b cookies"];
    return hasHeader(responses["201"], "Set-Cookie") ? ["-c cookies"] : [];
  };

  return {
    preparation: [
      `EARMARK=http://127.0.0.1:8080${base}`,
      ...(token === undefined ? [] : ["TOKEN=emk_…"]),
      ...(metricsToken === undefined ? [] : ["METRICS_TOKEN=…"]),
    ].join("\n"),
    command(path, method, operation) {
      const parameters = (operation.parameters ?? []).flatMap(parameterOf);
      const target = addressOf(path, parameters);
      const [[type, media] = ["", undefined]] = Object.entries(operation.requestBody?.content ?? {});
      const [example] = Object.values(media?.examples ?? {});
      const usual = media === undefined ? "get" : "post";
      const words = [
        // Brackets are no pattern here.
        `curl ${target.includes("[") ? "-g " : ""}"$EARMARK${target}"`,
        ...(method === usual ? [] : [`-X ${method.toUpperCase()}`]),
        ...(hasHeader(operation.responses["200"], "Content-Disposition") ? ["-OJ"] : []),
        ...credentials(operation),
        ...(media === undefined ? [] : [`-H ${quote(`Content-Type: ${type}`)}`]),
        ...(example === undefined ? [] : [bodyOf(example.value)]),
      ];
      const isShort = words.join(" ").length <= 72;
      return words.join(isShort ? " " : " \\\n  ");
    },
  };
}

function addressOf(path: string, parameters: readonly Parameter[]): string {
  let address = path;
  const query: string[] = [];
  for (const { name, in: where, example } of parameters) {
    if (example === undefined) continue;
    if (where === "path") address = address.replace(`{${name}}`, encodeURIComponent(String(example)));
    else query.push(`${name}=${encodeURIComponent(String(example))}`);
  }
  return query.length === 0 ? address : `${address}?${query.join("&")}`;
}

function bodyOf(example: unknown): string {
  if (typeof example === "string") return "--data-binary @subscriptions.opml";
  return `-d ${quote(writeJson(example))}`;
}

/** A word for the shell, in which nothing means anything. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function hasHeader(response: Operation["responses"][string] | undefined, name: string): boolean {
  return response !== undefined && !("$ref" in response) && response.headers?.[name] !== undefined;
}
