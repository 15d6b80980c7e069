import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * `node packaging/notes.ts VERSION` prints the section of CHANGELOG.md for a release. Fails if there is none, or if the
 * packages have another version: then the tag is wrong.
 */
export function readNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section for ${version}.`);
  const notes = section.slice(section.indexOf("\n")).trim();
  if (notes === "") throw new Error(`The section for ${version} in CHANGELOG.md is empty.`);
  return `${notes}\n`;
}

/** Versions other than `version`. */
export function otherVersions(version: string, manifests: Readonly<Record<string, string>>): string[] {
  return Object.entries(manifests).flatMap(([name, text]) => {
    const { version: found } = JSON.parse(text) as { version: string };
    return found === version ? [] : [`${name} has version ${found}, not ${version}.`];
  });
}

if (import.meta.main) {
  const read = (name: string) => readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), "utf8");
  const version = process.argv[2] ?? "";
  const manifests = ["package.json", "client/package.json"].map((name) => [name, read(name)] as const);
  const problems = otherVersions(version, Object.fromEntries(manifests));
  if (problems.length > 0) throw new Error(problems.join(" "));
  process.stdout.write(readNotes(read("CHANGELOG.md"), version));
}
