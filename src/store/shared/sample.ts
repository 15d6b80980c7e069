import type { StoreSample } from "./size.ts";

/** The query of `Store.sample`, the same on every engine; `$1` is the size. `schema` is empty or ends with a dot. */
export function sampleQuery(schema: string): string {
  return `
    select * from
      (select count(*) as accounts, coalesce(max(user_id), 0) as last_account
       from (select user_id from ${schema}accounts order by user_id limit $1) as some_accounts) as a,
      (select count(*) as lists, coalesce(max(user_id), 0) as last_list, coalesce(sum(total), 0) as subscriptions
       from (select user_id, total from ${schema}lists order by user_id limit $1) as some_lists) as l`;
}

/** PostgreSQL returns large integers as text. */
export function toSample(row: Readonly<Record<string, unknown>> | undefined): StoreSample {
  const number = (name: string) => Number(row?.[name]);
  return {
    accounts: { count: number("accounts"), lastUser: number("last_account") },
    lists: { count: number("lists"), lastUser: number("last_list"), subscriptions: number("subscriptions") },
  };
}
