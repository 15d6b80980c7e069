import { readdirSync, readFileSync } from "node:fs";

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

const root = new URL("../..", import.meta.url);
export const read = (path: string) => readFileSync(new URL(path, root), "utf8");

/** Every package of a lockfile, sorted by name. The entry without a path is the project itself. */
export function packagesOf(lockfile: string): Package[] {
  const { packages } = JSON.parse(read(lockfile)) as { packages: Readonly<Record<string, Locked>> };
  return Object.entries(packages)
    .filter(([place]) => place !== "")
    .map(([place, locked]) => ({ name: place.slice(place.lastIndexOf("node_modules/") + 13), ...locked }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Node itself, for machines whose own Node is too old. */
export const isNode = ({ name }: Package) => /^node-(bin-)?(darwin|linux|win)-/.test(name);

/** Sharp and what it needs on each platform: the server scales images if it is installed. */
export const isImageLibrary = ({ name, dev }: Package) =>
  dev !== true && /^(?:sharp|@img\/.+|@emnapi\/runtime|detect-libc|semver|tslib)$/.test(name);

/** Packages that the server needs. */
export function serverPackages(): Package[] {
  return packagesOf("package-lock.json").filter((one) => one.dev !== true && !isNode(one) && !isImageLibrary(one));
}

/** Packages that the sources of the page import. */
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
    `| package | version | license |\n|---|---|---|\n${packages
      .map(({ name, version, license }) => `| ${name} | ${version} | ${license} |\n`)
      .join("")}`;
  const [server, page] = [serverPackages(), pagePackages()];
  return `# Third-party packages

Generated from the lockfiles by \`node test/support/third-party.ts > THIRD-PARTY.md\`. The license
text of each package is in its folder in \`node_modules\`. Tools that only build or test are not
listed.

## Server: ${server.length} packages

${table(server)}
## Web page: ${page.length} packages

${table(page)}
## Artwork

\`sharp\` is optional: without it, podcasts have no artwork. npm installs the packages for one
platform. libvips is a separate shared library, unmodified; its source and license are at
https://github.com/lovell/sharp-libvips.

${table(packagesOf("package-lock.json").filter(isImageLibrary))}
## Node

One of these is installed for machines whose own Node is too old.

${table(packagesOf("package-lock.json").filter(isNode))}`;
}

if (import.meta.main) process.stdout.write(writeThirdParty());
