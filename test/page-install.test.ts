import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { visit } from "./support/page.ts";
import { startServer } from "./support/server.ts";

interface Manifest {
  readonly url: string;
  readonly data?: string;
  readonly errors: readonly unknown[];
}

describe("install", () => {
  for (const basePath of ["", "/pods"]) {
    test(`install: page at "${basePath}/" → can be installed as an app`, async () => {
      const server = await startServer(basePath === "" ? {} : { EARMARK_BASE_PATH: basePath });
      const { page, finish } = await visit({ server, basePath });
      const session = await page.context().newCDPSession(page);
      const { url, data, errors } = (await session.send("Page.getAppManifest")) as Manifest;
      assert.equal(url, `${server.url}${basePath}/assets/manifest.webmanifest`);
      assert.deepEqual(errors, []);
      const { start_url, scope, icons } = JSON.parse(data ?? "");
      for (const path of [start_url, scope]) assert.equal(new URL(path, url).href, `${server.url}${basePath}/`);
      for (const { src, sizes, type } of icons) {
        const image = await fetch(new URL(src, url));
        assert.deepEqual([image.status, image.headers.get("content-type")], [200, type], src);
        const bytes = Buffer.from(await image.arrayBuffer());
        if (type === "image/png") assert.equal(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`, sizes);
      }
      const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
      // Tests use a private window.
      const found = installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito");
      assert.deepEqual(found, []);
      await finish();
    });
  }
});
