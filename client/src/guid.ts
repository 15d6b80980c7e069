/**
 * The podcast GUID of a feed URL: a version 5 UUID of the URL without its scheme and trailing slashes. SHA-1 is
 * implemented here because browsers do not offer `crypto.subtle` to pages loaded over http.
 */
export function guid(url: string): string {
  const name = new TextEncoder().encode(trimEndSlashes(url.replace(/^[a-z][a-z\d+.-]*:\/\//i, "")));
  const length = name.length + 16;
  const message = new DataView(new ArrayBuffer((length + 72) & ~63));
  // The UUID namespace of podcast GUIDs, ead4c236-bf58-58c6-a2c6-a6b28d128cb6.
  message.setBigUint64(0, 0xead4c236bf5858c6n);
  message.setBigUint64(8, 0xa2c6a6b28d128cb6n);
  new Uint8Array(message.buffer).set(name, 16);
  message.setUint8(length, 0x80);
  message.setUint32(message.byteLength - 4, 8 * length);

  const words = new Int32Array(80);
  const word = (index: number) => words[index] as number;
  const rotate = (value: number, by: number) => (value << by) | (value >>> (32 - by));
  let [h0, h1, h2, h3, h4] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  for (let block = 0; block < message.byteLength; block += 64) {
    let [a, b, c, d, e] = [h0, h1, h2, h3, h4];
    for (let i = 0; i < 80; i += 1) {
      words[i] =
        i < 16 ? message.getInt32(block + 4 * i) : rotate(word(i - 3) ^ word(i - 8) ^ word(i - 14) ^ word(i - 16), 1);
      const mixed =
        i < 20
          ? (d ^ (b & (c ^ d))) + 0x5a827999
          : i < 40
            ? (b ^ c ^ d) + 0x6ed9eba1
            : i < 60
              ? ((b & c) | (d & (b | c))) + 0x8f1bbcdc
              : (b ^ c ^ d) + 0xca62c1d6;
      [a, b, c, d, e] = [(rotate(a, 5) + mixed + e + word(i)) | 0, a, rotate(b, 30), c, d];
    }
    [h0, h1, h2, h3, h4] = [h0 + a, h1 + b, h2 + c, h3 + d, h4 + e];
  }
  // Version 5, and the variant of RFC 9562.
  return [h0, (h1 & 0xffff0fff) | 0x5000, (h2 & 0x3fffffff) | 0x80000000, h3]
    .map((part) => (part >>> 0).toString(16).padStart(8, "0"))
    .join("")
    .replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A loop, because a regular expression for trailing slashes takes quadratic time. */
export function trimEndSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
