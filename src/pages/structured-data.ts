import type { Document } from 'domhandler';
import { isObject, type JsonObject } from '../lib/json.js';
import { elementsOf, textOf } from './elements.js';
import { parseLenientJson } from './lenient-json.js';
import { parseHtml } from './parse-html.js';
import { collapsed } from './plain-text.js';

/** Longest script in characters, and maximum number of scripts. */
const MAX_SCRIPT = 2_000_000;
const MAX_SCRIPTS = 20;

/** Maximum number of items in the scripts that are examined. */
const MAX_THINGS = 500;

export interface StructuredData {
  readonly headline: string | undefined;
  readonly description: string | undefined;
  /** Names and dates of all works, the best first. */
  readonly authors: readonly string[];
  readonly dates: readonly string[];
  readonly language: string | undefined;
  readonly publisher: string | undefined;
  readonly articleBody: string | undefined;
}

/** Types of items whose text is the page's. */
const WORKS = /(?:Article|Posting|Report|WebPage|Recipe|Product|Question|CreativeWork|Review)$/;

export function structuredData(document: Document): StructuredData {
  const works: JsonObject[] = [];
  const named = new Map<string, JsonObject>();
  let left = MAX_SCRIPTS;
  for (const element of elementsOf(document)) {
    if (element.name !== 'script' || !isData(element.attribs.type)) continue;
    const text = textOf(element);
    if (text.length <= MAX_SCRIPT) collect(parseLenientJson(text), works, named);
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
  const namesOf = (value: unknown) => nameIn(value, named);
  return {
    headline: first(({ headline, name }) => textIn(headline) ?? textIn(name)),
    description: first(({ description }) => textIn(description)),
    authors: sorted.flatMap(({ author, creator }) => namesOf(author) ?? namesOf(creator) ?? []),
    dates: sorted.flatMap(({ dateCreated, datePublished }) =>
      [textIn(datePublished) ?? [], textIn(dateCreated) ?? []].flat(),
    ),
    language: first(({ inLanguage }) => textIn(inLanguage)),
    publisher: first(({ publisher }) => namesOf(publisher)),
    articleBody: first(({ articleBody }) => rawTextIn(articleBody)),
  };
}

const isData = (type: string | undefined): boolean =>
  type !== undefined && /^\s?application\/ld\+json\s?(?:;|$)/i.test(type);

const typesOf = (thing: JsonObject): readonly unknown[] => [thing['@type']].flat();
const isPage = (thing: JsonObject): boolean => typesOf(thing).includes('WebPage');

/** Collects works, and things with a name by their `@id`, to which works refer. */
function collect(data: unknown, works: JsonObject[], named: Map<string, JsonObject>): void {
  const ahead: unknown[] = [data];
  for (let visited = 0; ahead.length > 0 && visited < MAX_THINGS; visited++) {
    const thing = ahead.shift();
    if (Array.isArray(thing)) ahead.push(...(thing as unknown[]).slice(0, MAX_THINGS));
    if (!isObject(thing)) continue;
    const id = thing['@id'];
    if (typeof id === 'string' && thing.name !== undefined) named.set(id, thing);
    if (typesOf(thing).some((type) => typeof type === 'string' && WORKS.test(type)))
      works.push(thing);
    ahead.push(thing['@graph'], thing.mainEntity);
  }
}

const rawTextIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

function textIn(value: unknown): string | undefined {
  const text = typeof value === 'string' ? collapsed(withoutEntities(value)) : '';
  return text === '' ? undefined : text;
}

/** Reads a text that is written in HTML, as the templates of many sites do. */
const withoutEntities = (text: string): string =>
  /&(?:#\w{1,8}|[a-z]\w{1,30});/i.test(text) ? textOf(parseHtml(text)) : text;

/** Returns the names of one or several persons, given as texts, as items with names, or by `@id`. */
function nameIn(value: unknown, named: ReadonlyMap<string, JsonObject>): string | undefined {
  const nameOf = (each: unknown): unknown => {
    if (!isObject(each)) return each;
    return (
      each.name ?? (typeof each['@id'] === 'string' ? named.get(each['@id'])?.name : undefined)
    );
  };
  const names = [value]
    .flat()
    .slice(0, 20)
    .flatMap((each) => [nameOf(each)].flat().slice(0, 20))
    .map(textIn)
    .filter((name) => name !== undefined && !/^https?:/.test(name));
  return names.length === 0 ? undefined : [...new Set(names)].join(', ');
}
