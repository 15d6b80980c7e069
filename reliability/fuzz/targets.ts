import { addresses } from "./address.ts";
import { jsonBodies } from "./json.ts";
import { mediaTypes } from "./media.ts";
import { operations } from "./operations.ts";
import { opmlFiles } from "./opml.ts";
import { queries } from "./query.ts";
import type { Target } from "./target.ts";

/** Every reader of what strangers send. */
export const targets: readonly Target[] = [mediaTypes, queries, addresses, opmlFiles, jsonBodies, operations];
