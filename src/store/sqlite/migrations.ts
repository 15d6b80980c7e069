/**
 * Append-only: the schema of 0.2.0 and released migrations never change, not even their text, by which foreign databases
 * are recognized.
 *
 * Every change to a user's list takes that user's next sequence number. An item keeps the number under which it was
 * added, which also determines its place in the list; `update_sequence` is that of its last update, or 0. A removal is
 * recorded under its own number, with what is needed to restore the item and the number under which it was added, so
 * that other devices learn of it. Removals up to `forgotten_sequence` may have been erased, or were recorded by a
 * version that kept no URL.
 *
 * `gaps` is unused.
 *
 * A subscription's own title and its folders, one per line, are null when not set.
 *
 * An account and its list have the same user id. Values that must be unique among all users have separate tables: names
 * (`identities`), and the hash of every secret (`credentials`).
 *
 * App data is separate from the list (`sync-marks.ts`). Episode actions have their own sequence numbers: an action that
 * replaces another takes the next number. `sync_marks` has the timestamps issued to apps, `sync_clients` what each client
 * has seen, and `feed_spellings` the feed URLs as clients spelled them.
 *
 * `epoch` identifies the history of the database. It is not copied with the rows: a client's state from before a restore
 * must not be taken for one of the restored history.
 *
 * `podcasts` and `artwork` have what was learned about feeds, shared by all subscribers. They do not contain the feeds'
 * URLs, and are erased when a feed has no subscriber. Artwork is not part of backups: it can be fetched again.
 * `subscribers` has the users of these feeds, once they are known: a row is added after its subscription, and removed with
 * it. If a feed is there, its podcast is too.
 * `accounts.is_admin` is 1 for administrators, `disabled_at` is 0 unless the account is disabled, and `seen_at` is the day
 * of the last request. `totp_secret` is that of the authenticator app, if there is one, and `totp_step` the step of the last
 * code that was used. `audit_log` names accounts instead of referring to them, so that it outlives them.
 *
 * A deleted account's list is erased in steps, from the highest sequence number down. Until that is done, `erasures` has
 * the highest sequence number that is not yet erased.
 */
export const BASE = `
  create table lists (
    user_id integer primary key,
    sequence integer not null,
    total integer not null
  , forgotten_sequence integer not null default 0) strict;

  create table subscriptions (
    user_id integer not null,
    sequence integer not null,
    id blob not null,
    feed blob not null,
    feed_url text not null,
    subscribed_at integer not null, update_sequence integer not null default 0, title text, folders text,
    primary key (user_id, sequence)
  ) strict, without rowid;
  create unique index subscriptions_by_id on subscriptions (user_id, id);
  create unique index subscriptions_by_feed on subscriptions (user_id, feed);

  create table removals (
    user_id integer not null,
    sequence integer not null,
    id blob not null,
    removed_at integer not null, added_sequence integer not null default 0, feed_url text not null default '',
    primary key (user_id, sequence)
  ) strict, without rowid;

  create table gaps (
    user_id integer primary key,
    counts blob not null
  ) strict;

  create table accounts (
    user_id integer primary key,
    name text not null,
    issuer text not null,
    password text not null,
    created_at integer not null
  , is_admin integer not null default 0, disabled_at integer not null default 0, seen_at integer not null default 0) strict;

  create table identities (
    key blob primary key,
    user_id integer not null
  ) strict, without rowid;

  create table credentials (
    hash blob primary key,
    user_id integer not null,
    id blob not null,
    kind text not null,
    scope text not null,
    label text not null,
    created_at integer not null,
    used_at integer not null,
    expires_at integer not null
  ) strict, without rowid;
  create index credentials_by_user on credentials (user_id, kind, created_at);

  create table erasures (
    user_id integer primary key,
    remaining integer not null
  ) strict;
  create index subscriptions_by_update on subscriptions (user_id, update_sequence) where update_sequence > 0;
  create index removals_by_time on removals (removed_at);

  create table devices (
    user_id integer not null,
    id text not null,
    caption text not null,
    type text not null,
    app text not null,
    synced_at integer not null,
    primary key (user_id, id)
  ) strict, without rowid;

  create table sync_marks (
    user_id integer not null,
    kind text not null,
    stamp integer not null,
    sequence integer not null,
    primary key (user_id, kind, stamp)
  ) strict, without rowid;
  create unique index sync_marks_by_sequence on sync_marks (user_id, kind, sequence);

  create table sync_clients (
    user_id integer not null,
    kind text not null,
    client text not null,
    sequence integer not null,
    since integer not null,
    start_sequence integer not null,
    seen_at integer not null,
    primary key (user_id, kind, client)
  ) strict, without rowid;

  create table feed_spellings (
    user_id integer not null,
    sequence integer not null,
    feed blob not null,
    client text not null,
    url text not null,
    recorded_at integer not null,
    primary key (user_id, sequence)
  ) strict, without rowid;
  create index feed_spellings_by_feed on feed_spellings (user_id, feed);

  create table episode_actions (
    user_id integer not null,
    sequence integer not null,
    feed blob not null,
    episode blob not null,
    kind text not null,
    podcast text not null,
    media_url text not null,
    guid text not null,
    device text not null,
    position integer not null,
    started integer not null,
    total integer not null,
    acted_at integer not null,
    beaten_at integer not null,
    beaten_position integer not null,
    primary key (user_id, sequence)
  ) strict, without rowid;
  create unique index episode_actions_by_episode on episode_actions (user_id, feed, episode, kind);

  create table epoch (
    one integer primary key,
    value blob not null
  ) strict;
  insert into epoch values (1, randomblob(8));

  create table podcasts (
    feed blob primary key,
    status text not null,
    status_since integer not null,
    checked_at integer not null default 0,
    artwork blob,
    artwork_at integer not null default 0,
    needs_suffix integer not null default 0,
    next_at integer not null default 0,
    not_before integer not null default 0,
    lease_until integer not null default 0,
    failures integer not null default 0,
    failure text,
    failure_since integer not null default 0,
    move_since integer not null default 0,
    move_count integer not null default 0,
    title text,
    author text,
    homepage_url text,
    language text,
    podcast_guid text,
    moved_to text,
    artwork_url text,
    etag text,
    last_modified text,
    new_feed_url text,
    move_target text,
    description text
  ) strict, without rowid;
  create index podcasts_by_next on podcasts (next_at);

  create table artwork (
    feed blob not null,
    size text not null,
    hash blob not null,
    bytes blob not null,
    primary key (feed, size)
  ) strict;
  create index subscriptions_of_feed on subscriptions (feed);
  create index accounts_by_creation on accounts (created_at, user_id);

  create table audit_log (
    acted_at integer not null,
    id blob not null,
    action text not null,
    actor text not null,
    address text not null,
    target text not null,
    primary key (acted_at, id)
  ) strict, without rowid;
  `;

