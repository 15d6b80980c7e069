import assert from "node:assert/strict";
import { after } from "node:test";
import axe from "axe-core";
import { type BrowserContext, type CDPSession, chromium, type Page, type Request } from "playwright-core";
import { findChromium } from "./chromium.ts";

export interface PageOptions {
  /** A phone that is touched (390×844), or a window on a desk (1280×800), which is the default. */
  readonly size?: "phone" | "desktop";
  readonly theme?: "light" | "dark";
  readonly locale?: string;
}

/** A page in a context of its own, of which everything that went wrong is kept. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Problems that match one of these are expected from now on, and were before. */
  readonly allow: (...patterns: readonly RegExp[]) => void;
  /** What went wrong so far and was not allowed, each as `<kind>: <text>`; see `Kind`. */
  readonly problems: () => Promise<string[]>;
  /** Closes the page and fails if anything went wrong. */
  readonly finish: () => Promise<void>;
}

export interface TestBrowser {
  readonly version: string;
  /** A page for the server at `url`: paths are from there, and whatever goes elsewhere is a problem. */
  readonly newPage: (url: string, options?: PageOptions) => Promise<WatchedPage>;
  readonly close: () => Promise<void>;
}

/**
 * `console`: an error on the console. `error`: an exception that nobody caught. `policy`: something that the content
 * security policy forbids. `failed`: a request without an answer. `answer`: one answered with 400 or more, such as
 * `answer: 401 POST http://…`. `elsewhere`: a request that leaves the server. `crash`: the page fell over.
 */
type Kind = "console" | "error" | "policy" | "failed" | "answer" | "elsewhere" | "crash";

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
  // No test may depend on the network, nor may the browser itself look for anything there.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]",
];

/** One browser for the tests of a file, without a window; closed when they have run. */
export async function launch(): Promise<TestBrowser> {
  const { path, args, env } = await findChromium();
  const browser = await chromium.launch({
    executablePath: path,
    args: [...args, ...ARGUMENTS],
    env: { ...process.env, ...env },
    // Root may not have it, and many containers give it to nobody. The pages are our own.
    chromiumSandbox: false,
  });
  const close = () => browser.close();
  after(close);
  return {
    version: browser.version(),
    async newPage(url, { size = "desktop", theme = "light", locale = "en-US" } = {}) {
      const context = await browser.newContext({
        ...SIZES[size],
        baseURL: url,
        colorScheme: theme,
        locale,
        timezoneId: "UTC",
      });
      return watch(context, new URL(url).origin);
    },
    close,
  };
}

/** What `WATCHER` leaves in the page. */
interface Watching {
  readonly earmarkLongTasks?: () => { start: number; duration: number }[];
}

// A string, since the types of the tests know no browser. Each page has it before any script of its own.
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
  const answered = new WeakSet<Request>();
  /** Addresses of requests that are among the problems. */
  const bad: string[] = [];
  const keep = (kind: Kind, text: string) => kept.push(`${kind}: ${text}`);
  const loads: { readonly text: string; readonly url: string }[] = [];

  const leaves = (url: string) => /^(https?|wss?):/.test(url) && new URL(url).host !== new URL(origin).host;
  context.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "assert") return;
    const text = message.text();
    // The browser says so about requests that are kept already, with less of what happened.
    if (text.startsWith("Failed to load resource")) loads.push({ text, url: message.location().url });
    else keep(/Content Security Policy|TrustedHTML|TrustedScript/.test(text) ? "policy" : "console", text);
  });
  context.on("weberror", (error) => keep("error", String(error.error().stack ?? error.error())));
  context.on("request", (request) => {
    if (leaves(request.url())) keep("elsewhere", `${request.method()} ${request.url()}`);
  });
  context.on("requestfailed", (request) => {
    // An answer whose body nobody reads is let go, which is no failure.
    if (answered.has(request) && request.failure()?.errorText === "net::ERR_ABORTED") return;
    bad.push(request.url());
    keep("failed", `${request.method()} ${request.url()} ${request.failure()?.errorText ?? ""}`);
  });
  context.on("response", (response) => {
    answered.add(response.request());
    if (response.status() < 400) return;
    bad.push(response.url());
    keep("answer", `${response.status()} ${response.request().method()} ${response.url()}`);
  });
  context.on("page", (page) => {
    page.on("crash", () => keep("crash", page.url()));
    page.on("websocket", (socket) => {
      if (leaves(socket.url())) keep("elsewhere", socket.url());
    });
  });
  await context.exposeBinding("earmarkViolation", (_source, text: string) => keep("policy", text));
  await context.addInitScript({ content: WATCHER });
  const page = await context.newPage();

  const problems = async () => {
    // What the pages have said already comes in before their answer.
    const rounds = context.pages().map((open) => open.evaluate(() => new Promise((done) => setTimeout(done, 20))));
    await Promise.allSettled(rounds);
    const unexplained = loads.filter(({ url }) => !bad.includes(url));
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

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Fails, and says where, unless axe finds nothing to complain about in what the page shows now. */
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
  // Colours and sizes on their way to elsewhere are not what is to be judged; what never ends is.
  await evaluate(`Promise.allSettled(document.getAnimations()
    .filter((animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime))
    .map((animation) => animation.finished)).then(() => undefined)`);
  // Scripts that come from here are not held to the policy of the page, unlike a script element.
  await evaluate(`typeof axe === "undefined" && (() => {${axe.source}})(), undefined`);
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

/** The processor as if it were `times` slower; 1 is as it is. */
export async function slowCpu(page: Page, times: number): Promise<void> {
  // It lasts as long as the session does.
  const session = sessions.get(page) ?? (await page.context().newCDPSession(page));
  sessions.set(page, session);
  await session.send("Emulation.setCPUThrottlingRate", { rate: times });
}

/** What kept the page from answering for 50 ms or more since it was loaded, in milliseconds. */
export function longTasks(page: Page): Promise<{ start: number; duration: number }[]> {
  return page.evaluate(() => (globalThis as Watching).earmarkLongTasks?.() ?? []);
}
