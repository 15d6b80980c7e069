import type { Credential } from "../../../accounts/account-store.ts";
import type { Device } from "../../../apps/app-store.ts";
import type { NumberedAction } from "../../../apps/episode-actions.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import type { Link } from "../../../links/link-store.ts";
import type { ListedSet } from "../../../lists/history-store.ts";
import type { Subscription } from "../../../lists/subscription.ts";
import type { Dismissal } from "../../../podcasts/duplicates.ts";
import { credentialResource, type OwnAccount, ownAccountResource } from "./accounts.ts";
import { deviceResource, writeAction } from "./apps.ts";
import { dismissalResource } from "./duplicates.ts";
import { captionsOf, changeSetResource } from "./history.ts";
import { linkResource } from "./links.ts";
import { writeSubscriptionResource } from "./resource.ts";

/** All of a user's data. Long lists are read page by page. */
interface AccountExport {
  readonly account: OwnAccount;
  readonly credentials: readonly Credential[];
  readonly devices: readonly Device[];
  /** Groups of subscriptions that are not duplicates. */
  readonly dismissals: readonly Dismissal[];
  readonly links: readonly Link[];
  /** Reads the number of subscriptions, which is an attribute of every device resource. */
  readonly readSubscriptionCount: () => Promise<number>;
  readonly subscriptionPages: AsyncIterable<readonly Subscription[]>;
  readonly actionPages: AsyncIterable<readonly NumberedAction[]>;
  /** Who changed the list. */
  readonly changeSetPages: AsyncIterable<readonly ListedSet[]>;
}

/** The chunks of one document. */
export async function* writeAccountExport(
  { account, credentials, devices, dismissals, links, ...more }: AccountExport,
  basePath: string,
): AsyncGenerator<string> {
  const total = devices.length === 0 ? 0 : await more.readSubscriptionCount();
  const own = [
    ownAccountResource(account, basePath),
    ...credentials.map((credential) => credentialResource(credential, basePath)),
    ...devices.map((device) => deviceResource(device, total, basePath)),
    ...dismissals.map(dismissalResource),
    ...links.map((link) => linkResource(link, basePath, undefined)),
  ];
  yield `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"data":[${own.map((item) => JSON.stringify(item)).join(",\n")}`;
  for await (const page of more.subscriptionPages)
    for (const item of page) yield `,\n${writeSubscriptionResource(item, basePath)}`;
  for await (const page of more.actionPages) for (const action of page) yield `,\n${writeAction(action)}`;
  const captions = captionsOf(devices);
  for await (const page of more.changeSetPages)
    for (const { set, isUndone } of page) yield `,\n${JSON.stringify(changeSetResource(set, isUndone, captions))}`;
  yield "]}\n";
}
