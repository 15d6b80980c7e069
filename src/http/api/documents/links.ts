import { failure, type RequestFailure } from "../../../errors/catalog.ts";
import { type Attributes, isUuidLike, type Resource, readAttributes, toTimestamp } from "../../../jsonapi/document.ts";
import { LINK_KINDS, type Link, type LinkChoice, type LinkKind } from "../../../links/link-store.ts";
import { readFolder, readTitle } from "../../../lists/details.ts";
import { isLanguage, LANGUAGES, type Language } from "../../../util/languages.ts";
import { missingAttribute } from "./accounts.ts";

const MAX_EXCEPT = 200;

function invalid(name: string, reason: string): RequestFailure {
  return failure("invalid-attribute", {
    reason: `\`${name}\` ${reason}`,
    source: { pointer: `/data/attributes/${name}` },
  });
}

/** `language` is used unless the document names one. */
export function readNewLink(document: unknown, language: Language): LinkChoice {
  const attributes = readAttributes(document, "link");
  const kind = readKind(attributes);
  const choice: LinkChoice = {
    kind,
    title: readOptional(attributes, "title", readTitle, "must have 1 to 300 characters, without line breaks"),
    language: attributes["language"] == null ? language : readLanguage(attributes["language"]),
    folder: readOptional(attributes, "folder", readFolder, "must be a folder, such as `News/Tech`"),
    except: readExcept(attributes["except"]),
    ownTitles: readOwnTitles(attributes["own_titles"]),
  };
  if (kind === "alerts") {
    const onlyForLists = "is only for links of the kind `list`";
    if (choice.folder !== undefined) throw invalid("folder", onlyForLists);
    if (choice.except.length > 0) throw invalid("except", onlyForLists);
    if (choice.ownTitles) throw invalid("own_titles", onlyForLists);
  }
  return choice;
}

function readKind({ kind }: Attributes): LinkKind {
  if (kind === undefined) throw missingAttribute("kind");
  const found = LINK_KINDS.find((each) => each === kind);
  if (found === undefined) throw invalid("kind", `must be one of ${LINK_KINDS.join(", ")}`);
  return found;
}

function readOptional(
  attributes: Attributes,
  name: string,
  read: (text: string) => string | undefined,
  reason: string,
): string | undefined {
  const value = attributes[name];
  if (value === undefined || value === null) return undefined;
  const text = typeof value === "string" ? read(value) : undefined;
  if (text === undefined) throw invalid(name, reason);
  return text;
}

function readLanguage(value: unknown): Language {
  if (!isLanguage(value)) throw invalid("language", `must be one of ${LANGUAGES.join(", ")}`);
  return value;
}

function readExcept(value: unknown): readonly string[] {
  if (value === undefined || value === null) return [];
  const isList = Array.isArray(value) && value.length <= MAX_EXCEPT;
  if (!isList || !value.every((id) => typeof id === "string" && isUuidLike(id)))
    throw invalid("except", `must be a list of at most ${MAX_EXCEPT} ids of subscriptions`);
  return [...new Set(value.map((id: string) => id.toLowerCase()))];
}

function readOwnTitles(value: unknown): boolean {
  if (value !== undefined && value !== null && typeof value !== "boolean")
    throw invalid("own_titles", "must be true or false");
  return value ?? false;
}

/** `serverUrl` is undefined where the secret is not shown. */
export function linkResource(link: Link, basePath: string, serverUrl: string | undefined): Resource {
  const { id, kind, title, language, folder, except, ownTitles, createdAt } = link;
  return {
    type: "link",
    id,
    attributes: {
      kind,
      title: title ?? null,
      language,
      ...(kind === "list" ? { folder: folder ?? null, except, own_titles: ownTitles } : {}),
      created_at: toTimestamp(createdAt),
      ...(serverUrl === undefined ? {} : { url: linkUrl(link, serverUrl) }),
    },
    links: { self: `${basePath}/v1/links/${id}` },
  };
}

export function linkUrl({ secret }: Pick<Link, "secret">, serverUrl: string): string {
  return `${serverUrl}/l/${secret}`;
}
