import assert from "node:assert/strict";
import { test } from "node:test";
import { misplacedTrust } from "./calls.ts";

const LOG = "8</d/earmark.db-wal>";
const FILE = "9</d/earmark.db>";
const logged = `7 pwrite64(${LOG}, "x"..., 24, 4152) = 24\n`;
const begunAnew = `7 pwrite64(${LOG}, "x"..., 32, 0) = 32\n`;
const copied = (at: number) => `7 pwrite64(${FILE}, "x"..., 4096, ${at}) = 4096\n`;
const synced = (what: string) => `7 fsync(${what}) = 0\n`;
const failed = (what: string) => `7 fsync(${what}) = -1 EIO (Input/output error) (INJECTED)\n`;
const closed = `7 close(${LOG}) = 0\n`;
const answered = '6 write(5<socket:[1]>, "HTTP/1.1 200 OK"..., 99) = 99\n';

test("an answer that rests on a log whose sync had failed is found", () => {
  assert.deepEqual(misplacedTrust(logged + failed(LOG) + closed + logged + synced(LOG) + answered), []);
  assert.deepEqual(misplacedTrust(logged + synced(LOG) + failed(LOG) + answered), [], "all had been synced before");
  assert.equal(misplacedTrust(logged + failed(LOG) + synced(LOG) + answered).length, 1);
  assert.equal(misplacedTrust(logged + failed(LOG) + logged + synced(LOG) + answered).length, 1);
});

test("a log that is begun anew before the file has every page again is found", () => {
  const lost = copied(4096) + copied(8192) + failed(FILE);
  assert.deepEqual(misplacedTrust(lost + copied(8192) + copied(4096) + synced(FILE) + begunAnew), []);
  assert.equal(misplacedTrust(lost + copied(4096) + synced(FILE) + begunAnew).length, 1);
  assert.equal(misplacedTrust(lost + synced(FILE) + begunAnew).length, 1);
});
