import type { Credential } from "../account-store.ts";
import type { Device } from "../app-store.ts";
import type { StoredAction } from "../episode-actions.ts";
import type { Subscription } from "../subscriptions.ts";
import { accountResource, credentialResource, type Person } from "./accounts.ts";
import { deviceResource, writeAction } from "./apps.ts";
import { PLAIN } from "./media-type.ts";
import { writeResource } from "./resource.ts";

/** All data of a user. Long lists are read in pieces. */
export interface AccountExport {
  readonly account: Person;
  readonly credentials: readonly Credential[];
  readonly devices: readonly Device[];
  /** Reads the length of the list. */
  readonly readTotal: () => Promise<number>;
  readonly lists: AsyncIterable<readonly Subscription[]>;
  readonly actions: AsyncIterable<readonly StoredAction[]>;
}

/** The pieces of one document. */
export async function* writeAccountExport(
  { account, credentials, devices, readTotal, lists, actions }: AccountExport,
  base: string,
): AsyncGenerator<string> {
  const total = devices.length === 0 ? 0 : await readTotal();
  const own = [
    accountResource(account, base),
    ...credentials.map((credential) => credentialResource(credential, base)),
    ...devices.map((device) => deviceResource(device, total, base)),
  ];
  yield `{"jsonapi":${JSON.stringify(PLAIN.jsonapi)},"data":[${own.map((item) => JSON.stringify(item)).join(",\n")}`;
  for await (const list of lists) for (const item of list) yield `,\n${writeResource(item, base)}`;
  for await (const some of actions) for (const action of some) yield `,\n${writeAction(action)}`;
  yield "]}\n";
}
