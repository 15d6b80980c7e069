import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import type axe from "axe-core";
import { type Browser, type BrowserContext, type CDPSession, chromium, type Page, type Request } from "playwright-core";
import { findChromium } from "./chromium.ts";

export interface PageOptions {
  /** A touch screen of 390×844, or a window of 1280×800, which is the default. */
  readonly size?: "phone" | "desktop";
  readonly theme?: "light" | "dark";
  readonly locale?: string;
}

/** A page in its own browser context, whose problems are recorded. Paths are relative to the server. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Ignores problems that match one of these, also earlier ones. */
  readonly allow: (...patterns: readonly RegExp[]) => void;
  /** Problems so far that are not allowed, each as `<kind>: <text>`; see `Kind`. */
  readonly problems: () => Promise<string[]>;
  /** Closes the page and fails if there were problems. */
  readonly finish: () => Promise<void>;
}

export interface TestBrowser {
  readonly version: string;
  /** Opens a page for the server at `url`. Requests to other hosts are problems. */
  readonly newPage: (url: string, options?: PageOptions) => Promise<WatchedPage>;
  readonly close: () => Promise<void>;
}

/**
 * `console`: an error on the console. `error`: an uncaught exception. `policy`: a violation of the content security
 * policy. `failed`: a request without a response. `response`: a response with status 400 or more, such as
 * `response: 401 POST http://…`. `other-host`: a request to another host. `crash`: the page crashed.
 */
type Kind = "console" | "error" | "policy" | "failed" | "response" | "other-host" | "crash";

const SIZES = {
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  desktop: { viewport: { width: 1280, height: 800 } },
};

const ARGUMENTS = [
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  // Starts no process in advance; tabs of a context share one.
  "--renderer-process-limit=1",
  // A process less, and a thread instead of several, because test files run in parallel anyway.
  "--enable-features=NetworkServiceInProcess2",
  "--num-raster-threads=1",
  // Neither tests nor the browser itself may use the network.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]",
];

/** The page is used so briefly that optimizing its code takes more time than it saves. */
const WITHOUT_OPTIMIZATION = "--js-flags=--no-opt --no-maglev";

let running: Promise<Browser> | undefined;

/** Contexts without open pages, by their options. Their processes are running, so that the next page loads faster. */
const idle = new Map<string, WatchedContext[]>();

/** The headless browser of this process; closed after its tests. `optimize` is for benchmarks. */
export async function launch({ optimize = false } = {}): Promise<TestBrowser> {
  running ??= start(optimize ? ARGUMENTS : [...ARGUMENTS, WITHOUT_OPTIMIZATION]);
  const browser = await running;
  return {
    version: browser.version(),
    async newPage(url, { size = "desktop", theme = "light", locale = "en-US" } = {}) {
      const key = `${size} ${locale}`;
      const options = {
        ...SIZES[size],
        locale,
        timezoneId: "UTC",
        // Animations only take time.
        reducedMotion: "reduce" as const,
      };
      const others = idle.get(key) ?? [];
      idle.set(key, others);
      const context = others.pop() ?? (await openContext(await browser.newContext(options)));
      const watched = await context.newPage(new URL(url).origin, () => others.push(context));
      await watched.page.emulateMedia({ colorScheme: theme });
      return watched;
    },
    close: () => browser.close(),
  };
}

async function start(options: readonly string[]): Promise<Browser> {
  const { path, args, env } = await findChromium();
  const browser = await chromium.launch({
    executablePath: path,
    args: [...args, ...options],
    env: { ...process.env, ...env },
    // Not available to root and in many containers. The pages are our own.
    chromiumSandbox: false,
  });
  after(() => browser.close());
  return browser;
}

/** Set by `WATCHER`. */
interface Watching {
  readonly earmarkLongTasks?: () => { start: number; duration: number }[];
}

// A string, since the tests have no DOM types. Runs in each page before its own scripts.
const WATCHER = `{
  const tasks = [];
  const keep = (entries) => tasks.push(...entries.map(({ startTime, duration }) => ({ start: startTime, duration })));
  const observer = new PerformanceObserver((list) => keep(list.getEntries()));
  observer.observe({ type: "longtask", buffered: true });
  globalThis.earmarkLongTasks = () => (keep(observer.takeRecords()), tasks);
  const report = globalThis.earmarkViolation;
  addEventListener("securitypolicyviolation", (event) => {
    const { effectiveDirective, blockedURI, sample, sourceFile, lineNumber } = event;
    const place = sourceFile && sourceFile + ":" + lineNumber;
    report([effectiveDirective, blockedURI, sample, place].filter(Boolean).join(" "));
  }, true);
}`;

/** A browser context for one visit after the other. */
interface WatchedContext {
  /** Calls `release` when the visit is finished and nothing of it is left. */
  readonly newPage: (origin: string, release: () => void) => Promise<WatchedPage>;
}

/** What is known about one visit. */
function createRecords(origin: string) {
  return {
    origin,
    /** Origins that may have stored something. */
    origins: new Set([origin]),
    problems: [] as string[],
    responded: new WeakSet<Request>(),
    /** URLs of requests that are already recorded as problems. */
    reported: [] as string[],
    loads: [] as { readonly text: string; readonly url: string }[],
  };
}

