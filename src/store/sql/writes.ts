import { ACCOUNT_WRITES } from "./accounts.ts";
import { ADMINISTRATION_WRITES } from "./administration.ts";
import { ALERT_WRITES } from "./alerts.ts";
import { APP_WRITES } from "./apps.ts";
import { DUPLICATE_WRITES } from "./duplicates.ts";
import { HISTORY_WRITES } from "./history.ts";
import { LEASE_WRITES } from "./leases.ts";
import { LINK_WRITES } from "./links.ts";
import { PODCAST_WRITES } from "./podcasts.ts";
import { TITLE_WRITES } from "./titles.ts";

/** All writes besides those of the list, by name. */
export const WRITES = {
  ...ACCOUNT_WRITES,
  ...ADMINISTRATION_WRITES,
  ...ALERT_WRITES,
  ...APP_WRITES,
  ...PODCAST_WRITES,
  ...DUPLICATE_WRITES,
  ...TITLE_WRITES,
  ...LEASE_WRITES,
  ...LINK_WRITES,
  ...HISTORY_WRITES,
} as const;
