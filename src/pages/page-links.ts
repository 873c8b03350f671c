import type { Document, Element } from 'domhandler';
import { elementsOf, textOf } from './elements.js';
import { collapsed, cut } from './plain-text.js';

const MAX_LINKS = 50;
const MAX_IMAGES = 20;
const MAX_LABEL = 100;

/** Longest address, in characters, that counts as a link. */
const MAX_ADDRESS = 8_192;

export interface PageLink {
  readonly href: string;
  readonly text: string;
}

export interface PageImage {
  readonly src: string;
  readonly alt: string;
}

/** Returns the base of relative addresses: the page's `<base>`, or its own URL. */
export function baseOf(document: Document, url: string): string {
  for (const element of elementsOf(document)) {
    const { href } = element.name === 'base' ? element.attribs : {};
    if (href !== undefined) return webAddress(href, url) ?? url;
  }
  return url;
}

/** Returns the web links of a page, each once, ignoring fragments. */
export function linksOf(document: Document, base: string, url: string): PageLink[] {
  const found = new Map<string, PageLink>();
  const here = withoutFragment(url);
  for (const element of elementsOf(document)) {
    if (found.size === MAX_LINKS) break;
    const { href } = element.name === 'a' || element.name === 'area' ? element.attribs : {};
    if (href === undefined) continue;
    const address = webAddress(href, base);
    if (address === undefined) continue;
    const page = withoutFragment(address);
    if (found.has(page) || (page === here && address.includes('#'))) continue;
    found.set(page, { href: address, text: label(collapsed(textOf(element)) || altOf(element)) });
  }
  return [...found.values()];
}

export function imagesOf(document: Document, base: string): PageImage[] {
  const found = new Map<string, PageImage>();
  for (const element of elementsOf(document)) {
    if (found.size === MAX_IMAGES) break;
    if (element.name !== 'img' || isPixel(element)) continue;
    const source = sourceOf(element, base);
    if (source === undefined || found.has(source)) continue;
    found.set(source, { src: source, alt: label(collapsed(element.attribs.alt ?? '')) });
  }
  return [...found.values()];
}

/** Resolves an address against the base; undefined unless it is a web address. */
export function webAddress(text: string, base: string): string | undefined {
  if (text.length > MAX_ADDRESS || !URL.canParse(text, base)) return undefined;
  const { href, protocol } = new URL(text, base);
  return protocol === 'http:' || protocol === 'https:' ? href : undefined;
}

const label = (text: string): string => cut(text, MAX_LABEL).trimEnd();

function withoutFragment(address: string): string {
  const at = address.indexOf('#');
  return at < 0 ? address : address.slice(0, at);
}

/** Returns the alternative text of a link's picture. */
function altOf(link: Element): string {
  if (link.name === 'area') return collapsed(link.attribs.alt ?? '');
  for (const element of elementsOf(link)) {
    const alt = element.name === 'img' ? collapsed(element.attribs.alt ?? '') : '';
    if (alt !== '') return alt;
  }
  return '';
}

const isPixel = ({ attribs: { height, width } }: Element): boolean =>
  isTiny(width) && isTiny(height);
const isTiny = (size: string | undefined): boolean =>
  size !== undefined && /^\s?[01](?:px)?\s?$/.test(size);

/** Names of attributes with the picture of a lazily loaded `<img>`, but not a small version. */
const LAZY =
  /^data-(?!.*(?:thumb|small|low|placeholder))(?:[a-z-]{1,20}-)?(?:src|original|lazy(?:load)?|(?:img|image|lazy|delayed)-url)$/;
const LAZY_SET = /^data-(?:[a-z-]{1,20}-)?srcset$/;

/** Finds the address of a picture. Lazily loaded pictures have a placeholder, or nothing, in `src`. */
function sourceOf({ attribs, parent }: Element, base: string): string | undefined {
  const named = (pattern: RegExp) =>
    Object.keys(attribs).flatMap((name) => (pattern.test(name) ? [attribs[name]] : []));
  const given = [
    ...named(LAZY),
    ...named(LAZY_SET).map(firstOfSet),
    ...sourcesBeside(parent, 'data-srcset'),
    attribs.src,
    attribs['data-url'],
    firstOfSet(attribs.srcset),
    ...sourcesBeside(parent, 'srcset'),
  ];
  for (const each of given) {
    const address = each?.trim() ? webAddress(each.trim(), base) : undefined;
    if (address !== undefined) return address;
  }
  return undefined;
}

function sourcesBeside(parent: Element['parent'], attribute: string): (string | undefined)[] {
  if (!parent || !('name' in parent) || parent.name !== 'picture') return [];
  return parent.children
    .slice(0, 20)
    .map((child) =>
      'attribs' in child && child.name === 'source'
        ? firstOfSet(child.attribs[attribute])
        : undefined,
    );
}

const firstOfSet = (set: string | undefined): string | undefined =>
  set?.trim().slice(0, MAX_ADDRESS).split(/\s/, 1)[0]?.replace(/,$/, '');
