import { show, showShort, summarize } from "./figures.ts";
import { type Comparison, goalsOf, isReached, type Line, showTarget } from "./report.ts";

/** Charts as SVG files that follow the reader's choice of light or dark. */

const STYLE = `
  .ground { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, sans-serif } .small { font-size: 11px; fill: #59636e }
  .head { font-weight: 600 } .track { fill: #eff2f5 } .yes { fill: #2da44e } .no { fill: #d1570b } .open { fill: #8c959f }
  .mark { stroke: #1f2328; stroke-width: 2 } .spread { stroke: #1f2328; stroke-width: 1; opacity: .55 }
  .axis { stroke: #d1d9e0 } .one { stroke: #0969da; fill: #0969da } .two { stroke: #bc4c00; fill: #bc4c00 } .line { fill: none; stroke-width: 2 }
  text.one, text.two { stroke: none; font-size: 11px }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9198a1 } .track { fill: #21262d }
    .yes { fill: #3fb950 } .no { fill: #f0883e } .open { fill: #6e7681 } .mark, .spread { stroke: #e6edf3 } .axis { stroke: #3d444d }
    .one { stroke: #4493f8; fill: #4493f8 } .two { stroke: #f0883e; fill: #f0883e }
  }`;

const WIDTH = 960;
const [BAR_LEFT, BAR_WIDTH] = [420, 270];
const ROW = 36;
/** Where the target stands on every bar: bars are drawn in parts of it. */
const TARGET_AT = 0.6;

/** One bar for each target, first those that are to be reached, then those that are not to be passed. */
export function drawBars(lines: readonly Line[], caption: string): string {
  const goals = goalsOf(lines);
  const sections = [
    {
      title: "More is better: a bar should reach its mark",
      goals: goals.filter(({ comparison }) => "atLeast" in (comparison.target ?? {})),
    },
    {
      title: "Less is better: a bar should end before its mark",
      goals: goals.filter(({ comparison }) => "atMost" in (comparison.target ?? {})),
    },
  ];
  let y = 34;
  const parts: string[] = [];
  for (const section of sections) {
    parts.push(`<text class="head" x="16" y="${y}">${section.title}</text>`);
    y += 14;
    for (const { line, row, comparison } of section.goals) {
      parts.push(drawBar(y, line, row, comparison));
      y += ROW;
    }
    y += 30;
  }
  return frame(
    y + 18 * wrap(caption).length - 20,
    [...parts, ...drawCaption(caption, y - 10)],
    "Earmark beside its targets",
  );
}

function drawBar(y: number, line: string, row: string, comparison: Comparison): string {
  const { target = { atLeast: 1 } } = comparison;
  const figure = summarize(comparison.rounds);
  const limit = "atLeast" in target ? target.atLeast : target.atMost;
  const at = (value: number) => BAR_LEFT + BAR_WIDTH * Math.min(1, (value / limit) * TARGET_AT);
  const reached = isReached(comparison);
  const kind = reached === undefined ? "open" : reached ? "yes" : "no";
  const middle = y + 13;
  const mark = at(limit);
  const words = `${show(figure)}`;
  const verdict = reached === undefined ? `, ${comparison.unjudged}` : reached ? "" : ", not reached";
  return [
    `<text x="16" y="${y + 13}">${escapeXml(line)}</text>`,
    `<text class="small" x="16" y="${y + 27}">${escapeXml(row)}</text>`,
    `<rect class="track" x="${BAR_LEFT}" y="${y + 4}" width="${BAR_WIDTH}" height="18" rx="2"/>`,
    `<rect class="${kind}" x="${BAR_LEFT}" y="${y + 4}" width="${round(at(figure.median) - BAR_LEFT)}" height="18" rx="2"/>`,
    `<line class="spread" x1="${round(at(figure.min))}" x2="${round(at(figure.max))}" y1="${middle}" y2="${middle}"/>`,
    `<line class="mark" x1="${mark}" x2="${mark}" y1="${y}" y2="${y + 26}"/>`,
    `<text x="${BAR_LEFT + BAR_WIDTH + 10}" y="${y + 13}">${escapeXml(words)}</text>`,
    `<text class="small" x="${BAR_LEFT + BAR_WIDTH + 10}" y="${y + 27}">${escapeXml(`${symbolic(showTarget(target))} ${comparison.what}${verdict}`)}</text>`,
  ].join("\n");
}

