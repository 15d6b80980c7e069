import { ARTWORK_SIZES, type ArtworkSize, type Podcast } from "../podcast-store.ts";
import { PLAIN } from "./media-type.ts";
import { PODCAST_TYPE, type PodcastField, writeTimestamp } from "./resource.ts";

const PATH = "/v1/podcasts";
const JSONAPI = JSON.stringify(PLAIN.jsonapi);

/** The resource object of a podcast. */
export interface WrittenPodcast {
  readonly id: string;
  readonly text: string;
}

export function writePodcast(podcast: Podcast, base: string, fields?: readonly PodcastField[]): string {
  return `{"jsonapi":${JSONAPI},"data":${writePodcastResource(podcast, base, fields)}}`;
}

export function writePodcastResource(podcast: Podcast, base: string, fields?: readonly PodcastField[]): string {
  const { id, title, author, description, homepageUrl, language, podcastGuid, artwork } = podcast;
  const { status, statusSince, movedTo, checkedAt } = podcast;
  const self = `${base}${PATH}/${id}`;
  const has = (name: PodcastField) => fields === undefined || fields.includes(name);
  let text = "";
  if (title !== undefined && has("title")) text += `,"title":${JSON.stringify(title)}`;
  if (author !== undefined && has("author")) text += `,"author":${JSON.stringify(author)}`;
  if (description !== undefined && has("description")) text += `,"description":${JSON.stringify(description)}`;
  if (homepageUrl !== undefined && has("homepage_url")) text += `,"homepage_url":${JSON.stringify(homepageUrl)}`;
  if (language !== undefined && has("language")) text += `,"language":${JSON.stringify(language)}`;
  if (podcastGuid !== undefined && has("podcast_guid")) text += `,"podcast_guid":${JSON.stringify(podcastGuid)}`;
  if (artwork !== undefined && has("artwork")) {
    const link = (size: ArtworkSize) => `"${size}":"${self}/artwork/${artwork}-${ARTWORK_SIZES[size]}.webp"`;
    text += `,"artwork":{${link("small")},${link("large")}}`;
  }
  if (has("status")) text += `,"status":"${status}"`;
  if (statusSince !== undefined && has("status_since")) text += `,"status_since":"${writeTimestamp(statusSince)}"`;
  if (movedTo !== undefined && has("moved_to")) text += `,"moved_to":${JSON.stringify(movedTo)}`;
  if (checkedAt !== undefined && has("checked_at")) text += `,"checked_at":"${writeTimestamp(checkedAt)}"`;
  const member = text === "" ? "" : `,"attributes":{${text.slice(1)}}`;
  return `{"type":"${PODCAST_TYPE}","id":"${id}"${member},"links":{"self":"${self}"}}`;
}

/** Reads the last part of the path of an image. */
export function readArtworkName(name: string): { readonly hash: string; readonly size: ArtworkSize } | undefined {
  const [, digits = "", width] = /^([0-9a-f]{32})-(\d{3})\.webp$/.exec(name) ?? [];
  const size = (["small", "large"] as const).find((each) => String(ARTWORK_SIZES[each]) === width);
  return size && { hash: digits, size };
}
