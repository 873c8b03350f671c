import type { Document } from 'domhandler';
import { isObject, tryParseJson, type JsonObject } from '../lib/json.js';
import { elementsOf, textOf } from './elements.js';
import { collapsed } from './plain-text.js';

/** Longest script in characters, and most scripts. */
const MAX_SCRIPT = 2_000_000;
const MAX_SCRIPTS = 20;

/** Most items in the scripts that are examined. */
const MAX_THINGS = 500;

export interface StructuredData {
  readonly headline: string | undefined;
  readonly description: string | undefined;
  readonly author: string | undefined;
  readonly published: string | undefined;
  readonly language: string | undefined;
  readonly publisher: string | undefined;
  readonly articleBody: string | undefined;
}

/** Types of items whose text is the page's. */
const WORKS = /(?:Article|Posting|Report|WebPage|Recipe|Product|Question|CreativeWork|Review)$/;

export function structuredData(document: Document): StructuredData {
  const works: JsonObject[] = [];
  let left = MAX_SCRIPTS;
  for (const element of elementsOf(document)) {
    if (element.name !== 'script' || !isData(element.attribs.type)) continue;
    const text = textOf(element);
    if (text.length <= MAX_SCRIPT) collectWorks(tryParseJson(text.trim()), works);
    if (--left === 0) break;
  }
  // Articles before the pages that contain them.
  const sorted = works.toSorted((a, b) => Number(isPage(a)) - Number(isPage(b)));
  const first = <T>(read: (work: JsonObject) => T | undefined): T | undefined => {
    for (const work of sorted) {
      const found = read(work);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return {
    headline: first(({ headline, name }) => textIn(headline) ?? textIn(name)),
    description: first(({ description }) => textIn(description)),
    author: first(({ author, creator }) => nameIn(author) ?? nameIn(creator)),
    published: first(
      ({ datePublished, dateCreated }) => textIn(datePublished) ?? textIn(dateCreated),
    ),
    language: first(({ inLanguage }) => textIn(inLanguage)),
    publisher: first(({ publisher }) => nameIn(publisher)),
    articleBody: first(({ articleBody }) => rawTextIn(articleBody)),
  };
}

const isData = (type: string | undefined): boolean =>
  type !== undefined && /^\s?application\/ld\+json\s?(?:;|$)/i.test(type);

const typesOf = (thing: JsonObject): readonly unknown[] => [thing['@type']].flat();
const isPage = (thing: JsonObject): boolean => typesOf(thing).includes('WebPage');

function collectWorks(data: unknown, works: JsonObject[]): void {
  const ahead: unknown[] = [data];
  for (let looked = 0; ahead.length > 0 && looked < MAX_THINGS; looked++) {
    const thing = ahead.shift();
    if (Array.isArray(thing)) ahead.push(...(thing as unknown[]).slice(0, MAX_THINGS));
    if (!isObject(thing)) continue;
    if (typesOf(thing).some((type) => typeof type === 'string' && WORKS.test(type)))
      works.push(thing);
    ahead.push(thing['@graph'], thing.mainEntity);
  }
}

const rawTextIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

function textIn(value: unknown): string | undefined {
  const text = typeof value === 'string' ? collapsed(value) : '';
  return text === '' ? undefined : text;
}

/** Returns the names of one or several persons, given as texts or as items with names. */
function nameIn(value: unknown): string | undefined {
  const names = [value]
    .flat()
    .slice(0, 20)
    .map((each) => textIn(isObject(each) ? each.name : each))
    .filter((name) => name !== undefined && !/^https?:/.test(name));
  return names.length === 0 ? undefined : [...new Set(names)].join(', ');
}
