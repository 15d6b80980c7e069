import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { constants, setPriority } from "node:os";
import sharp from "sharp";
import { createFeed } from "./feed.ts";

/** The process that serves feeds with artwork, on all local addresses. It reports its port, and on request how many it has served. */

const NOISE = { type: "gaussian", mean: 128, sigma: 20 } as const;

// Real publishers do not share the processor with the server.
setPriority(constants.priority.PRIORITY_LOW);
const body = createFeed(true);
const cover = await sharp({ create: { width: 1_400, height: 1_400, channels: 3, background: "teal", noise: NOISE } })
  .jpeg()
  .toBuffer();
let count = 0;
const server = createServer((request, response) => {
  if (request.url === "/a.jpg") response.end(cover);
  else {
    count += 1;
    response.end(body);
  }
}).listen(0, "0.0.0.0", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.(count));
process.on("disconnect", () => process.exit());
