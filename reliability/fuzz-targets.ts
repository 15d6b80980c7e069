import { addresses } from "./fuzz-address.ts";
import { jsonBodies } from "./fuzz-json.ts";
import { mediaTypes } from "./fuzz-media.ts";
import { operations } from "./fuzz-operations.ts";
import { opmlFiles } from "./fuzz-opml.ts";
import { queries } from "./fuzz-query.ts";
import type { Target } from "./fuzz-target.ts";

/** Every reader of what strangers send. */
export const targets: readonly Target[] = [mediaTypes, queries, addresses, opmlFiles, jsonBodies, operations];
