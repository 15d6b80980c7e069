import type { Caller, UserId } from "../../accounts/caller.ts";
import { type Link, type LinkKind, type LinkStore, MAX_LINKS } from "../../links/link-store.ts";
import type { Language } from "../../util/languages.ts";
import {
  all,
  Conflict,
  type Database,
  get,
  idOf,
  insert,
  insertNew,
  key,
  run,
  together,
  type Work,
  write,
} from "../shared/database.ts";
import { DELETED, linkKey } from "../shared/keys.ts";
import { ADD_LIST } from "./access.ts";

const COLUMNS = "user_id, id, secret, kind, title, folder, language, excluded, own_titles, created_at";

interface LinkRow {
  readonly user_id: UserId;
  readonly id: unknown;
  readonly secret: string;
  readonly kind: LinkKind;
  readonly title: string | null;
  readonly folder: string | null;
  readonly language: Language;
  /** Ids, one per line. */
  readonly excluded: string | null;
  readonly own_titles: number;
  readonly created_at: number;
}

function toLink(row: LinkRow): Link {
  return {
    id: idOf(row.id),
    user: row.user_id,
    secret: row.secret,
    kind: row.kind,
    title: row.title ?? undefined,
    folder: row.folder ?? undefined,
    language: row.language,
    except: row.excluded?.split("\n") ?? [],
    ownTitles: row.own_titles === 1,
    createdAt: new Date(row.created_at),
  };
}

/** Deletes the links of a user, or the one with this id, and what finds them. Returns their number. */
export function* deleteLinks(user: UserId, id?: string): Work<number> {
  const rows = yield* all<{ secret: string }>(
    "delete from earmark.links where user_id = $1 and id = coalesce($2, id) returning secret",
    user,
    id === undefined ? null : key(id),
  );
  yield* together(
    ...rows.map(({ secret }) => run("delete from earmark.link_users where key = $1", key(linkKey(secret)))),
  );
  return rows.length;
}

function* addLink(link: Link): Work<"added" | "full" | "gone"> {
  const { user, secret } = link;
  const account = yield* get<{ disabled_at: number }>(
    "select disabled_at from earmark.accounts where user_id = $1",
    user,
  );
  // The user of a server without accounts may have no list yet, and so nothing that is locked.
  if (account === undefined) yield* run(ADD_LIST, user);
  const list = yield* get<{ sequence: number }>(
    "select sequence from earmark.lists where user_id = $1 for update",
    user,
  );
  if (list?.sequence === DELETED || (account?.disabled_at ?? 0) !== 0) return "gone";
  const counted = yield* get<{ n: number }>("select count(*) as n from earmark.links where user_id = $1", user);
  if ((counted?.n ?? 0) >= MAX_LINKS) return "full";
  if ((yield* insertNew("link_users", { key: key(linkKey(secret)), user_id: user })) !== 1) throw new Conflict();
  yield* insert("links", {
    user_id: user,
    id: key(link.id),
    secret,
    kind: link.kind,
    title: link.title ?? null,
    folder: link.folder ?? null,
    language: link.language,
    excluded: link.except.join("\n") || null,
    own_titles: link.ownTitles ? 1 : 0,
    created_at: link.createdAt.getTime(),
  });
  return "added";
}

export const LINK_WRITES = {
  addLink: write({ locks: "both" }, (_, link: Link) => addLink(link)),
  removeLink: write({ locks: "both" }, function* ({ caller }, id: string) {
    return (yield* deleteLinks(caller.user, id)) === 1;
  }),
} as const;

export class SqlLinks implements LinkStore {
  readonly #database: Database<typeof LINK_WRITES>;

  constructor(database: Database<typeof LINK_WRITES>) {
    this.#database = database;
  }

  add(caller: Caller, link: Link): Promise<"added" | "full" | "gone"> {
    return this.#database.write(caller, link.createdAt, "addLink", link);
  }

  async list(user: UserId): Promise<readonly Link[]> {
    const sql = `select ${COLUMNS} from earmark.links where user_id = $1 order by created_at, id`;
    return (await this.#database.read(() => all<LinkRow>(sql, user), user)).map(toLink);
  }

  remove(caller: Caller, id: string, at: Date): Promise<boolean> {
    return this.#database.write(caller, at, "removeLink", id);
  }

  /** A cluster has the user of each link on one node, and the link with the user's rows. */
  async find(secret: string): Promise<Link | undefined> {
    const owner = await this.#database.read(() =>
      get<{ user_id: UserId }>("select user_id from earmark.link_users where key = $1", key(linkKey(secret))),
    );
    if (owner === undefined) return undefined;
    const { user_id: user } = owner;
    const sql = `select ${COLUMNS} from earmark.links where user_id = $1 and secret = $2 and not exists (
      select 1 from earmark.accounts where user_id = $1 and disabled_at <> 0)`;
    const row = await this.#database.read(() => get<LinkRow>(sql, user, secret), user);
    return row && toLink(row);
  }
}
