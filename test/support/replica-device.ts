import { setTimeout as sleep } from "node:timers/promises";
import { createClient, EarmarkError, NetworkError, openReplica } from "../../client/src/index.ts";
import { fileStorage } from "../../client/src/node.ts";
import { randomFrom } from "./replica-runs.ts";

/**
 * An app on a device: edits its list at random until it is killed, and prints each edit when it is durable. Arguments: the
 * folder of its list, the URL of the server, and a seed.
 */
const [folder = "", url = "", seed = ""] = process.argv.slice(2);
const random = randomFrom(Number(seed));
const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];

const client = createClient({ url, retries: 0 });
const replica = await openReplica({ client, storage: fileStorage(folder) });
for (let step = 0; ; step += 1) {
  const event = random();
  const item = pick(replica.list().filter(({ feedUrl }) => !feedUrl.startsWith("https://kept.example/")));
  if (event < 0.3) {
    const feed = `https://kept.example/${seed}/${step}`;
    await replica.add([feed]);
    console.log(`kept ${feed}`);
  } else if (event < 0.4) {
    await replica.add([`https://shared.example/${Math.floor(random() * 5)}`]);
    console.log("added");
  } else if (event < 0.5 && item) {
    const [wasThere] = await replica.remove([item.id]);
    console.log(wasThere && item.feedUrl.startsWith("https://seed.example/") ? `removed ${item.id}` : "removed");
  } else if (event < 0.6 && item) {
    await replica.update([{ id: item.id, title: `${seed} ${step}`, folders: [`Folder ${step}`] }]);
    console.log("renamed");
  } else {
    // While the server is down, edits wait.
    await replica.sync().catch((error: unknown) => {
      if (!(error instanceof NetworkError) && !(error instanceof EarmarkError && error.status === 503)) throw error;
      return sleep(20);
    });
    console.log("synced");
  }
}
