import type { Document, Element } from 'domhandler';
import { elementsOf, textOf } from './elements.js';
import { collapsed, cut } from './plain-text.js';
import type { StructuredData } from './structured-data.js';

/** Longest text of an answer in UTF-16 units: pages could make any of them huge. */
export const MAX_TEXT = 10_000;

const MAX_HEADINGS = 20;
const MAX_META = 100;

/** Returns the text of `<title>`, ignoring titles inside pictures. */
export function titleOf(document: Document): string {
  const enter = ({ name }: Element) => name !== 'svg' && name !== 'math';
  let fallback = '';
  for (const element of elementsOf(document, enter)) {
    if (element.name !== 'title' && element.name !== 'h1') continue;
    const text = shown(textOf(element));
    if (text === '') continue;
    if (element.name === 'title') return text;
    fallback ||= text;
  }
  return fallback;
}

export function headingsOf(document: Document): string[] {
  const found = new Set<string>();
  for (const element of elementsOf(document)) {
    if (!/^h[1-3]$/.test(element.name)) continue;
    const text = shown(textOf(element));
    if (text !== '') found.add(text);
    if (found.size === MAX_HEADINGS) break;
  }
  return [...found];
}

/** Values of `<meta>` by name in lower case; the first of each name. */
export interface MetaValues {
  /** By `property` and `name`. */
  readonly named: ReadonlyMap<string, string>;
  /** By `itemprop`, which may be about a part of the page, such as a product or a comment. */
  readonly microdata: ReadonlyMap<string, string>;
}

export function metaValues(document: Document): MetaValues {
  const named = new Map<string, string>();
  const microdata = new Map<string, string>();
  for (const { attribs, name: tag } of elementsOf(document)) {
    if (tag !== 'meta') continue;
    const { content, itemprop, name, property } = attribs;
    const text = content === undefined ? '' : shown(content);
    if (text === '') continue;
    setFirst(named, property, text);
    setFirst(named, name, text);
    setFirst(microdata, itemprop, text);
  }
  return { named, microdata };
}

function setFirst(values: Map<string, string>, key: string | undefined, text: string): void {
  const known = key?.trim().toLowerCase();
  if (known && !values.has(known)) values.set(known, text);
}

export function publicMeta({ named }: MetaValues): Record<string, string> {
  const chosen = [...named]
    .filter(([name]) => /^(?:og:|twitter:|description$)/.test(name))
    .slice(0, MAX_META);
  return Object.fromEntries(chosen);
}

export const descriptionOf = ({ named }: MetaValues): string =>
  named.get('description') ?? named.get('og:description') ?? '';

/** Facts of a page that `/api/read` returns beside its text. */
export interface PageFacts {
  readonly byline: string | null;
  readonly published: string | null;
  readonly language: string | null;
  readonly siteName: string | null;
}

const MAX_BYLINE = 200;

export function factsOf(
  document: Document,
  { microdata, named: byName }: MetaValues,
  data: StructuredData,
): PageFacts {
  const first = (...names: readonly string[]) =>
    names
      .map((name) => byName.get(name) ?? microdata.get(name))
      .find((value) => value !== undefined);
  const named = namedIn(document);
  const names = [
    data.author,
    first('author', 'article:author', 'parsely-author', 'dc.creator', 'dcterms.creator'),
    named.author,
  ];
  const dates = [
    first('article:published_time', 'og:article:published_time', 'datepublished', 'date'),
    data.published,
    first('dc.date', 'dcterms.date', 'dc.date.issued', 'parsely-pub-date'),
    named.published,
  ];
  const byline = names.find(
    (name) => name !== undefined && name.length <= MAX_BYLINE && !/^https?:/.test(name),
  );
  const language =
    named.language ?? first('content-language', 'og:locale', 'dc.language') ?? data.language;
  return {
    byline: byline ?? null,
    published: dates.find((date) => date !== undefined && isDate(date))?.trim() ?? null,
    language: language?.trim().replace('_', '-').slice(0, 35) || null,
    siteName: first('og:site_name', 'application-name') ?? data.publisher ?? null,
  };
}

/** Returns author, date and language as elements name them; the first of each. */
function namedIn(document: Document) {
  let author: string | undefined;
  let published: string | undefined;
  let language: string | undefined;
  for (const element of elementsOf(document)) {
    const { attribs, name } = element;
    if (name === 'html') language ??= attribs.lang ?? attribs['xml:lang'];
    if (attribs.itemprop === 'datePublished') published ??= attribs.datetime ?? attribs.content;
    if (name === 'time') published ??= attribs.datetime;
    author ??= isAuthor(element) ? shown(textOf(element)) || undefined : undefined;
  }
  return { author, published, language };
}

function isAuthor({ attribs: { class: classes, itemprop, rel }, name }: Element): boolean {
  if (name === 'body' || name === 'html' || name === 'meta') return false;
  return itemprop === 'author' || rel === 'author' || /^(?:byline|author)$/.test(classes ?? '');
}

const isDate = (text: string): boolean => text.length < 100 && !Number.isNaN(Date.parse(text));

export const shown = (text: string): string => cut(collapsed(text), MAX_TEXT);
