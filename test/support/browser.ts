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
  /** Whether the page may store itself in the browser. Then the test sees and intercepts no request for its files. */
  readonly offlineStart?: boolean;
}

/** A page in its own browser context, whose problems are recorded. */
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
  // Neither tests nor the browser itself may use the network.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]",
];

let running: Promise<Browser> | undefined;

/** The files that one process runs share a browser: starting one takes half a second of CPU time. */
async function sharedBrowser(): Promise<Browser> {
  const last = await running?.catch(() => undefined);
  if (last?.isConnected()) return last;
  // Chromium itself crashes now and then while it starts.
  running = start().catch(start);
  const browser = await running;
  process.once("disconnect", () => browser.close());
  return browser;
}

/** A headless browser for the tests of a file; what they open is closed after them. */
export async function launch(): Promise<TestBrowser> {
  const browser = await sharedBrowser();
  const contexts: BrowserContext[] = [];
  const close = () => browser.close();
  after(() => (process.connected ? Promise.all(contexts.map((context) => context.close())) : close()));
  return {
    version: browser.version(),
    async newPage(url, { size = "desktop", theme = "light", locale = "en-US", offlineStart = false } = {}) {
      const context = await browser.newContext({
        ...SIZES[size],
        baseURL: url,
        colorScheme: theme,
        locale,
        serviceWorkers: offlineStart ? "allow" : "block",
        timezoneId: "UTC",
        // Animations only take time.
        reducedMotion: "reduce",
      });
      contexts.push(context);
      return watch(context, new URL(url).origin);
    },
    close,
  };
}

async function start(): Promise<Browser> {
  const { path, args, env } = await findChromium();
  return chromium.launch({
    executablePath: path,
    args: [...args, ...ARGUMENTS],
    env: { ...process.env, ...env },
    // Not available to root and in many containers. The pages are our own.
    chromiumSandbox: false,
  });
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

async function watch(context: BrowserContext, origin: string): Promise<WatchedPage> {
  const kept: string[] = [];
  const allowed: RegExp[] = [];
  const responded = new WeakSet<Request>();
  /** URLs of requests that are already recorded as problems. */
  const reported: string[] = [];
  const keep = (kind: Kind, text: string) => kept.push(`${kind}: ${text}`);
  const loads: { readonly text: string; readonly url: string }[] = [];

  const leaves = (url: string) => /^(https?|wss?):/.test(url) && new URL(url).host !== new URL(origin).host;
  context.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "assert") return;
    const text = message.text();
    // Usually repeats a request that is recorded anyway.
    if (text.startsWith("Failed to load resource")) loads.push({ text, url: message.location().url });
    else keep(/Content Security Policy|TrustedHTML|TrustedScript/.test(text) ? "policy" : "console", text);
  });
  context.on("weberror", (error) => keep("error", String(error.error().stack ?? error.error())));
  context.on("request", (request) => {
    if (leaves(request.url())) keep("other-host", `${request.method()} ${request.url()}`);
  });
  context.on("requestfailed", (request) => {
    // No failure: a response whose body is not read is canceled, and so is a request that the page repeats by itself
    // or makes in advance when the test opens another page or turns interception on.
    const isCanceled = request.failure()?.errorText === "net::ERR_ABORTED";
    if (
      isCanceled &&
      (responded.has(request) ||
        /\/v1\/(alerts|changes|devices|events|me|subscriptions)$|\/assets\//.test(new URL(request.url()).pathname))
    )
      return;
    reported.push(request.url());
    keep("failed", `${request.method()} ${request.url()} ${request.failure()?.errorText ?? ""}`);
  });
  context.on("response", (response) => {
    responded.add(response.request());
    if (response.status() < 400) return;
    reported.push(response.url());
    keep("response", `${response.status()} ${response.request().method()} ${response.url()}`);
  });
  context.on("page", (page) => {
    page.on("crash", () => keep("crash", page.url()));
    page.on("websocket", (socket) => {
      if (leaves(socket.url())) keep("other-host", socket.url());
    });
  });
  await context.exposeBinding("earmarkViolation", (_source, text: string) => keep("policy", text));
  await context.addInitScript({ content: WATCHER });
  const page = await context.newPage();

  const problems = async () => {
    // Messages that the pages have already sent arrive before the result of this call.
    const rounds = context.pages().map((open) => open.evaluate(() => new Promise((done) => setTimeout(done, 20))));
    await Promise.allSettled(rounds);
    const unexplained = loads.filter(({ url }) => !reported.includes(url));
    const all = [...kept, ...unexplained.map(({ text, url }) => `console: ${text} ${url}`)];
    return all.filter((problem) => !allowed.some((pattern) => pattern.test(problem)));
  };
  return {
    page,
    context,
    allow: (...patterns) => void allowed.push(...patterns),
    problems,
    async finish() {
      const left = await problems();
      await context.close();
      assert.ok(left.length === 0, `the page had problems:\n  ${left.join("\n  ")}`);
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
  // After a resize, the page lays out its rows again in the next frame.
  await evaluate("new Promise((resolve) => requestAnimationFrame(resolve)).then(() => undefined)");
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
