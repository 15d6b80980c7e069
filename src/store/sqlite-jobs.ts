import type { ChangeResult } from "../list.ts";
import type { Addition, Caller, Change, Update, UserId } from "../subscriptions.ts";
import type { AccountChange } from "./sqlite-accounts.ts";
import type { AppChange } from "./sqlite-apps.ts";
import type { PodcastChange } from "./sqlite-podcasts.ts";

/** A request from the main thread to the writer thread. */
export type Job =
  | (Authorized & {
      readonly kind: "change";
      readonly user: UserId;
      readonly changes: PackedChanges;
      readonly maxTotal: number;
    })
  | (Authorized & { readonly kind: "account"; readonly change: AccountChange })
  | (Authorized & { readonly kind: "app"; readonly user: UserId; readonly change: AppChange })
  | { readonly kind: "podcast"; readonly change: PodcastChange }
  /** Erases some of the removals before that time. */
  | { readonly kind: "forget"; readonly before: number }
  /** A write without effect, to check that the database is writable. */
  | { readonly kind: "probe" };

/** A job that runs only if the given credential and password are still valid. */
export interface Authorized {
  /** The user who must be an administrator, if any. */
  readonly admin: UserId | undefined;
  readonly credentialHash: string | undefined;
  readonly password: { readonly user: UserId; readonly hash: string } | undefined;
  readonly at: number;
}

export function authorizedBy(caller: Caller, at: Date): Authorized {
  const { user, credentialHash, passwordHash: hash, requiresAdmin } = caller;
  const password = hash === undefined ? undefined : { user, hash };
  return { admin: requiresAdmin === true ? user : undefined, credentialHash, password, at: at.getTime() };
}

/**
 * A number for `account`, `app` and `podcast` jobs (see `AccountChange`, `AppChange` and `PodcastChange`); for `forget`,
 * the number of erased removals.
 */
export type JobResult =
  | { readonly results: readonly ChangeResult<string>[]; readonly sequenceBefore: number; readonly sequence: number }
  | "access-revoked"
  | number;

/** The outcome is unknown if the group may have been stored nevertheless. */
export type GroupResult =
  | { readonly results: readonly JobResult[] }
  | { readonly failure: Error; readonly isOutcomeUnknown: boolean };

/** Executes a group of jobs in one transaction: either the whole group is stored, or none of it. */
export interface GroupWriter {
  /** Returns when the commit is durable. */
  write(jobs: readonly Job[]): GroupResult | Promise<GroupResult>;
  close(): void | Promise<void>;
}

type PackedDetails = Pick<Update, "title" | "expectedTitle" | "folders">;

/** Changes as flat strings for the writer thread: strings are cloned four times as fast as objects. */
export interface PackedChanges {
  /** Kind, id, fallback id, feed URL and normalized URL of each change, "" for a missing value. */
  readonly texts: readonly string[];
  /** Titles and folders by the index of the change, if any has them: even an empty map would take time to clone. */
  readonly details: ReadonlyMap<number, PackedDetails> | undefined;
}

const TEXTS_PER_CHANGE = 5;

type Fields = { readonly kind: Change["kind"] } & Partial<Omit<Addition, "kind">> & Pick<Update, "expectedTitle">;

export function packChanges(changes: readonly Change[]): PackedChanges {
  const texts: string[] = [];
  let details: Map<number, PackedDetails> | undefined;
  for (const [index, change] of changes.entries()) {
    const {
      kind,
      id = "",
      fallbackId = "",
      feedUrl = "",
      normalizedUrl = "",
      title,
      expectedTitle,
      folders,
    }: Fields = change;
    texts.push(kind, id, fallbackId, feedUrl, normalizedUrl);
    if (title === undefined && folders === undefined) continue;
    details ??= new Map();
    details.set(index, {
      ...(title === undefined ? {} : { title }),
      ...(expectedTitle === undefined ? {} : { expectedTitle }),
      ...(folders === undefined ? {} : { folders }),
    });
  }
  return { texts, details };
}

export function unpackChanges({ texts, details }: PackedChanges): Change[] {
  return Array.from({ length: texts.length / TEXTS_PER_CHANGE }, (_, index): Change => {
    const at = index * TEXTS_PER_CHANGE;
    const [kind, id = "", fallbackId = ""] = [texts[at], texts[at + 1], texts[at + 2]];
    const [feedUrl = "", normalizedUrl = ""] = [texts[at + 3], texts[at + 4]];
    if (kind === "remove") return id === "" ? { kind, normalizedUrl } : { kind, id };
    const given = details?.get(index);
    if (kind === "update") return { kind, id, ...(normalizedUrl === "" ? {} : { feedUrl, normalizedUrl }), ...given };
    const addition = { kind: "add", id, feedUrl, normalizedUrl } as const;
    if (fallbackId === "" && given === undefined) return addition;
    return { ...addition, ...(fallbackId === "" ? {} : { fallbackId }), ...given };
  });
}

/** Whether all of the changes are additions. */
export function hasOnlyAdds({ texts }: PackedChanges): boolean {
  return texts.every((text, at) => at % TEXTS_PER_CHANGE !== 0 || text === "add");
}
