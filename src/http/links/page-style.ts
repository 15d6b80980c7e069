import { createHash } from "node:crypto";

/** Colors of podcasts without a cover: the policy allows no style attributes. */
export const COLORS = 12;
const HUES = Array.from({ length: COLORS }, (_, index) => `.hue${index}{--hue:${(index * 360) / COLORS}}`).join("");

/** Inline, so that one request shows the page; the policy allows only this text. */
export const STYLE = `
:root{color-scheme:light dark;font-family:system-ui,sans-serif;line-height:1.5;
--bg:light-dark(#fff,#14171c);--text:light-dark(#1c2024,#e4e7eb);--muted:light-dark(#57606a,#a3abb6);
--line:light-dark(#d8dde3,#333a44);--surface:light-dark(#f4f6f8,#1d2229);--accent:light-dark(#1f5fbf,#8fb8ff);
--on-accent:light-dark(#fff,#0b1a33)}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text)}
main,footer{max-width:72rem;margin:0 auto;padding-inline:max(1rem,4vw)}
header{padding-block:clamp(1.75rem,6vw,3.5rem) 1.5rem}
h1{margin:0;font-size:clamp(1.75rem,5vw,2.5rem);line-height:1.15;letter-spacing:-.02em;overflow-wrap:anywhere;text-wrap:balance}
p{margin:.5rem 0 0}
.muted,footer{color:var(--muted)}
a{color:var(--accent);text-underline-offset:.15em}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:.25rem}
.actions{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.25rem}
.actions a{display:inline-flex;align-items:center;min-height:2.75rem;padding:.375rem 1.125rem;border:1px solid var(--accent);
border-radius:.625rem;font-weight:600;text-decoration:none}
.actions .primary{background:var(--accent);color:var(--on-accent)}
ul{list-style:none;margin:0;padding:0;display:grid;gap:1.75rem 1.25rem;grid-template-columns:repeat(auto-fill,minmax(min(9.5rem,42vw),1fr))}
li{min-width:0;display:flex;flex-direction:column;content-visibility:auto;contain-intrinsic-size:auto 16rem}
.cover{width:100%;height:auto;aspect-ratio:1;object-fit:cover;border-radius:.75rem;background:var(--surface);
box-shadow:0 0 0 1px var(--line),0 6px 18px -10px rgb(0 0 0/.45)}
.letter{display:grid;place-items:center;font-size:3rem;font-weight:600;background:light-dark(hsl(var(--hue) 75% 90%),hsl(var(--hue) 30% 22%));
color:light-dark(hsl(var(--hue) 60% 24%),hsl(var(--hue) 65% 85%))}
${HUES}
h2{margin:.75rem 0 0;font-size:1rem;line-height:1.3;overflow-wrap:anywhere;display:-webkit-box;-webkit-box-orient:vertical;
-webkit-line-clamp:3;overflow:hidden}
.author{margin:.125rem 0 0;font-size:.875rem;color:var(--muted);overflow-wrap:anywhere;display:-webkit-box;
-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
.links{margin:auto 0 0;padding-top:.375rem;font-size:.875rem;display:flex;gap:0 1rem;flex-wrap:wrap}
.links a{padding-block:.25rem}
footer{padding-block:2.5rem;font-size:.875rem}
.gone{min-height:70vh;display:grid;place-content:center;text-align:center;max-width:34rem}
@media print{.actions,.links{display:none}}
`;

/** No scripts, no frames, no forms; images from this server only. */
export const POLICY = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
