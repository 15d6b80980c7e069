import type { Link, NewLink } from "../../client/src/index.ts";
import { isUuidLike } from "../jsonapi/document.ts";
import { LINK_KINDS } from "../links/link-store.ts";
import { isLanguage, LANGUAGES } from "../util/languages.ts";
import { UserError } from "../util/user-error.ts";
import type { ListLocation } from "./subscription-list.ts";
import { withList } from "./subscriptions.ts";
import { pluralize, type Terminal, UsageError } from "./terminal.ts";

interface LinkOptions {
  readonly folder: string | undefined;
  readonly title: string | undefined;
  readonly language: string | undefined;
  readonly ownTitles: boolean;
}

export async function listLinks(terminal: Terminal, location: ListLocation, asJson: boolean): Promise<void> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    for (const link of await subscriptionList.links()) {
      const { id, kind, createdAt, title, folder = null, ownTitles = false, except = [], language } = link;
      const record = {
        id,
        kind,
        created_at: createdAt.toISOString(),
        url: urlOf(terminal, location, link),
        folder,
        title,
      };
      const more = { own_titles: String(ownTitles), except, language };
      await terminal.writeRecord(asJson ? { ...record, ...more } : record, asJson);
    }
  });
}

export async function createLink(
  terminal: Terminal,
  location: ListLocation,
  kind: string,
  { folder, title, language, ownTitles }: LinkOptions,
): Promise<void> {
  const known = LINK_KINDS.find((each) => each === kind);
  if (known === undefined) throw new UsageError(`KIND must be one of ${LINK_KINDS.join(", ")}`);
  if (language !== undefined && !isLanguage(language))
    throw new UsageError(`--language must be one of ${LANGUAGES.join(", ")}`);
  if (known === "alerts" && (folder !== undefined || ownTitles))
    throw new UsageError("--folder and --own-titles are only for links of the kind list");
  const wanted: NewLink =
    known === "alerts" ? { kind: known, title, language } : { kind: known, title, language, folder, ownTitles };
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    const link = await subscriptionList.createLink(wanted);
    if (known === "list") {
      const { sharedFeeds, privateFeeds } = link;
      const leftOut = privateFeeds === 0 ? "" : ` ${pluralize(privateFeeds, "private feed")} left out.`;
      terminal.say(`Shares ${pluralize(sharedFeeds, "podcast")}.${leftOut}`);
    }
    if (isPath(terminal, location)) terminal.say("Open this path on your server:");
    await terminal.write(`${urlOf(terminal, location, link)}\n`);
  });
}

export async function revokeLink(terminal: Terminal, location: ListLocation, id: string): Promise<void> {
  return withList(terminal, location, { mayCreate: false }, async (subscriptionList) => {
    if (!isUuidLike(id) || !(await subscriptionList.revokeLink(id.toLowerCase())))
      throw new UserError(`No link with id ${id}. See: earmark link list`);
    terminal.say("Link revoked.");
  });
}

/** Without a server, its URL is known only if it is in the settings. */
function isPath(terminal: Terminal, { server }: ListLocation): boolean {
  return server === undefined && terminal.context.config().publicUrl === undefined;
}

function urlOf(terminal: Terminal, location: ListLocation, { url }: Pick<Link, "url">): string {
  return isPath(terminal, location) ? `${terminal.context.config().basePath}${new URL(url).pathname}` : url;
}