/** The steps from BASE_VERSION on. */
export const MIGRATIONS: readonly string[] = [
  // One index finds a feed in a list and the subscribers of a feed: each index costs every addition about 12 µs.
  `
  drop index subscriptions_of_feed;
  drop index subscriptions_by_feed;
  create unique index subscriptions_by_feed on subscriptions (feed, user_id);
  `,
  `
  alter table removals add column title text;
  alter table removals add column folders text;
  `,
  "", // For PostgreSQL only.
  // An add changes only pages of its user, so that its cost does not grow with the database.
  `
  create table subscribers (
    feed blob not null,
    user_id integer not null,
    primary key (feed, user_id)
  ) strict, without rowid;
  insert into subscribers
    select feed, user_id from subscriptions where feed in (select feed from podcasts) order by feed, user_id;
  drop index subscriptions_by_feed;
  create unique index subscriptions_by_feed on subscriptions (user_id, feed);

  create trigger subscribers_after_delete after delete on subscriptions begin
    delete from subscribers where feed = old.feed and user_id = old.user_id;
  end;
  create trigger subscribers_after_update after update of feed on subscriptions when new.feed <> old.feed begin
    delete from subscribers where feed = old.feed and user_id = old.user_id;
  end;
  `,
  // Names, and columns of their own for passkeys.
  `
  drop table gaps;
  alter table identities rename to names;
  alter table credentials add column passkey_id text;
  alter table credentials add column public_key text;
  alter table credentials add column counter integer;
  update credentials set label = label ->> 0, passkey_id = label ->> 1, public_key = label ->> 2, counter = label ->> 3
    where kind = 'passkey';
  update credentials set kind = 'linked-user' where kind = 'identity';
  `,
  // Feeds that move.
  `
  create table feed_urls (
    user_id integer not null,
    feed blob not null,
    url text not null,
    target blob not null,
    leads text not null,
    is_shown integer not null,
    is_sighted integer not null,
    current_at integer not null,
    former_at integer not null,
    look_at integer not null,
    looks integer not null,
    looks_since integer not null,
    removed text,
    primary key (user_id, feed)
  ) strict, without rowid;
  create index feed_urls_by_target on feed_urls (user_id, target);
  create index feed_urls_by_look on feed_urls (look_at) where look_at > 0;

  create table holdings (
    user_id integer not null,
    feed blob not null,
    client text not null,
    url text not null,
    got integer not null,
    ended integer not null,
    is_told integer not null,
    is_sure integer not null,
    is_again integer not null,
    primary key (user_id, feed, client)
  ) strict, without rowid;

  create table resends (
    user_id integer not null,
    client text not null,
    feed blob not null,
    sequence integer not null,
    primary key (user_id, client, feed)
  ) strict, without rowid;

  create table refused_moves (
    user_id integer not null,
    feed blob not null,
    target blob not null,
    primary key (user_id, feed, target)
  ) strict, without rowid;

  alter table lists add column has_moves integer not null default 0;
  alter table lists add column follows_moves integer not null default 1;
  alter table lists add column last_resend integer not null default 0;
  alter table subscriptions add column former_feed_urls text;
  alter table removals add column former_feed_urls text;
  alter table feed_spellings add column list_sequence integer not null default 0;
  update feed_spellings set list_sequence =
    coalesce((select sequence from lists where lists.user_id = feed_spellings.user_id), 0);
  `,
  // Duplicates, titles of episodes, links with the user of each secret, what alerts are computed from, feeds that ask
  // not to be listed; who changed a list, and what was there before.
  `
  create table dismissed_duplicates (
    user_id integer not null,
    id blob not null,
    dismissed_at integer not null,
    primary key (user_id, id)
  ) strict, without rowid;

  create table links (
    user_id integer not null,
    id blob not null,
    secret text not null,
    kind text not null,
    title text,
    folder text,
    language text not null,
    excluded text,
    own_titles integer not null,
    created_at integer not null,
    primary key (user_id, id)
  ) strict, without rowid;

  create table link_users (
    key blob primary key,
    user_id integer not null
  ) strict, without rowid;

  create table sign_ins (
    user_id integer not null,
    id blob not null,
    kind text not null,
    label text not null,
    first_at integer not null,
    last_at integer not null,
    primary key (user_id, id)
  ) strict, without rowid;

  create table last_backup (
    one integer primary key,
    made_at integer not null
  ) strict;

  alter table devices add column sync_week integer not null default 0;
  alter table devices add column sync_weeks integer not null default 0;
  alter table podcasts add column is_blocked integer not null default 0;
  update podcasts set etag = null, last_modified = null;

  create table change_sets (
    user_id integer not null,
    sequence integer not null,
    last_sequence integer not null,
    started_at integer not null,
    ended_at integer not null,
    kind text not null,
    name text not null,
    author text not null,
    act text not null,
    total integer not null,
    added integer not null,
    updated integer not null,
    removed integer not null,
    undoes integer not null,
    scope text not null,
    primary key (user_id, sequence)
  ) strict, without rowid;
  create index change_sets_by_end on change_sets (ended_at);
  create index change_sets_that_undo on change_sets (user_id, sequence) where undoes > 0;

  create table edits (
    user_id integer not null,
    sequence integer not null,
    id blob not null,
    edited_at integer not null,
    size integer not null,
    feed_url text,
    subscribed_at integer,
    title text,
    folders text,
    former_feed_urls text,
    primary key (user_id, sequence)
  ) strict, without rowid;
  create index edits_by_id on edits (user_id, id);
  create index edits_by_time on edits (edited_at);

  alter table lists add column history text;
  alter table removals add column subscribed_at integer;
  alter table removals add column client text;
  insert into change_sets (user_id, sequence, last_sequence, started_at, ended_at, kind, name, author, act, total, added,
      updated, removed, undoes, scope)
    select user_id, min(sequence), max(sequence), min(removed_at), max(removed_at), 'unknown', '', '', '', 0, 0, 0,
      count(*), 0, ''
    from (
      select user_id, sequence, removed_at, sum(is_start) over (partition by user_id order by sequence) as part
      from (
        select user_id, sequence, removed_at, case when removed_at - lag(removed_at) over (
          partition by user_id order by sequence) between -600000 and 600000 then 0 else 1 end as is_start
        from removals) as marked) as parts
    group by user_id, part;

  alter table episode_actions add column title text;
  alter table episode_actions add column published_at integer;
  alter table lists add column titles_sequence integer not null default 0;
  `,
  // The latest episode of a podcast, and why feeds fail: all are read again. Authenticator apps.
  `
  alter table podcasts add column latest_episode_at integer not null default 0;
  update podcasts set etag = null, last_modified = null, next_at = not_before,
    failure = case failure when 'missing' then 'not-found' when 'other' then 'unknown' else failure end;
  create index podcasts_by_failure on podcasts (failure) where failure is not null;

  alter table accounts add column totp_secret text;
  alter table accounts add column totp_step integer not null default 0;
  `,
];
