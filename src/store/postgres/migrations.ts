/**
 * Append-only: the schema of 0.2.0 and released migrations never change. ../sqlite/migrations.ts describes the tables.
 * Keys begin with the user, so that a cluster can distribute users over its nodes, except in tables that are not per
 * user: unique values, feeds and the audit log. `limits` has the rate limits that all processes share.
 * `written_by` identifies the transaction, to find out whether a commit succeeded if its reply was lost.
 * `credential_users` has the user of each credential; the credential itself is stored with the user's other rows.
 */
export const BASE = `
  create table earmark.lists (
    user_id bigint primary key,
    sequence bigint not null,
    total bigint not null,
    forgotten_sequence bigint not null default 0
  );

  create table earmark.subscriptions (
    user_id bigint not null,
    sequence bigint not null,
    id uuid not null,
    feed uuid not null,
    subscribed_at bigint not null,
    written_by bigint not null,
    feed_url text not null,
    update_sequence bigint not null default 0,
    title text,
    folders text,
    primary key (user_id, sequence),
    unique (user_id, id),
    unique (user_id, feed)
  );
  create index subscriptions_by_update on earmark.subscriptions (user_id, update_sequence) where update_sequence > 0;
  create index subscriptions_of_feed on earmark.subscriptions (feed, user_id);

  create table earmark.removals (
    user_id bigint not null,
    sequence bigint not null,
    id uuid not null,
    removed_at bigint not null,
    written_by bigint not null,
    added_sequence bigint not null default 0,
    feed_url text not null default '',
    primary key (user_id, sequence)
  );
  create index removals_by_time on earmark.removals (removed_at);

  create table earmark.gaps (
    user_id bigint primary key,
    counts bytea not null
  );

  create table earmark.accounts (
    user_id bigint primary key,
    created_at bigint not null,
    name text not null,
    issuer text not null,
    password text not null,
    is_admin smallint not null default 0,
    disabled_at bigint not null default 0,
    seen_at bigint not null default 0
  );
  create index accounts_by_creation on earmark.accounts (created_at, user_id);

  create table earmark.identities (
    key uuid primary key,
    user_id bigint not null
  );

  create table earmark.credentials (
    hash bytea not null,
    user_id bigint not null,
    id uuid not null,
    created_at bigint not null,
    used_at bigint not null,
    expires_at bigint not null,
    kind text not null,
    scope text not null,
    label text not null,
    primary key (user_id, hash)
  );
  create index credentials_by_user on earmark.credentials (user_id, kind, created_at);
  create index credentials_by_hash on earmark.credentials (hash);

  create table earmark.credential_users (
    hash bytea primary key,
    user_id bigint not null
  );

  create table earmark.limits (
    key uuid primary key,
    moment double precision not null
  );

  create table earmark.erasures (
    user_id bigint primary key,
    remaining bigint not null
  );

  create table earmark.devices (
    user_id bigint not null,
    id text not null,
    caption text not null,
    type text not null,
    app text not null,
    synced_at bigint not null,
    primary key (user_id, id)
  );

  create table earmark.sync_marks (
    user_id bigint not null,
    kind text not null,
    stamp bigint not null,
    sequence bigint not null,
    primary key (user_id, kind, stamp),
    unique (user_id, kind, sequence)
  );

  create table earmark.sync_clients (
    user_id bigint not null,
    kind text not null,
    client text not null,
    sequence bigint not null,
    since bigint not null,
    start_sequence bigint not null,
    seen_at bigint not null,
    primary key (user_id, kind, client)
  );

  create table earmark.feed_spellings (
    user_id bigint not null,
    sequence bigint not null,
    feed uuid not null,
    recorded_at bigint not null,
    client text not null,
    url text not null,
    primary key (user_id, sequence)
  );
  create index feed_spellings_by_feed on earmark.feed_spellings (user_id, feed);

  create table earmark.episode_actions (
    user_id bigint not null,
    sequence bigint not null,
    feed uuid not null,
    episode uuid not null,
    position bigint not null,
    started bigint not null,
    total bigint not null,
    acted_at bigint not null,
    beaten_at bigint not null,
    beaten_position bigint not null,
    kind text not null,
    podcast text not null,
    media_url text not null,
    guid text not null,
    device text not null,
    primary key (user_id, sequence),
    unique (user_id, feed, episode, kind)
  );

  create table earmark.epoch (
    one boolean primary key,
    value bytea not null
  );
  insert into earmark.epoch values (true, substr(uuid_send(gen_random_uuid()), 1, 8));

  create table earmark.podcasts (
    feed uuid primary key,
    artwork uuid,
    status_since bigint not null,
    checked_at bigint not null default 0,
    artwork_at bigint not null default 0,
    needs_suffix bigint not null default 0,
    next_at bigint not null default 0,
    not_before bigint not null default 0,
    lease_until bigint not null default 0,
    failures bigint not null default 0,
    failure_since bigint not null default 0,
    move_since bigint not null default 0,
    move_count bigint not null default 0,
    status text not null,
    title text,
    author text,
    description text,
    homepage_url text,
    language text,
    podcast_guid text,
    moved_to text,
    artwork_url text,
    etag text,
    last_modified text,
    failure text,
    new_feed_url text,
    move_target text
  );
  create index podcasts_by_next on earmark.podcasts (next_at);

  create table earmark.artwork (
    feed uuid not null,
    size text not null,
    hash uuid not null,
    bytes bytea not null,
    primary key (feed, size)
  );

  create table earmark.audit_log (
    acted_at bigint not null,
    id uuid not null,
    action text not null,
    actor text not null,
    address text not null,
    target text not null,
    primary key (acted_at, id)
  );
  `;

