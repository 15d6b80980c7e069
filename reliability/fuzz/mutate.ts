/** Where variants come from: a text that is known, others to borrow from, and words that mean something to the reader. */
export interface Material {
  readonly random: () => number;
  readonly corpus: readonly string[];
  readonly words: readonly string[];
  /** The longest variant. */
  readonly maxLength: number;
  /** The highest character: 0xff where the reader is given bytes. */
  readonly maxCharacter: number;
}

const NUMBERS = ["0", "1", "-1", "00", "65", "100", "101", "2048", "9007199254740992", "1e9", "0x1f"];
const ODD = [0, 9, 10, 13, 32, 0x22, 0x25, 0x26, 0x2f, 0x5c, 0x7f, 0x85, 0xa0, 0xad, 0xff, 0x3000, 0xd800, 0xdfff];

/** A variant: one to eight small changes, one upon the other. */
export function mutate(text: string, material: Material): string {
  let variant = text;
  for (let left = 2 ** Math.floor(4 * material.random()); left > 0; left -= 1) variant = change(variant, material);
  return variant.slice(0, material.maxLength);
}

function change(text: string, { random, corpus, words, maxLength, maxCharacter }: Material): string {
  const below = (limit: number) => Math.floor(limit * random());
  const any = (choices: readonly string[]) => choices[below(choices.length)] ?? "";
  const at = below(text.length + 1);
  const end = Math.min(text.length, at + below(random() < 0.8 ? 8 : text.length + 1));
  const put = (inner: string, until = at) => text.slice(0, at) + inner + text.slice(until);
  const character = () => {
    const code = random() < 0.5 ? below(128) : random() < 0.5 ? below(maxCharacter + 1) : (ODD[below(ODD.length)] ?? 0);
    return String.fromCharCode(Math.min(code, maxCharacter));
  };
  const piece = text.slice(at, end);
  switch (below(12)) {
    case 0:
      return put(character());
    case 1:
      return put(character(), at + 1);
    case 2:
      return put("", end);
    case 3:
      return put(piece.repeat(2), end);
    case 4:
      // Rarely, so often that whatever is done more than once for each character is seen to be.
      return put(piece.repeat(random() < 0.02 ? Math.ceil(maxLength / (piece.length + 1)) : below(70)), end);
    case 5:
      return put(any(words), end);
    case 6:
      return put(any(NUMBERS), end);
    case 7:
      return put(random() < 0.5 ? piece.toUpperCase() : piece.toLowerCase(), end);
    case 8:
      return put(encodeURIComponent(piece.toWellFormed()), end);
    case 9: {
      const other = any(corpus);
      const from = below(other.length + 1);
      return put(other.slice(from, from + below(other.length - from + 1)), end);
    }
    case 10: {
      const other = any(corpus);
      return text.slice(0, at) + other.slice(below(other.length + 1));
    }
    default:
      return put(any(words));
  }
}

export interface JsonMaterial {
  readonly random: () => number;
  readonly values: readonly unknown[];
  readonly members: readonly string[];
}

/** A variant that follows the form of a document: a value in it is replaced, left out, repeated or added. */
export function mutateJson(text: string, material: JsonMaterial): string {
  try {
    return JSON.stringify(changeValue(JSON.parse(text), material));
  } catch {
    return text;
  }
}

function changeValue(value: unknown, material: JsonMaterial): unknown {
  const { random, values, members } = material;
  const any = <Item>(items: readonly Item[]) => items[Math.floor(items.length * random())];
  if (typeof value !== "object" || value === null || random() < 0.15) {
    if (typeof value !== "string" || random() < 0.5) return any(values);
    const at = Math.floor(value.length * random());
    return value.slice(0, at) + any(["", "/", "\u0000", "a", "0", "\ud800", " ", '"', "\\"]) + value.slice(at + 1);
  }
  const entries = Object.entries(value);
  const chosen = Math.floor(entries.length * random());
  const way = random();
  const [key = any(members) ?? "", inner] = entries[chosen] ?? [];
  if (way < 0.1) entries.splice(chosen, 1);
  else if (way < 0.2) entries.push(Array.isArray(value) ? ["", any(values)] : [any(members) ?? "", any(values)]);
  else if (way < 0.25) entries.push(...entries);
  else entries[chosen] = [key, changeValue(inner, material)];
  return Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries);
}

/** The shortest text that is still of the kind, by leaving out ever smaller pieces. */
export async function shorten(text: string, isOfTheKind: (shorter: string) => Promise<boolean>): Promise<string> {
  let shortest = text;
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < shortest.length; ) {
      const shorter = shortest.slice(0, at) + shortest.slice(at + size);
      if (await isOfTheKind(shorter)) shortest = shorter;
      else at += size;
    }
  }
  return shortest;
}
