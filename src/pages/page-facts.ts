import { type Document, type Element, isTag } from 'domhandler';
import { isOfOthers } from './boilerplate-elements.js';
import { elementsOf, firstLineOf } from './elements.js';
import { shown, type MetaValues } from './page-head.js';
import type { StructuredData } from './structured-data.js';

/** Facts of a page that `/api/read` returns beside its text. */
export interface PageFacts {
  readonly byline: string | null;
  readonly published: string | null;
  readonly language: string | null;
  readonly siteName: string | null;
}

/** Maximum number of letters of a byline and of a date. */
const MAX_BYLINE = 200;
const MAX_DATE = 100;

/** Maximum number of elements that are examined as authors, and as dates. */
const MAX_ELEMENTS = 20;

/** Names of `<meta>` with authors, often one for each of several. */
const AUTHORS = ['author', 'article:author', 'parsely-author', 'dc.creator', 'dcterms.creator'];

/** Joins the names in several values, which may also be addresses of their pages. */
function joined(values: readonly string[]): readonly string[] {
  const names = values.filter((value) => !/^https?:/.test(value));
  return names.length === 0 ? [] : [[...new Set(names)].join(', ')];
}

export function factsOf(document: Document, named: MetaValues, data: StructuredData): PageFacts {
  const all = (...names: readonly string[]) => names.flatMap((name) => named.get(name) ?? []);
  const written = writtenIn(document);
  const names = [
    ...data.authors,
    ...AUTHORS.flatMap((name) => joined(named.get(name) ?? [])),
    ...written.authors,
  ];
  const dates = [
    ...all('article:published_time', 'og:article:published_time', 'datepublished', 'date'),
    ...data.dates,
    ...all('dc.date', 'dcterms.date', 'dc.date.issued', 'parsely-pub-date'),
    ...written.published,
    ...written.times,
  ];
  const [declared = data.language] = all('content-language', 'og:locale', 'dc.language');
  const language = written.language ?? declared;
  const [siteName = data.publisher] = all('og:site_name', 'application-name');
  return {
    byline: names.find((name) => name.length <= MAX_BYLINE && !/^https?:/.test(name)) ?? null,
    published: dates.find(isDate)?.trim() ?? null,
    language: language?.trim().replace('_', '-').slice(0, 35) || null,
    siteName: siteName ?? null,
  };
}

/** Returns authors, dates and language as elements of the page name them: those around the headline first. */
function writtenIn(document: Document) {
  const isForOthers = placesOfOthers();
  const place = articleOf(document);
  const near = place && namedIn(place, isForOthers);
  const all = namedIn(document, isForOthers);
  return {
    authors: [...(near?.authors ?? []), ...all.authors],
    published: [...(near?.published ?? []), ...all.published],
    times: [...(near?.times ?? []), ...all.times],
    language: languageOf(document),
  };
}

function languageOf(document: Document): string | undefined {
  for (const { attribs, name } of elementsOf(document)) {
    if (name === 'html') return attribs.lang ?? attribs['xml:lang'];
    if (name === 'body') break;
  }
  return undefined;
}

/** Returns the article around the headline, or the main part, or the only article. */
function articleOf(document: Document): Element | undefined {
  let article: Element | undefined;
  let articles = 0;
  for (const element of elementsOf(document)) {
    const isArticle = element.name === 'article' && articles < 2;
    if (element.name !== 'h1' && !isArticle) continue;
    const around = partAround(element);
    if (!isArticle && around) return around;
    if (!isArticle || around?.name === 'article') continue;
    article = element;
    articles++;
  }
  return articles === 1 ? article : undefined;
}

/** Returns the outermost article around an element, or the main part. */
function partAround(element: Element): Element | undefined {
  let found: Element | undefined;
  let above = element.parent;
  while (above && isTag(above)) {
    if (above.name === 'article') found = above;
    else if (above.name === 'main') found ??= above;
    above = above.parent;
  }
  return found;
}

/** Returns authors and dates as elements name them, in order. */
function namedIn(root: Document | Element, isForOthers: (element: Element) => boolean) {
  const authors: string[] = [];
  const published: string[] = [];
  const times: string[] = [];
  for (const element of elementsOf(root)) {
    const { attribs, name } = element;
    const isByAuthor = authors.length < MAX_ELEMENTS && isAuthor(element);
    const properties = tokensOf(attribs.itemprop);
    const isTime = name === 'time' && properties.length === 0;
    const isDate = properties.includes('datePublished');
    if (!(isByAuthor || isTime || isDate) || isForOthers(element)) continue;
    if (isByAuthor) authors.push(...nameIn(element));
    const dates = isDate ? published : times;
    if ((isDate || isTime) && dates.length < MAX_ELEMENTS) dates.push(...dateIn(element));
  }
  return { authors, published, times };
}

/** Makes a function that reports whether an element is in a part for others; each part is examined once. */
function placesOfOthers(): (element: Element) => boolean {
  const known = new Map<Element, boolean>();
  /** Recursive, because the tree's depth is bounded. */
  const isIn = (element: Element): boolean => {
    let found = known.get(element);
    if (found === undefined) {
      const { parent } = element;
      found = (parent !== null && isTag(parent) && isIn(parent)) || isOfOthers(element);
      known.set(element, found);
    }
    return found;
  };
  return isIn;
}

const NONE: readonly string[] = [];

/** Returns the words of an attribute that holds several. */
const tokensOf = (attribute: string | undefined): readonly string[] =>
  attribute === undefined ? NONE : attribute.split(/\s+/, 50).filter((token) => token !== '');

/** Class names of authors. */
const AUTHOR = /(?:^|\s)(?:byline|author)(?!\S)/;

function isAuthor({ attribs: { class: classes, itemprop, rel }, name }: Element): boolean {
  if (name === 'body' || name === 'html') return false;
  if (itemprop !== undefined && tokensOf(itemprop).includes('author')) return true;
  if (rel !== undefined && tokensOf(rel.toLowerCase()).includes('author')) return true;
  return classes !== undefined && AUTHOR.test(classes);
}

/** Returns the name in an author's element: the part marked as the name, or the first line. */
function nameIn(element: Element): readonly string[] {
  let inside = element;
  for (const each of elementsOf(element)) {
    const { class: classes, itemprop, rel } = each.attribs;
    const isName = tokensOf(itemprop).includes('name') || tokensOf(classes).includes('fn');
    if (isName || (inside === element && tokensOf(rel).includes('author'))) inside = each;
    if (isName) break;
  }
  const text = inside.attribs.content ?? firstLineOf(inside, MAX_BYLINE);
  return text === undefined || shown(text) === '' ? [] : [shown(text)];
}

function dateIn(element: Element): readonly string[] {
  const { content, datetime } = element.attribs;
  const text = datetime ?? content ?? firstLineOf(element, MAX_DATE);
  return text === undefined ? [] : [shown(text)];
}

/** Reports whether a text is a date with its year: `Date.parse` reads "Part 3", too. */
const isDate = (text: string): boolean =>
  text.length < MAX_DATE &&
  /\d{4}|\d[./-]\d\d?[./-]\d/.test(text) &&
  !Number.isNaN(Date.parse(text));
