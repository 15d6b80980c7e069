import { generate } from "lean-qr/nano";

/** Light modules around the code, which scanners need to find it. */
const QUIET_ZONE = 4;

/** Always dark on light: many scanners cannot read inverted codes. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const code = generate(text);
  let path = "";
  for (let y = 0; y < code.size; y += 1) {
    for (let x = 0; x < code.size; x += 1) if (code.get(x, y)) path += `M${x} ${y}h1v1h-1z`;
  }
  const size = code.size + 2 * QUIET_ZONE;
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      viewBox={`${-QUIET_ZONE} ${-QUIET_ZONE} ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <rect x={-QUIET_ZONE} y={-QUIET_ZONE} width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
