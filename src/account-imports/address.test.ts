import assert from "node:assert/strict";
import { test } from "node:test";
import { possibleServers, readAddress, serverOf, writeAddress } from "./address.ts";

const read = (text: string) => {
  const address = readAddress(text);
  return address && writeAddress(address);
};

test("address: as people enter it → origin and path", () => {
  for (const [text, expected] of [
    ["https://gpodder.net", "https://gpodder.net"],
    [" HTTPS://Gpodder.NET:443/ ", "https://gpodder.net"],
    ["http://192.168.1.5:8080/pods//", "http://192.168.1.5:8080/pods"],
    ["https://cloud.example/nextcloud/?x=1#y", "https://cloud.example/nextcloud"],
    ["https://bücher.example/a b", "https://xn--bcher-kva.example/a%20b"],
    ["http://[::1]:80", "http://[::1]"],
  ] as const)
    assert.equal(read(text), expected);
});

test("address: no URL, another scheme, credentials or too long → undefined", () => {
  const invalid = [
    "",
    "gpodder.net",
    "//gpodder.net",
    "ftp://a.example",
    "javascript:1",
    "http:///x",
    "https://",
    "http://?",
  ];
  const others = [
    "https://ann@a.example",
    "https://ann:pw@a.example",
    "http://a b",
    `https://a.example/${"x".repeat(2_048)}`,
  ];
  for (const text of [...invalid, ...others, "https:/\\a.example", "https://\\a.example"])
    assert.equal(read(text), undefined, text);
});

test("address: a page of the server → the server may also be above it", () => {
  for (const [path, above] of [
    ["", undefined],
    ["/pods", undefined],
    ["/index.php/apps/dashboard", ""],
    ["/cloud/apps/gpoddersync", "/cloud"],
    ["/apps/pods", ""],
    ["/pods/api/2/auth/ann/login.json", "/pods"],
    ["/login.php", ""],
    ["/applications", undefined],
  ] as const) {
    const address = { origin: "https://a.example", path };
    const expected = above === undefined ? [address] : [address, { ...address, path: above }];
    assert.deepEqual(possibleServers(address), expected);
  }
});

test("address: a URL that ends with a path → its server; others → undefined", () => {
  const of = (url: string) => serverOf(new URL(url), "/api/2/devices/ann.json?since=0");
  assert.deepEqual(of("https://a.example/api/2/devices/ann.json"), { origin: "https://a.example", path: "" });
  assert.deepEqual(of("http://a.example:81/x/api/2/devices/ann.json?y"), { origin: "http://a.example:81", path: "/x" });
  assert.equal(of("https://a.example/login"), undefined);
});