/** The steps from BASE_VERSION on. */
export const MIGRATIONS: readonly string[] = [
  "", // For SQLite only.
  `
  alter table earmark.removals add column title text;
  alter table earmark.removals add column folders text;
  `,
  // One index finds a feed in a list and the subscribers of a feed.
  `
  create unique index subscriptions_by_feed on earmark.subscriptions (feed, user_id);
  drop index earmark.subscriptions_of_feed;
  alter table earmark.subscriptions drop constraint subscriptions_user_id_feed_key;
  `,
  "", // For SQLite only.
  // Names, columns of their own for passkeys, leases besides rate limits, and which writes were committed.
  `
  drop table earmark.gaps;
  alter table earmark.identities rename to names;
  alter table earmark.limits rename to rate_limits;
  alter table earmark.credentials add column passkey_id text;
  alter table earmark.credentials add column public_key text;
  alter table earmark.credentials add column counter bigint;
  update earmark.credentials set label = label::json ->> 0, passkey_id = label::json ->> 1,
    public_key = label::json ->> 2, counter = (label::json ->> 3)::bigint where kind = 'passkey';
  update earmark.credentials set kind = 'linked-user' where kind = 'identity';

  create table earmark.leases (
    key uuid primary key,
    holder bigint not null,
    until bigint not null
  );

  create table earmark.commits (
    user_id bigint not null,
    id bigint not null,
    written_at bigint not null,
    primary key (user_id, id)
  );
  `,
  // Feeds that move.
  `
  create table earmark.feed_urls (
    user_id bigint not null,
    feed uuid not null,
    url text not null,
    target uuid not null,
    leads text not null,
    is_shown bigint not null,
    is_sighted bigint not null,
    current_at bigint not null,
    former_at bigint not null,
    look_at bigint not null,
    looks bigint not null,
    looks_since bigint not null,
    removed text,
    primary key (user_id, feed)
  );
  create index feed_urls_by_target on earmark.feed_urls (user_id, target);
  create index feed_urls_by_look on earmark.feed_urls (look_at) where look_at > 0;

  create table earmark.holdings (
    user_id bigint not null,
    feed uuid not null,
    client text not null,
    url text not null,
    got bigint not null,
    ended bigint not null,
    is_told bigint not null,
    is_sure bigint not null,
    is_again bigint not null,
    primary key (user_id, feed, client)
  );

  create table earmark.resends (
    user_id bigint not null,
    client text not null,
    feed uuid not null,
    sequence bigint not null,
    primary key (user_id, client, feed)
  );

  create table earmark.refused_moves (
    user_id bigint not null,
    feed uuid not null,
    target uuid not null,
    primary key (user_id, feed, target)
  );

  alter table earmark.lists add column has_moves bigint not null default 0;
  alter table earmark.lists add column follows_moves bigint not null default 1;
  alter table earmark.lists add column last_resend bigint not null default 0;
  alter table earmark.subscriptions add column former_feed_urls text;
  alter table earmark.removals add column former_feed_urls text;
  alter table earmark.feed_spellings add column list_sequence bigint not null default 0;
  update earmark.feed_spellings as f set list_sequence = l.sequence
    from earmark.lists as l where l.user_id = f.user_id and l.sequence > 0;
  `,
  // Duplicates, titles of episodes, links with the user of each secret, what alerts are computed from, feeds that ask
  // not to be listed; who changed a list, and what was there before.
  `
  create table earmark.dismissed_duplicates (
    user_id bigint not null,
    id uuid not null,
    dismissed_at bigint not null,
    primary key (user_id, id)
  );

  create table earmark.links (
    user_id bigint not null,
    id uuid not null,
    created_at bigint not null,
    own_titles bigint not null,
    secret text not null,
    kind text not null,
    title text,
    folder text,
    language text not null,
    excluded text,
    primary key (user_id, id)
  );

  create table earmark.link_users (
    key uuid primary key,
    user_id bigint not null
  );

  create table earmark.sign_ins (
    user_id bigint not null,
    id uuid not null,
    first_at bigint not null,
    last_at bigint not null,
    kind text not null,
    label text not null,
    primary key (user_id, id)
  );

  create table earmark.last_backup (
    one bigint primary key,
    made_at bigint not null
  );

  alter table earmark.devices add column sync_week bigint not null default 0;
  alter table earmark.devices add column sync_weeks bigint not null default 0;
  alter table earmark.podcasts add column is_blocked bigint not null default 0;
  update earmark.podcasts set etag = null, last_modified = null;

  create table earmark.change_sets (
    user_id bigint not null,
    sequence bigint not null,
    last_sequence bigint not null,
    started_at bigint not null,
    ended_at bigint not null,
    kind text not null,
    name text not null,
    author text not null,
    act text not null,
    total bigint not null,
    added bigint not null,
    updated bigint not null,
    removed bigint not null,
    undoes bigint not null,
    scope text not null,
    primary key (user_id, sequence)
  );
  create index change_sets_by_end on earmark.change_sets (ended_at);
  create index change_sets_that_undo on earmark.change_sets (user_id, sequence) where undoes > 0;

  create table earmark.edits (
    user_id bigint not null,
    sequence bigint not null,
    id uuid not null,
    edited_at bigint not null,
    size bigint not null,
    feed_url text,
    subscribed_at bigint,
    title text,
    folders text,
    former_feed_urls text,
    primary key (user_id, sequence)
  );
  create index edits_by_id on earmark.edits (user_id, id);
  create index edits_by_time on earmark.edits (edited_at);

  alter table earmark.lists add column history text;
  alter table earmark.removals add column subscribed_at bigint;
  alter table earmark.removals add column client text;
  insert into earmark.change_sets (user_id, sequence, last_sequence, started_at, ended_at, kind, name, author, act, total, added,
      updated, removed, undoes, scope)
    select user_id, min(sequence), max(sequence), min(removed_at), max(removed_at), 'unknown', '', '', '', 0, 0, 0,
      count(*), 0, ''
    from (
      select user_id, sequence, removed_at, sum(is_start) over (partition by user_id order by sequence) as part
      from (
        select user_id, sequence, removed_at, case when removed_at - lag(removed_at) over (
          partition by user_id order by sequence) between -600000 and 600000 then 0 else 1 end as is_start
        from earmark.removals) as marked) as parts
    group by user_id, part;

  alter table earmark.episode_actions add column title text;
  alter table earmark.episode_actions add column published_at bigint;
  alter table earmark.lists add column titles_sequence bigint not null default 0;
  `,
  // The latest episode of a podcast, and why feeds fail: all are read again. Authenticator apps.
  `
  alter table earmark.podcasts add column latest_episode_at bigint not null default 0;
  update earmark.podcasts set etag = null, last_modified = null, next_at = not_before,
    failure = case failure when 'missing' then 'not-found' when 'other' then 'unknown' else failure end;
  create index podcasts_by_failure on earmark.podcasts (failure) where failure is not null;

  alter table earmark.accounts add column totp_secret text;
  alter table earmark.accounts add column totp_step bigint not null default 0;

  create index credentials_by_end on earmark.credentials (expires_at) where expires_at > 0;
  create index credentials_by_use on earmark.credentials (kind, used_at);
  `,
];
