import { readdirSync, readFileSync } from "node:fs";

type Members = Record<string, unknown>;

/** Objects whose members come from several files. */
const COLLECTED = /^\/(paths|components(\/\w+)?)$/;

/** The OpenAPI document from the files of a folder: `base.json`, then the others by name. No two may have the same member. */
export function bundleOpenApi(folder: URL): Members {
  const others = readdirSync(folder).filter((name) => name !== "base.json");
  const document: Members = {};
  for (const name of ["base.json", ...others.sort()])
    addMembers(document, JSON.parse(readFileSync(new URL(name, folder), "utf8")), "", name);
  return document;
}

function addMembers(target: Members, members: Members, parent: string, file: string): void {
  for (const [name, value] of Object.entries(members)) {
    const pointer = `${parent}/${name}`;
    if (!Object.hasOwn(target, name)) target[name] = value;
    else if (COLLECTED.test(pointer)) addMembers(target[name] as Members, value as Members, pointer, file);
    else throw new Error(`${file} has ${pointer}, and so does another file.`);
  }
}
