import type { Podcast, Subscription } from "../../../client/src/index.ts";
import { displayUrl } from "../ui/feed-url.ts";
import { podcastOf, titleOf } from "./known-podcasts.ts";

type Artwork = NonNullable<Podcast["artwork"]>;

export interface CoverProps {
  readonly name: string;
  readonly feedUrl: string;
  readonly artwork: Partial<Artwork> | undefined;
  /** How wide it is shown, as in the `sizes` of an image. */
  readonly sizes?: string;
}

/** The artwork, else initials in a color that is the same wherever the feed is shown, and whatever it is called. */
export function Cover({ name, feedUrl, artwork, sizes = "48px" }: CoverProps) {
  const { small, large } = artwork ?? {};
  const srcset = [small && `${small} 160w`, large && `${large} 600w`].filter(Boolean).join(", ");
  return (
    <span class="avatar" aria-hidden="true" style={{ "--hue": String(hueOf(feedUrl)) }}>
      {srcset === "" ? (
        initialsOf(name)
      ) : (
        // A new image is a new element, so that the old one is not shown while it loads.
        <img key={srcset} srcset={srcset} sizes={sizes} alt="" loading="lazy" decoding="async" draggable={false} />
      )}
    </span>
  );
}

export function SubscriptionCover({ subscription, sizes }: { subscription: Subscription; sizes?: string }) {
  const { feedUrl } = subscription;
  const name = titleOf(subscription) ?? displayUrl(feedUrl).host;
  return <Cover name={name} feedUrl={feedUrl} artwork={podcastOf(subscription)?.artwork} {...(sizes && { sizes })} />;
}

function hueOf(feedUrl: string): number {
  let hue = 0;
  for (const letter of feedUrl.slice(0, 300).replace(/^https?:/i, ""))
    hue = (hue * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  // Similar URLs get different colors.
  return (hue * 137) % 360;
}

/** The first letters of the first two words. */
function initialsOf(name: string): string {
  const start = name.slice(0, 100).replace(/^(feeds?|rss|podcasts?|media)\./, "");
  const [one = "", other = ""] = start.match(/(?<![\p{L}\p{N}.'’-])[\p{L}\p{N}]/gu) ?? [];
  return (one + other).toUpperCase();
}
