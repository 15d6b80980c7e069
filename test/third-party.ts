import { readdirSync, readFileSync } from "node:fs";

/** What a lockfile says of a package. */
export interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
}

export interface Package extends Locked {
  readonly name: string;
}

const root = new URL("..", import.meta.url);
export const read = (path: string) => readFileSync(new URL(path, root), "utf8");

/** Every package of a lockfile, by its name; the first entry is the project itself. */
export function packagesOf(lockfile: string): Package[] {
  const { packages } = JSON.parse(read(lockfile)) as { packages: Readonly<Record<string, Locked>> };
  return Object.entries(packages)
    .filter(([place]) => place !== "")
    .map(([place, locked]) => ({ name: place.slice(place.lastIndexOf("node_modules/") + 13), ...locked }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Copies of Node itself, for machines that have an old one. */
export const isNode = ({ name }: Package) => /^node-(darwin|linux|win)-/.test(name);

/** What is there when the server runs. */
export function serverPackages(): Package[] {
  return packagesOf("package-lock.json").filter((one) => one.dev !== true && !isNode(one));
}

/** What is built into the page and so sent to browsers: whatever its sources import. */
export function pagePackages(): Package[] {
  const sources = ["web/src/", "client/src/"].flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => read(folder + name)),
  );
  const imported = new Set(
    sources.flatMap((text) =>
      [...text.matchAll(/(?:from|import) "((?:@[^"/]+\/)?[^"./][^"/]*)/g)].map(([, name]) => name),
    ),
  );
  return packagesOf("web/package-lock.json").filter(({ name }) => imported.has(name));
}

export function writeThirdParty(): string {
  const table = (packages: readonly Package[]) =>
    `| package | version | licence |\n|---|---|---|\n${packages
      .map(({ name, version, license }) => `| ${name} | ${version} | ${license} |\n`)
      .join("")}`;
  const [server, page] = [serverPackages(), pagePackages()];
  return `# What Earmark is made of besides its own code

Made from the lockfiles: \`node test/third-party.ts > THIRD-PARTY.md\`. The licence of each package lies in its folder in
\`node_modules\`. Tools that only build or test are not in this list.

## In the server: ${server.length} packages

${table(server)}
## In the page, and so in browsers: ${page.length} packages

${table(page)}
## Node itself

One of these comes along for machines whose own Node is older than the program needs.

${table(packagesOf("package-lock.json").filter(isNode))}`;
}

if (import.meta.main) process.stdout.write(writeThirdParty());
