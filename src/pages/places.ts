import type { Element } from 'domhandler';
import { HEADINGS } from './elements.js';

/** What a page names as something else than its content. */
const TAGS = new Set(['nav', 'footer', 'aside', 'dialog', 'menu']);

const ROLES = new Set([
  ...['navigation', 'banner', 'contentinfo', 'complementary', 'dialog', 'alertdialog', 'search'],
  ...['menu', 'menubar', 'toolbar', 'tablist', 'alert', 'tooltip'],
]);

/** Whole words of class names and ids. */
const WORDS = new Set(
  (
    'nav navbar navigation relatedposts cta menu submenu footer sidebar sidebars breadcrumb breadcrumbs cookie cookies ' +
    'consent gdpr popup modal overlay lightbox related recommended recommendations share sharing social ' +
    'socials sharedaddy newsletter subscribe subscription signup login comment comments disqus respond ' +
    'replies advert advertisement ads sponsor sponsored promo promotion banner toolbar pagination pager ' +
    'skip hidden noprint print tags taglist catlinks printfooter outbrain taboola widget widgets'
  ).split(' '),
);

/** Parts of a page that hold its content, whatever other words are with them. */
const CONTENT_WORDS = new Set('article content post entry main story body text'.split(' '));

const WORD_ENDS = /[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])/;

/** Class names and ids as words, in lower case. At most so many: a class name can be a page long. */
export function wordsOf({ attribs }: Element): readonly string[] {
  const named = `${attribs.class ?? ''} ${attribs.id ?? ''}`.slice(0, 500);
  return named === ' '
    ? []
    : named
        .split(WORD_ENDS)
        .filter((word) => word !== '')
        .map((word) => word.toLowerCase());
}

/** Of a page's text; what holds so much is not beside it, whatever it is called. */
const MOST = 0.4;

/**
 * Whether an element is something that no reader came for, by what the page calls it.
 *
 * @param share of the page's text that is in it, from 0 to 1.
 */
export function isLeftOut(element: Element, share: number): boolean {
  const { attribs, name } = element;
  if (name === 'html' || name === 'body' || name === 'main' || name === 'article') {
    return isHidden(element);
  }
  if (TAGS.has(name) || isHidden(element)) return true;
  if (attribs.role !== undefined && ROLES.has(attribs.role.trim().toLowerCase())) return true;
  if (name === 'form') return !holdsMuch(element);
  if (name === 'header' && !isWithinArticle(element)) return !holdsMuch(element);
  // Names of headings are made of their texts.
  if (share >= MOST || name in HEADINGS) return false;
  const words = wordsOf(element);
  if (!words.some((word) => WORDS.has(word))) return false;
  return !words.some((word) => CONTENT_WORDS.has(word)) && !holdsMain(element);
}

export function isHidden({ attribs }: Element): boolean {
  if ('hidden' in attribs || attribs['aria-hidden'] === 'true') return true;
  const style = attribs.style;
  return (
    style !== undefined && /display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden/i.test(style)
  );
}

function isWithinArticle(element: Element): boolean {
  for (let above = element.parent; above && 'name' in above; above = above.parent) {
    if (above.name === 'article' || above.name === 'main') return true;
  }
  return false;
}

/** Some pages are one form, and some have all they say in their header. */
const ENOUGH_PARAGRAPHS = 3;

function holdsMuch(element: Element): boolean {
  return count(element, (name) => name === 'p', ENOUGH_PARAGRAPHS) >= ENOUGH_PARAGRAPHS;
}

const holdsMain = (element: Element): boolean =>
  count(element, (name) => name === 'main' || name === 'article' || name === 'h1', 1) > 0;

/** How many there are of them, of as many as matter. Looks at 2,000 elements. */
function count(element: Element, wanted: (name: string) => boolean, enough: number): number {
  let found = 0;
  let looked = 0;
  const ahead = [...element.children];
  for (let node = ahead.pop(); node && found < enough && looked < 2_000; node = ahead.pop()) {
    if (!('name' in node)) continue;
    looked++;
    if (wanted(node.name)) found++;
    for (const child of 'children' in node ? node.children : []) ahead.push(child);
  }
  return found;
}