async function openContext(context: BrowserContext): Promise<WatchedContext> {
  let records = createRecords("");
  let isReusable = true;
  const keep = (kind: Kind, text: string) => records.problems.push(`${kind}: ${text}`);

  const leaves = (url: string) => /^(https?|wss?):/.test(url) && new URL(url).host !== new URL(records.origin).host;
  context.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "assert") return;
    const text = message.text();
    // Usually repeats a request that is recorded anyway.
    if (text.startsWith("Failed to load resource")) records.loads.push({ text, url: message.location().url });
    else keep(/Content Security Policy|TrustedHTML|TrustedScript/.test(text) ? "policy" : "console", text);
  });
  context.on("weberror", (error) => keep("error", String(error.error().stack ?? error.error())));
  context.on("request", (request) => {
    if (leaves(request.url())) keep("other-host", `${request.method()} ${request.url()}`);
    if (request.isNavigationRequest()) records.origins.add(new URL(request.url()).origin);
  });
  context.on("requestfailed", (request) => {
    // No failure: a response whose body is not read is cancelled, and so is a request that the page repeats by itself
    // or makes in advance when the test opens another page or turns interception on.
    const isCancelled = request.failure()?.errorText === "net::ERR_ABORTED";
    if (
      isCancelled &&
      (records.responded.has(request) ||
        /\/v1\/(changes|devices|events|me|subscriptions)$|\/assets\/(add|outcomes|passwordless|podcast|sign-in)/.test(
          new URL(request.url()).pathname,
        ))
    )
      return;
    records.reported.push(request.url());
    keep("failed", `${request.method()} ${request.url()} ${request.failure()?.errorText ?? ""}`);
  });
  context.on("response", (response) => {
    records.responded.add(response.request());
    if (response.status() < 400) return;
    records.reported.push(response.url());
    keep("response", `${response.status()} ${response.request().method()} ${response.url()}`);
  });
  context.on("page", (page) => {
    const goto = page.goto.bind(page);
    // A base URL is an option of a context, but each visit has its own server.
    page.goto = (url, options) => goto(new URL(url, records.origin).href, options);
    page.on("crash", () => keep("crash", page.url()));
    page.on("websocket", (socket) => {
      if (leaves(socket.url())) keep("other-host", socket.url());
    });
  });
  await context.exposeBinding("earmarkViolation", (_source, text: string) => keep("policy", text));
  await context.addInitScript({ content: WATCHER });
  // These cannot be undone.
  const { clock } = context;
  const [install, addInitScript] = [clock.install.bind(clock), context.addInitScript.bind(context)];
  clock.install = (options) => {
    isReusable = false;
    return install(options);
  };
  context.addInitScript = (script, argument) => {
    isReusable = false;
    return addInitScript(script, argument);
  };
  /** Keeps the process running. */
  const keeper = await context.newPage();
  const session = await context.newCDPSession(keeper);
  const pages = () => context.pages().filter((page) => page !== keeper);

  const clear = async () => {
    for (const page of pages()) await page.close();
    await Promise.all([
      context.setOffline(false),
      context.unrouteAll({ behavior: "ignoreErrors" }),
      context.clearPermissions(),
      context.clearCookies(),
      ...[...records.origins].map((origin) =>
        session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" }),
      ),
    ]);
  };
  const problemsOf = async ({ problems, loads, reported }: ReturnType<typeof createRecords>) => {
    // Messages that the pages have already sent arrive before the result of this call.
    const rounds = pages().map((open) => open.evaluate(() => new Promise((done) => setTimeout(done, 20))));
    await Promise.allSettled(rounds);
    const unexplained = loads.filter(({ url }) => !reported.includes(url));
    return [...problems, ...unexplained.map(({ text, url }) => `console: ${text} ${url}`)];
  };

  return {
    async newPage(origin, release) {
      const current = createRecords(origin);
      records = current;
      const allowed: RegExp[] = [];
      const problems = async () =>
        (await problemsOf(current)).filter((problem) => !allowed.some((pattern) => pattern.test(problem)));
      const page = await context.newPage();
      return {
        page,
        context,
        allow: (...patterns) => void allowed.push(...patterns),
        problems,
        async finish() {
          const left = await problems();
          if (isReusable && left.length === 0) {
            await clear();
            release();
          } else await context.close();
          assert.ok(left.length === 0, `the page had problems:\n  ${left.join("\n  ")}`);
        },
      };
    },
  };
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Fails with the violations that axe finds in the current state of the page. */
export async function assertAccessible(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const evaluate = async <T>(expression: string): Promise<T> => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as T;
  };
  // Unlike a script element, this is not subject to the content security policy.
  if (await evaluate(`typeof axe === "undefined"`)) await evaluate(`(() => {${AXE}})(), undefined`);
  const options = { runOnly: { type: "tag", values: TAGS }, resultTypes: ["violations"] };
  const violations = await evaluate<axe.Result[]>(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => JSON.parse(JSON.stringify(violations)))`,
  );
  await session.detach();
  const lines = violations.flatMap(({ id, impact, help, nodes }) => [
    `${id} (${impact}): ${help}`,
    ...nodes.map(({ target, failureSummary }) => `  ${target.join(" ")}: ${failureSummary?.replace(/\s+/g, " ")}`),
  ]);
  assert.ok(violations.length === 0, `${page.url()} is not accessible:\n  ${lines.join("\n  ")}`);
}

const sessions = new WeakMap<Page, CDPSession>();

/** Slows the processor down by this factor. */
export async function slowCpu(page: Page, times: number): Promise<void> {
  // Throttling ends with the session.
  const session = sessions.get(page) ?? (await page.context().newCDPSession(page));
  sessions.set(page, session);
  await session.send("Emulation.setCPUThrottlingRate", { rate: times });
}

/** Tasks of 50 ms or more since the page was loaded, in milliseconds. */
export function longTasks(page: Page): Promise<{ start: number; duration: number }[]> {
  return page.evaluate(() => (globalThis as Watching).earmarkLongTasks?.() ?? []);
}