/** Figures over sizes that grow tenfold. */
export interface Panel {
  readonly title: string;
  /** What grows. */
  readonly across: string;
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly { readonly size: number; readonly rounds: readonly number[] }[];
  }[];
}

const [PANEL_LEFT, PANEL_WIDTH, PANEL_HEIGHT] = [60, 840, 170];

/** One panel below the other; sizes in powers of ten, figures from nothing to the most, or in powers too if they must be. */
export function drawPanels(panels: readonly Panel[], caption: string): string {
  const parts: string[] = [];
  let y = 30;
  for (const panel of panels) {
    parts.push(drawPanel(y, panel));
    y += PANEL_HEIGHT + 78;
  }
  return frame(
    y + 18 * wrap(caption).length - 24,
    [...parts, ...drawCaption(caption, y - 8)],
    "How the cost of Earmark grows",
  );
}

function drawPanel(top: number, { title, across, series }: Panel): string {
  const sizes = [...new Set(series.flatMap(({ points }) => points.map(({ size }) => size)))].sort((a, b) => a - b);
  const figures = series.flatMap(({ points }) => points.map(({ rounds }) => summarize(rounds)));
  const [least, most] = [Math.min(...figures.map(({ min }) => min)), Math.max(...figures.map(({ max }) => max))];
  const isLogarithmic = most > 8 * least;
  const step = PANEL_WIDTH / Math.max(1, sizes.length);
  const x = (size: number) => round(PANEL_LEFT + step * (sizes.indexOf(size) + 0.5));
  const bottom = top + 12 + PANEL_HEIGHT;
  const height = (value: number) =>
    isLogarithmic ? Math.log(value / (least * 0.5)) / Math.log((most * 1.3) / (least * 0.5)) : value / (most * 1.15);
  const y = (value: number) => round(bottom - PANEL_HEIGHT * height(value));
  const parts = [
    `<text class="head" x="16" y="${top}">${escapeXml(title)}</text>`,
    `<line class="axis" x1="${PANEL_LEFT}" x2="${PANEL_LEFT + PANEL_WIDTH}" y1="${bottom}" y2="${bottom}"/>`,
    `<text class="small" x="${PANEL_LEFT}" y="${bottom + 36}">${escapeXml(isLogarithmic ? `${across}; both axes in powers` : across)}</text>`,
    ...sizes.map(
      (size) =>
        `<text class="small" text-anchor="middle" x="${x(size)}" y="${bottom + 18}">${size.toLocaleString("en")}</text>`,
    ),
  ];
  for (const [index, { name, points }] of series.entries()) {
    const kind = index === 0 ? "one" : "two";
    const known = points.map(({ size, rounds }) => ({ size, ...summarize(rounds) }));
    parts.push(
      `<polyline class="line ${kind}" style="fill:none" points="${known.map((point) => `${x(point.size)},${y(point.median)}`).join(" ")}"/>`,
      `<text class="${kind}" text-anchor="end" x="${PANEL_LEFT + PANEL_WIDTH}" y="${top + 16 * index}">${escapeXml(name)}</text>`,
    );
    for (const point of known) {
      // The larger one of the two has its label above.
      const others = series.filter((_, at) => at !== index).flatMap((other) => other.points);
      const rival = others.find(({ size }) => size === point.size);
      const above = rival === undefined || summarize(rival.rounds).median < point.median ? -9 : 18;
      parts.push(
        `<line class="${kind}" x1="${x(point.size)}" x2="${x(point.size)}" y1="${y(point.min)}" y2="${y(point.max)}"/>`,
        `<circle class="${kind}" cx="${x(point.size)}" cy="${y(point.median)}" r="3"/>`,
        `<text class="${kind}" text-anchor="middle" x="${x(point.size)}" y="${y(point.median) + above}">${showShort(point)}</text>`,
      );
    }
  }
  return parts.join("\n");
}

function frame(height: number, parts: readonly string[], title: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${title}</title>
<style>${STYLE}
</style>
<rect class="ground" width="${WIDTH}" height="${height}"/>
${parts.join("\n")}
</svg>
`;
}

function drawCaption(caption: string, y: number): string[] {
  return wrap(caption).map(
    (words, index) => `<text class="small" x="16" y="${y + 16 * index}">${escapeXml(words)}</text>`,
  );
}

/** Lines of about as many characters as fit. */
function wrap(text: string): string[] {
  return text.match(/.{1,140}(?:\s|$)/g)?.map((line) => line.trim()) ?? [text];
}

function symbolic(text: string): string {
  return text.replace(">=", "≥").replace("<=", "≤");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
