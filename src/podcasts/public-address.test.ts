import assert from "node:assert/strict";
import { test } from "node:test";
import { createAddressCheck } from "./public-address.ts";

const isAllowed = createAddressCheck([]);

test("addresses: public IPv4 and IPv6, also IPv4-mapped and NAT64 → allowed", () => {
  for (const address of [
    ...["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"],
    ...["172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "198.17.255.255", "223.255.255.255"],
    ...["2606:4700::1111", "2001:200::", "2a00::", "3ffe::1", "2003::1"],
    ...["::ffff:1.1.1.1", "::ffff:101:101", "64:ff9b::1.1.1.1", "64:ff9b::101:101", "64:FF9B:0::808:808"],
  ])
    assert.ok(isAllowed(address), address);
});

test("addresses: special-purpose ranges, also IPv4-mapped and NAT64 → rejected", () => {
  for (const address of [
    ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254"],
    ...["172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1"],
    ...["198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"],
    ...["::", "::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd12::1", "ff02::1"],
    ...["2001::1", "2001:1ff::", "2001:db8::1", "2002:7f00:1::", "3fff::1", "100::1", "5f00::1", "64:ff9b:1::1"],
    ...["::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:a00:1", "::ffff:0:1", "::ffff:0.0.0.0"],
    ...["64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::1", "64:ff9b::", "64:ff9b::a9fe:a9fe"],
  ])
    assert.ok(!isAllowed(address), address);
});

test("addresses: not an IP address, or one with a zone → rejected", () => {
  for (const address of ["", "localhost", "127.1", "2130706433", "1.1.1.1.", "[::1]", "fe80::1%eth0", "2606::1%1"])
    assert.ok(!createAddressCheck(["0.0.0.0/1", "::/1"])(address), address);
});

test("addresses: listed networks → allowed in every form, their neighbors rejected", () => {
  const isListed = createAddressCheck(["192.168.1.0/24", "10.0.0.7", "fd00:1::/32"]);
  for (const address of ["192.168.1.9", "10.0.0.7", "fd00:1::9", "::ffff:192.168.1.9", "64:ff9b::c0a8:109", "1.1.1.1"])
    assert.ok(isListed(address), address);
  for (const address of ["192.168.2.1", "10.0.0.8", "fd00:2::1", "127.0.0.1", "::1"])
    assert.ok(!isListed(address), address);
});
