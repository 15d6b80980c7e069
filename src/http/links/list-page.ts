import type { Link } from "../../links/link-store.ts";
import type { SharedBatch, SharedFeed } from "../../links/shared-list.ts";
import { LINK_WORDS } from "../../links/words.ts";
import type { Language } from "../../util/languages.ts";
import { COLORS, STYLE } from "./page-style.ts";

/** Browsers become slow with more; the OPML file has all. */
const MAX_SHOWN = 5_000;

/** Escapes text for elements and quoted attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

function head(language: Language, title: string): string {
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)} – Earmark</title>
<style>${STYLE}</style>
</head>
<body>
`;
}

/**
 * The page of a list, in pieces. `addUrl` leads a member of this server to the import of the list. The page's own URL has
 * no slash at the end, so what is below it is relative to its last part.
 */
export async function* writeListPage(
  link: Pick<Link, "language" | "title" | "secret">,
  batches: AsyncIterable<SharedBatch>,
  addUrl: string | undefined,
): AsyncGenerator<string> {
  const words = LINK_WORDS[link.language];
  const title = link.title ?? words.heading;
  const add = addUrl === undefined ? "" : `<a class="primary" href="${escapeHtml(addUrl)}">${words.addAll}</a>\n`;
  yield `${head(link.language, title)}<main>
<header>
<h1><bdi>${escapeHtml(title)}</bdi></h1>
<p class="muted">${words.lead}</p>
<div class="actions">
${add}<a href="${link.secret}.opml" download>${words.opml}</a>
</div>
</header>
`;
  let shown = 0;
  let isMore = false;
  for await (const { feeds } of batches) {
    const some = feeds.slice(0, MAX_SHOWN - shown);
    isMore = some.length < feeds.length;
    if (shown === 0 && some.length > 0) yield "<ul>\n";
    shown += some.length;
    yield some.map((feed) => writeFeed(feed, link)).join("");
    if (isMore) break;
  }
  const end = shown === 0 ? `<p>${words.empty}</p>\n` : "</ul>\n";
  const more = isMore ? `<p>${words.more}</p>\n` : "";
  const count = shown === 0 ? "" : `${words.count(shown)} · `;
  yield `${end}${more}</main>\n<footer>${count}Earmark</footer>\n</body>\n</html>\n`;
}

function writeFeed(
  { subscription, podcast, title }: SharedFeed,
  { secret, language }: Pick<Link, "language" | "secret">,
): string {
  const words = LINK_WORDS[language];
  const name = title ?? hostOf(subscription.feedUrl);
  const { homepageUrl, author, artwork } = podcast;
  const path = `${secret}/covers/${subscription.id}`;
  const cover =
    artwork === undefined
      ? `<div class="cover letter hue${colorOf(name)}" aria-hidden="true">${escapeHtml(firstLetter(name))}</div>`
      : `<img class="cover" src="${path}-small.webp" srcset="${path}-small.webp 160w, ${path}-large.webp 600w" sizes="(max-width: 30rem) 42vw, 12rem" width="160" height="160" alt="" loading="lazy" decoding="async">`;
  const anchor = (url: string, text: string, label: string) =>
    isWebUrl(url)
      ? `<a href="${escapeHtml(url)}" rel="noreferrer noopener nofollow" aria-label="${escapeHtml(label)}">${text}</a>`
      : "";
  return `<li>
${cover}
<h2><bdi>${escapeHtml(name)}</bdi></h2>
${author === undefined ? "" : `<p class="author"><bdi>${escapeHtml(author)}</bdi></p>\n`}<p class="links">${anchor(homepageUrl ?? "", words.website, words.websiteOf(name))}${anchor(subscription.feedUrl, words.feed, words.feedOf(name))}</p>
</li>
`;
}

function hostOf(feedUrl: string): string {
  return URL.parse(feedUrl)?.hostname.replace(/^www\./, "") ?? "";
}

/** The same for the same name. */
function colorOf(name: string): number {
  let sum = 0;
  for (const letter of name.slice(0, 100)) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 997;
  return sum % COLORS;
}

const SEGMENTER = new Intl.Segmenter();

/** What a reader takes for one letter. */
function firstLetter(text: string): string {
  const [first] = SEGMENTER.segment(text.slice(0, 64));
  return first?.segment.toLocaleUpperCase() ?? "";
}

const isWebUrl = (url: string) => /^https?:\/\//i.test(url);

/** Shown for a link that is unknown or was revoked. */
export function writeGonePage(language: Language): string {
  const { gone, goneLead } = LINK_WORDS[language];
  return `${head(language, gone)}<main class="gone">
<h1>${gone}</h1>
<p class="muted">${goneLead}</p>
</main>
</body>
</html>
`;
}
