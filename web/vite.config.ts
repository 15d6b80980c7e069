import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import { bundleOpenApi } from "./docs/openapi.ts";
import { renderPage } from "./docs/page.ts";

/** What the server serves at `/docs` and `/openapi.json`, from the documentation. */
const documentation: Plugin = {
  name: "documentation",
  apply: "build",
  generateBundle() {
    const folder = new URL("../docs/", import.meta.url);
    const description = JSON.stringify(bundleOpenApi(new URL("openapi/", folder)));
    this.emitFile({ type: "asset", fileName: "openapi.json", source: description });
    this.emitFile({ type: "asset", fileName: "docs.html", source: renderPage(folder) });
  },
};

/** Compresses every file in assets/ once, at build time, with the best settings. */
const compressed: Plugin = {
  name: "compressed",
  apply: "build",
  async writeBundle({ dir = "dist" }) {
    for (const name of await readdir(join(dir, "assets"))) {
      const path = join(dir, "assets", name);
      const bytes = await readFile(path);
      const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
      await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
      await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
    }
  },
};

// biome-ignore lint/style/noDefaultExport: Vite requires it.
export default defineConfig({
  // Relative, since the server may have a base path.
  base: "./",
  plugins: [documentation, compressed],
  // Words are used as a whole: without an export for each key they are 5% smaller.
  json: { namedExports: false },
  build: {
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // One file for the first load, instead of one for each set of views that share code.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "index", tags: ["$initial"] }] } } },
  },
  // For development: run `npx vite` here and a server beside it.
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
});
