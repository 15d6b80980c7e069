import assert from "node:assert/strict";

/** Versions 1 to 6: the number of codewords, and for each level (L, M, Q, H) [error correction codewords, blocks]. */
const QR_VERSIONS: readonly (readonly [total: number, ...levels: (readonly [number, number])[]])[] = [
  [26, [7, 1], [10, 1], [13, 1], [17, 1]],
  [44, [10, 1], [16, 1], [22, 1], [28, 1]],
  [70, [15, 1], [26, 1], [18, 2], [22, 2]],
  [100, [20, 1], [18, 2], [26, 2], [16, 4]],
  [134, [26, 1], [24, 2], [18, 4], [22, 4]],
  [172, [18, 2], [16, 4], [24, 4], [28, 4]],
];
const QR_MASKS: readonly ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2,
  (_, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];
const QR_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";

/** Reads an undamaged QR code (ISO/IEC 18004) from an SVG path of unit squares. */
export function readQrCode(path: string): string {
  const squares = [...path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
  const edge = Math.min(...squares.flat());
  const size = Math.max(...squares.flat()) - edge + 1;
  const isDark = new Set(squares.map(([x, y]) => (y - edge) * size + x - edge));
  const at = (x: number, y: number) => (isDark.has(y * size + x) ? 1 : 0);
  const version = (size - 17) / 4;
  const [total = 0, ...levels] = QR_VERSIONS[version - 1] ?? [];

  // Level and mask are the first five bits around the upper left corner, in reverse order; the rest is error correction.
  const format = [...[0, 1, 2, 3, 4, 5, 7, 8].map((y) => at(8, y)), ...[7, 5, 4, 3, 2, 1, 0].map((x) => at(x, 8))];
  const known = (format.reduce<number>((sum, bit, index) => sum + (bit << index), 0) ^ 0x5412) >> 10;
  const [correcting = 0, blocks = 0] = levels[[1, 0, 3, 2][known >> 3] ?? 0] ?? [];
  const mask = QR_MASKS[known & 7];
  assert.ok(mask !== undefined && blocks > 0, `a code of version ${version}`);

  const isFixed = (x: number, y: number) =>
    (x < 9 && y < 9) ||
    (x < 9 && y >= size - 8) ||
    (x >= size - 8 && y < 9) ||
    x === 6 ||
    y === 6 ||
    (version > 1 && Math.abs(x - size + 7) <= 2 && Math.abs(y - size + 7) <= 2);
  let bits = "";
  for (let right = size - 1, isUp = true; right > 0; right -= right === 8 ? 3 : 2, isUp = !isUp) {
    for (let step = 0; step < size; step += 1) {
      const y = isUp ? size - 1 - step : step;
      for (const x of [right, right - 1]) if (!isFixed(x, y)) bits += at(x, y) ^ (mask(x, y) === 0 ? 1 : 0);
    }
  }
  const bytes = Array.from({ length: total }, (_, index) => bits.slice(8 * index, 8 * index + 8));

  // Codewords are interleaved between blocks; the last blocks may be longer by one.
  const short = Math.floor(total / blocks) - correcting;
  const longer = total % blocks;
  const whole: string[][] = Array.from({ length: blocks }, () => []);
  const turns = Array.from({ length: short * blocks }, (_, index) => index % blocks);
  for (let block = blocks - longer; block < blocks; block += 1) turns.push(block);
  for (const [index, block] of turns.entries()) whole[block]?.push(bytes[index] ?? "");
  const data = whole.flat().join("");

  let place = 0;
  const take = (count: number) => {
    place += count;
    return Number.parseInt(data.slice(place - count, place) || "0", 2);
  };
  let text = "";
  // Segments of digits, capital letters or bytes, perhaps after a header that declares UTF-8.
  for (let mode = take(4); mode !== 0; mode = take(4)) {
    if (mode === 1) {
      for (let left = take(10); left > 0; left -= 3)
        text += String(take(left > 2 ? 10 : left > 1 ? 7 : 4)).padStart(Math.min(left, 3), "0");
    } else if (mode === 2) {
      for (let left = take(9); left > 0; left -= 2) {
        const value = take(left > 1 ? 11 : 6);
        text += (left > 1 ? QR_LETTERS[Math.floor(value / 45)] : "") + QR_LETTERS.charAt(value % 45);
      }
    } else if (mode === 4) {
      for (let left = take(8); left > 0; left -= 1) text += String.fromCharCode(take(8));
    } else {
      assert.equal(mode, 7);
      assert.equal(take(8), 26);
    }
  }
  return text;
}
