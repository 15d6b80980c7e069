const WIDTH = 84;

/** JSON for people: what fits on a line stays on one. */
export function writeJson(value: unknown, indent = ""): string {
  const short = writeLine(value);
  if (typeof value !== "object" || value === null || indent.length + short.length <= WIDTH) return short;
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((item) => inner + writeJson(item, inner)).join(",\n")}\n${indent}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${inner}${JSON.stringify(name)}: ${writeJson(member, inner)}`,
  );
  return `{\n${members.join(",\n")}\n${indent}}`;
}

function writeLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${writeLine(member)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
