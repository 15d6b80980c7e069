import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { suite, test } from "node:test";
import { createPeerReader, networksOf } from "./client-address.ts";

/** The client of a request from `peer` with these headers, as read by a server that trusts these proxies. */
function read(trusted: readonly string[], peer: string | undefined, headers: IncomingMessage["headers"] = {}) {
  return createPeerReader(trusted)({ socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage);
}

/** The network of the client when a trusted proxy at 127.0.0.1 sends this X-Forwarded-For. */
const networkFor = (forwarded: string, ...trusted: string[]) =>
  read(["127.0.0.1", ...trusted], "127.0.0.1", { "x-forwarded-for": forwarded }).networks[0];

const EVERYTHING = {
  "x-forwarded-for": "203.0.113.9",
  "x-forwarded-proto": "https",
  "x-forwarded-host": "pods.example",
};
const FORWARDED = {
  address: "203.0.113.9",
  networks: networksOf("203.0.113.9"),
  isHttps: true,
  scheme: "https",
  host: "pods.example",
};
/** The peer is the client, and the forwarded headers are ignored. */
const direct = (address: string) => ({
  address,
  networks: networksOf(address),
  isHttps: false,
  scheme: undefined,
  host: undefined,
});

suite("trusted proxies", () => {
  test("trusted proxies: none → the peer is the client, and forwarded headers are ignored", () => {
    assert.deepEqual(read([], "127.0.0.1", EVERYTHING), direct("127.0.0.1"));
    assert.deepEqual(read([], "198.51.100.7", EVERYTHING), direct("198.51.100.7"));
    assert.deepEqual(read([], "2001:db8:1:2:3:4:5:6", EVERYTHING), direct("2001:db8:1:2:3:4:5:6"));
  });

  test("trusted proxies: a peer inside or outside the network → its headers are used or ignored", () => {
    for (const [network, inside, outside] of [
      ["127.0.0.1", "127.0.0.1", "127.0.0.2"],
      ["10.0.0.0/8", "10.255.255.255", "11.0.0.0"],
      ["10.20.30.40/8", "10.1.1.1", "9.255.255.255"],
      ["192.0.2.128/25", "192.0.2.128", "192.0.2.127"],
      ["192.0.2.4/31", "192.0.2.5", "192.0.2.6"],
      ["192.0.2.4/32", "192.0.2.4", "192.0.2.5"],
      ["::1", "::1", "::2"],
      ["0:0:0:0:0:0:0:1", "::1", "127.0.0.1"],
      ["2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"],
      ["2001:db8::8/127", "2001:db8::9", "2001:db8::a"],
      ["fd00::/8", "fd12:3456::1", "fe80::1"],
      ["0.0.0.0/0", "203.0.113.200", "2001:db8::1"],
    ] as const) {
      assert.deepEqual(read([network], inside, EVERYTHING), FORWARDED, `${inside} is in ${network}`);
      assert.deepEqual(read([network], outside, EVERYTHING), direct(outside), `${outside}, ${network}`);
    }
  });

  test("trusted proxies: several networks → each of them is trusted", () => {
    const trusted = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"];
    for (const peer of ["127.0.0.1", "10.9.8.7", "fd00::5"])
      assert.deepEqual(read(trusted, peer, EVERYTHING), FORWARDED);
    assert.deepEqual(read(trusted, "192.0.2.1", EVERYTHING), direct("192.0.2.1"));
  });

  test("trusted proxies: an IPv4-mapped IPv6 address → treated as IPv4", () => {
    assert.deepEqual(read(["127.0.0.1"], "::ffff:127.0.0.1", EVERYTHING), FORWARDED);
    assert.deepEqual(read(["10.0.0.0/8"], "::FFFF:10.1.2.3", EVERYTHING), FORWARDED);
    assert.deepEqual(read(["::ffff:127.0.0.1"], "127.0.0.1", EVERYTHING), FORWARDED);
    assert.deepEqual(read(["::ffff:10.0.0.0/104"], "10.1.2.3", EVERYTHING), FORWARDED);
    assert.deepEqual(read([], "::ffff:198.51.100.7"), direct("198.51.100.7"));
  });

  test("trusted proxies: a link-local address with a zone → the zone is ignored", () => {
    assert.deepEqual(read(["fe80::1"], "fe80::1%eth0", EVERYTHING), FORWARDED);
    assert.deepEqual(read([], "fe80::1%eth0"), direct("fe80::1"));
  });

  test("trusted proxies: a closed connection without an address → not trusted", () => {
    assert.deepEqual(read(["127.0.0.1", "::/0", "0.0.0.0/0"], undefined, EVERYTHING), direct(""));
  });
});

suite("X-Forwarded-For", () => {
  test("X-Forwarded-For: an address in any common notation → the client's network", () => {
    for (const written of [
      "203.0.113.9",
      " 203.0.113.9 ",
      "203.0.113.9:51234",
      "::ffff:203.0.113.9",
      "[::ffff:203.0.113.9]",
      "[::FFFF:203.0.113.9]:51234",
      ",203.0.113.9,,",
    ]) {
      assert.equal(networkFor(written), "203.0.113.9", written);
    }
    for (const written of [
      "2001:db8:0:1::5",
      "[2001:db8:0:1::5]",
      "[2001:db8:0:1::5]:443",
      "2001:DB8:0:1:ffff:ffff:ffff:ffff",
      "2001:0db8:0000:0001:0000:0000:0000:0005",
      "2001:db8::1:0:0:0:5",
    ]) {
      assert.equal(networkFor(written), "2001:db8:0:1::/64", written);
    }
  });

  test("X-Forwarded-For: addresses sent by the client itself → ignored", () => {
    assert.equal(networkFor("1.2.3.4, 203.0.113.9"), "203.0.113.9");
    assert.equal(networkFor("127.0.0.1, 203.0.113.9"), "203.0.113.9");
    assert.equal(networkFor("127.0.0.1, 127.0.0.1, 1.2.3.4, 203.0.113.9"), "203.0.113.9");
    assert.equal(networkFor(`${"1.2.3.4, ".repeat(500)}203.0.113.9`), "203.0.113.9");
    assert.equal(networkFor('<script>, "1.2.3.4", 203.0.113.9'), "203.0.113.9");
  });

  test("X-Forwarded-For: several proxies in a row → the first untrusted address from the right", () => {
    assert.equal(networkFor("203.0.113.9, 10.0.0.1, 10.0.0.2", "10.0.0.0/8"), "203.0.113.9");
    assert.equal(networkFor("1.2.3.4, 203.0.113.9, 10.0.0.1", "10.0.0.0/8"), "203.0.113.9");
    assert.equal(networkFor("203.0.113.9, 10.0.0.1, 192.0.2.1, 10.0.0.2", "10.0.0.0/8"), "192.0.2.1");
    assert.equal(networkFor("203.0.113.9, [fd00::1]:8080, ::ffff:10.0.0.2", "10.0.0.0/8", "fd00::/8"), "203.0.113.9");
    assert.equal(networkFor("203.0.113.9, 10.0.0.1", "10.0.0.2"), "10.0.0.1");
  });

  test("X-Forwarded-For: only trusted proxies → the leftmost address", () => {
    assert.equal(networkFor("10.0.0.9, 10.0.0.1", "10.0.0.0/8"), "10.0.0.9");
  });

  test("X-Forwarded-For: an entry that is not an address → the address to its right, else the peer", () => {
    for (const invalid of [
      "unknown",
      "_hidden",
      "pods.example",
      "1.2.3",
      "1.2.3.4.5",
      "256.1.1.1",
      "01.2.3.4",
      "1.2.3.4/32",
      "1.2.3.4:",
      "1.2.3.4:x",
      ":::1",
      "[::1",
      "[::1]x",
      "[1.2.3.4",
      "::1]:80",
      "12345::",
      "1:2:3:4:5:6:7:8:9",
      "-",
      "\u0661.2.3.4",
    ]) {
      assert.equal(networkFor(invalid), "127.0.0.1", invalid);
      assert.equal(networkFor(`203.0.113.9, ${invalid}`), "127.0.0.1", `before ${invalid}`);
      assert.equal(networkFor(`203.0.113.9, ${invalid}, 10.0.0.1`, "10.0.0.0/8"), "10.0.0.1", `around ${invalid}`);
    }
  });

  test("X-Forwarded-For: missing or empty → the proxy is the client", () => {
    for (const headers of [{}, { "x-forwarded-for": "" }, { "x-forwarded-for": " , ," }])
      assert.deepEqual(read(["127.0.0.1"], "127.0.0.1", headers), direct("127.0.0.1"));
  });

  test("X-Forwarded-For: only Forwarded, X-Real-IP and Via are sent → ignored", () => {
    const headers = { forwarded: "for=1.2.3.4;proto=https;host=a.example", "x-real-ip": "1.2.3.4", via: "1.1 a" };
    assert.deepEqual(read(["127.0.0.1"], "127.0.0.1", headers), direct("127.0.0.1"));
  });
});

suite("scheme and host", () => {
  const isHttps = (proto: string) => read(["127.0.0.1"], "127.0.0.1", { "x-forwarded-proto": proto }).isHttps;
  const host = (name: string) => read(["127.0.0.1"], "127.0.0.1", { "x-forwarded-host": name }).host;

  test("X-Forwarded-Proto: https from the nearest proxy → https; anything else → not https", () => {
    for (const proto of ["https", "HTTPS", " https ", "http, https", "x,https"])
      assert.equal(isHttps(proto), true, proto);
    for (const proto of ["", "http", "https, http", "httpss", "https:", "on", "1", "wss"])
      assert.equal(isHttps(proto), false, proto);
  });

  test("X-Forwarded-Host: several → the one from the nearest proxy", () => {
    assert.equal(host("pods.example:8443"), "pods.example:8443");
    assert.equal(host("evil.example, pods.example"), "pods.example");
    assert.equal(host(""), undefined);
  });
});

suite("networks", () => {
  test("networks: an IPv4 address → itself and its /24", () => {
    assert.deepEqual(networksOf("203.0.113.9"), ["203.0.113.9", "203.0.113.0/24"]);
  });

  test("networks: an IPv6 address → its /64, /56 and /48", () => {
    assert.deepEqual(networksOf("2001:db8:1:1234:5::6"), [
      "2001:db8:1:1234::/64",
      "2001:db8:1:1200::/56",
      "2001:db8:1:0::/48",
    ]);
    assert.deepEqual(networksOf("ffff:ffff:ffff:ffff::"), [
      "ffff:ffff:ffff:ffff::/64",
      "ffff:ffff:ffff:ff00::/56",
      "ffff:ffff:ffff:0::/48",
    ]);
  });

  test("networks: an IPv6 address in any notation → its /64", () => {
    for (const [address, network] of [
      ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
      ["2001:db8:1:2::", "2001:db8:1:2::/64"],
      ["2001:0DB8:0001:0002::ffff", "2001:db8:1:2::/64"],
      ["2001:db8::", "2001:db8:0:0::/64"],
      ["2001:db8::1:2:3:4:5", "2001:db8:0:1::/64"],
      ["2001::1", "2001:0:0:0::/64"],
      ["1:2:3:4:5:6:7::", "1:2:3:4::/64"],
      ["1:2:3::5:6:7:8", "1:2:3:0::/64"],
      ["::5:6:7:8", "0:0:0:0::/64"],
      ["::4:5:6:7:8", "0:0:0:4::/64"],
      ["::", "0:0:0:0::/64"],
      ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
      ["1:2:3:4:5:6:192.0.2.1", "1:2:3:4::/64"],
      ["1:2::3:4:5:192.0.2.1", "1:2:0:3::/64"],
    ] as const) {
      assert.equal(networksOf(address)[0], network, address);
    }
  });

  test("networks: IPv6 addresses in different /64s → different networks", () => {
    assert.notEqual(networksOf("2001:db8:0:1::1")[0], networksOf("2001:db8:0:2::1")[0]);
    assert.equal(networksOf("2001:db8:0:1::1")[0], networksOf("2001:db8:0:1:ffff::1")[0]);
  });

  test("networks: not an address → returned unchanged", () => {
    for (const text of ["", "unknown"]) assert.deepEqual(networksOf(text), [text]);
  });
});
