import type { Document, Element } from 'domhandler';
import { elementsOf, textOf } from './elements.js';
import { collapsed, cut } from './plain-text.js';

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

/** Values of `<meta>` by the words of `property` and by `name`, in lower case, of each name in order. */
export type MetaValues = ReadonlyMap<string, readonly string[]>;

/** Maximum number of values of a name, and maximum number of words of a property. */
const MAX_VALUES = 20;
const MAX_PROPERTIES = 10;

export function metaValues(document: Document): MetaValues {
  const named = new Map<string, string[]>();
  for (const { attribs, name: tag } of elementsOf(document)) {
    if (tag !== 'meta') continue;
    const { content, name, property } = attribs;
    const text = content === undefined ? '' : shown(content);
    if (text === '') continue;
    for (const key of [...(property?.split(/\s+/, MAX_PROPERTIES) ?? []), name]) {
      const known = key?.trim().toLowerCase();
      if (!known) continue;
      const values = named.get(known);
      if (values === undefined) named.set(known, [text]);
      else if (values.length < MAX_VALUES) values.push(text);
    }
  }
  return named;
}

export function publicMeta(named: MetaValues): Record<string, string> {
  const chosen = [...named]
    .filter(([name]) => /^(?:og:|twitter:|description$)/.test(name))
    .slice(0, MAX_META)
    .map(([name, [value = '']]) => [name, value] as const);
  return Object.fromEntries(chosen);
}

export const descriptionOf = (named: MetaValues): string =>
  named.get('description')?.[0] ?? named.get('og:description')?.[0] ?? '';

export const shown = (text: string): string => cut(collapsed(text), MAX_TEXT);
