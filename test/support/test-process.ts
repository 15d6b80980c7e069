import { registerHooks } from "node:module";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Job } from "./run-tests.ts";

/**
 * Runs the test files that `run-tests.ts` sends, one after the other, because most of them load the whole server, which
 * takes longer than many of them. Every file gets its own instances of the modules in test/: some start a server that
 * ends with the file.
 */
const FRESH = new URL("..", import.meta.url).href;
/** Except these: Ajv takes long to compile the schemas, and Chromium to start. */
const SHARED = ["openapi.ts", "browser.ts"].map((name) => new URL(name, import.meta.url).href);
let count = 0;
let last: NodeJS.ProcessEnv = {};

/** As documented by Node; its types lack it. */
type Context = TestContext & { readonly passed: boolean };

registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    // A test file may run again in another environment.
    const isFresh = resolved.url.startsWith(FRESH) ? !SHARED.includes(resolved.url) : resolved.url.endsWith(".test.ts");
    return isFresh ? { ...resolved, url: `${resolved.url}?${count}` } : resolved;
  },
});

process.on("message", async ({ file, environment }: Job) => {
  count += 1;
  for (const name of Object.keys(last)) delete process.env[name];
  Object.assign(process.env, environment);
  last = environment;
  let context: Context | undefined;
  let cases = 0;
  await test(file, async (t) => {
    context = t as Context;
    t.beforeEach(() => {
      cases += 1;
    });
    await import(pathToFileURL(file).href);
  });
  if (cases === 0) process.stdout.write(`${file} has no tests.\n`);
  process.send?.(cases > 0 && context?.passed === true && process.exitCode === undefined);
});
