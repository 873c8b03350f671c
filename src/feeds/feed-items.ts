import { parseFeed } from 'feedsmith';
import { isObject, tryParseJson } from '../lib/json.js';
import { decodeText } from '../pages/decode-text.js';
import { textOf } from '../pages/elements.js';
import { TooComplexError } from '../pages/page-error.js';
import { parseHtml } from '../pages/parse-html.js';
import { collapsed, cut } from '../pages/plain-text.js';
import type { DataFeed } from './feed-list.js';

/** Maximum number of items of a feed that are kept. */
export const MAX_ITEMS = 100;

const MAX_TEXT = 500;
const MAX_SUMMARY = 2_000;
const MAX_URL = 2_000;

/** Maximum number of letters of a summary that are parsed: most of a long summary is cut. */
const MAX_READ = 50_000;

/** Numbers from which a time is in milliseconds: in seconds they are in the year 5138. */
const LEAST_MS = 1e11;

export interface FeedItem {
  readonly id: string;
  readonly title: string | null;
  readonly url: string | null;
  readonly publishedAt: string | null;
  /** Plain text. */
  readonly summary: string | null;
  readonly value: string | number | boolean | null;
}

/** The answer of a feed is not in its format. */
export class FeedFormatError extends Error {
  override readonly name = 'FeedFormatError';
}

/** Parts of an item as the feed has them. */
interface Raw {
  readonly id?: unknown;
  readonly title?: unknown;
  readonly url?: unknown;
  readonly publishedAt?: unknown;
  readonly summary?: unknown;
  readonly value?: unknown;
}

/** Reads the items of a feed's answer, the first 100. @throws FeedFormatError */
export function readItems(
  feed: DataFeed,
  body: Uint8Array,
  contentType: string | undefined,
): readonly FeedItem[] {
  const text = decodeText(body, contentType);
  const raw = feed.kind === 'json' ? rawOfJson(feed, text) : rawOfXml(text);
  return unique(raw.slice(0, MAX_ITEMS).flatMap(itemOf));
}

/** Returns the new items, then the older ones that are no longer in the feed, at most 100. */
export const mergedItems = (
  found: readonly FeedItem[],
  known: readonly FeedItem[],
): readonly FeedItem[] => unique([...found, ...known]).slice(0, MAX_ITEMS);

function unique(items: readonly FeedItem[]): readonly FeedItem[] {
  const byId = new Map<string, FeedItem>();
  for (const item of items) if (!byId.has(item.id)) byId.set(item.id, item);
  return [...byId.values()];
}

function rawOfJson({ items: pointers }: DataFeed & { kind: 'json' }, text: string): Raw[] {
  const { list, ...fields } = pointers;
  const found = valueAt(tryParseJson(text), list);
  if (!Array.isArray(found)) throw new FeedFormatError('has no list of items at its pointer');
  return found.slice(0, MAX_ITEMS).map((item: unknown) => {
    const named = Object.entries(fields).map(([name, at]) => [name, valueAt(item, at)] as const);
    return Object.fromEntries(named);
  });
}

/** Returns the value at a JSON pointer; undefined if there is none. */
function valueAt(document: unknown, pointer: string): unknown {
  let value = document;
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) value = /^\d{1,6}$/.test(name) ? value[Number(name)] : undefined;
    else value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

function rawOfXml(text: string): Raw[] {
  const { feed, format } = parsedFeed(text);
  switch (format) {
    case 'rss':
      return (feed.items ?? []).map(({ content, dc, description, guid, link, pubDate, title }) => ({
        id: guid?.value ?? link ?? title,
        title,
        url: link ?? (guid?.isPermaLink === false ? undefined : guid?.value),
        publishedAt: pubDate ?? dc?.dates?.[0],
        summary: description ?? content?.encoded,
      }));
    case 'rdf':
      return (feed.items ?? []).map(({ content, dc, description, link, rdf, title }) => ({
        id: rdf?.about ?? link ?? title,
        title,
        url: link,
        publishedAt: dc?.dates?.[0],
        summary: description ?? content?.encoded,
      }));
    case 'atom':
      return (feed.entries ?? []).map((entry) => {
        const { content, id, links = [], published, summary, title, updated } = entry;
        const page = links.find(({ rel = 'alternate' }) => rel === 'alternate') ?? links[0];
        return {
          id: id ?? page?.href,
          title: title?.type === 'text' ? title.value : plain(title?.value, MAX_TEXT),
          url: page?.href,
          publishedAt: published ?? updated,
          summary: summary?.value ?? content?.value,
        };
      });
    case 'json':
      throw new FeedFormatError('is JSON, not RSS, RDF or Atom');
  }
}

function parsedFeed(text: string) {
  try {
    return parseFeed(text, { maxItems: MAX_ITEMS });
  } catch (cause) {
    throw new FeedFormatError('is not RSS, RDF or Atom', { cause });
  }
}

function itemOf({ id, publishedAt, summary, title, url, value }: Raw): FeedItem[] {
  const own = lineOf(id) ?? lineOf(url) ?? lineOf(title);
  if (own === null) return [];
  return [
    {
      id: own,
      title: lineOf(title),
      url: webAddress(url),
      publishedAt: timeOf(publishedAt),
      summary: plain(summary, MAX_SUMMARY),
      value: scalarOf(value),
    },
  ];
}

/** Removes what the database refuses in a text. */
const storable = (text: string): string =>
  // Half a character of a pair becomes the sign for an unknown one.
  Buffer.from(text.replaceAll('\0', '')).toString();

/** Returns a text as one line; null without one. */
function lineOf(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return null;
  return storable(cut(collapsed(cut(value, MAX_READ)), MAX_TEXT)) || null;
}

/** Returns the text of HTML as one line; null without one. */
function plain(value: unknown, most: number): string | null {
  if (typeof value !== 'string') return null;
  try {
    return storable(cut(collapsed(textOf(parseHtml(cut(value, MAX_READ)))), most)) || null;
  } catch (error) {
    if (error instanceof TooComplexError) return null;
    throw error;
  }
}

function webAddress(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_URL || !URL.canParse(value)) return null;
  const { href, protocol } = new URL(value);
  return protocol === 'https:' || protocol === 'http:' ? href : null;
}

/** Returns a time in ISO format: of a text, or of a number of seconds or milliseconds since 1970. */
function timeOf(value: unknown): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const isSeconds = typeof value === 'number' && value < LEAST_MS;
  const time = new Date(isSeconds ? value * 1_000 : value);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

function scalarOf(value: unknown): FeedItem['value'] {
  if (typeof value === 'string') return storable(cut(value, MAX_TEXT));
  return typeof value === 'number' || typeof value === 'boolean' ? value : null;
}
