import { type ChildNode, type Document, type Element, isTag } from 'domhandler';
import { elementsOf, HEADINGS, shortTextOf } from './elements.js';

/** What a page names as something else than its content. */
const TAGS = new Set(['nav', 'footer', 'aside', 'dialog', 'menu']);

const ROLES = new Set([
  ...['navigation', 'banner', 'contentinfo', 'complementary', 'dialog', 'alertdialog', 'search'],
  ...['menu', 'menubar', 'toolbar', 'tablist', 'alert', 'tooltip'],
]);

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '));

/** Whole words of class names and ids. */
const WORDS = setOf(
  'nav navbar navigation cta menu submenu footer sidebar sidebars breadcrumb breadcrumbs popup modal overlay ' +
    'lightbox tags taglist catlinks printfooter banner toolbar pagination pager skip hidden noprint print ' +
    'topics entryfooter widgets user users userinfo avatar reactions votes ' +
    'votecell reputation price prices cart basket tocart quantity qty stock availability shipping delivery payment ' +
    'pickup sku swatches wishlist compare tax popular mostread',
);

/** Who wrote something and when: what has a heading in it is more than that. */
const LABEL_WORDS = setOf('meta postmeta postmetadata');

/** In one word with the side that it is on. */
const SIDEBAR = /^sidebar|sidebar$/;

/** Those that say the same beside any other word. */
const PLAIN_WORDS = setOf(
  'relatedposts related recommended recommendations recommend upsell crosssell crossselling similar suggested share sharing social socials sharedaddy cookie cookies ' +
    'consent gdpr newsletter subscribe subscription signup login disqus ' +
    'ad advert advertisement ads sponsor sponsored promo promotion outbrain taboola author authors authorbox bio ' +
    'byline credits trending signature postprofile comhead',
);

/** What people say to each other below an article; on some pages it is all there is. */
const DISCUSSION = setOf('comment comments replies respond review reviews rating ratings');

/** Of a product: what it costs, and what others say of it. */
const PROPERTIES = setOf('offers review reviews aggregaterating comment');

/** Parts of a page that hold its content, whatever other words are with them. */
const CONTENT_WORDS = setOf('article content post entry main story body text');

/** What stands after two dashes says how a part looks, not what it is. */
const VARIANT = /--[^\s]*/g;

/** Hidden only while something else goes on: `quick-add-hidden`, but not `visually-hidden`. */
const STATE = /-[^\s-]{1,30}-hidden(?!\S)/g;

const WORD_ENDS = /[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])/;

/** Class names and ids as words, in lower case. At most so many: a class name can be a page long. */
export function wordsOf({ attribs }: Element): readonly string[] {
  const named = `${attribs.class ?? ''} ${attribs.id ?? ''}`.slice(0, 500);
  return named === ' '
    ? []
    : named
        .replace(VARIANT, '')
        .replace(STATE, '')
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
 * @param isInDiscussion where what people say to each other is the page's content.
 */
export function isLeftOut(
  element: Element,
  share: number,
  isInDiscussion: boolean,
  { boxes, counted }: Marks,
): boolean {
  const { attribs, name } = element;
  if (name === 'html' || name === 'body' || name === 'main' || name === 'article') {
    return isHidden(element);
  }
  if (TAGS.has(name) || isHidden(element)) return true;
  if (attribs.role !== undefined && ROLES.has(attribs.role.trim().toLowerCase())) return true;
  if (name === 'form' || name === 'fieldset') return !holdsMuch(element);
  if (boxes.has(element)) return true;
  if (name === 'header' && !isWithinArticle(element)) return !holdsMuch(element);
  // Names of headings are made of their texts.
  if (share >= MOST || name in HEADINGS) return false;
  if (attribs.id !== undefined && counted.has(attribs.id) && !holdsMain(element)) return true;
  if (attribs.itemprop !== undefined && PROPERTIES.has(attribs.itemprop.trim().toLowerCase()))
    return !holdsMain(element);
  const words = wordsOf(element);
  if (!isInDiscussion && words.some((word) => DISCUSSION.has(word))) return !holdsMain(element);
  if (words.some((word) => PLAIN_WORDS.has(word))) return !holdsMain(element);
  const isLabel = words.some((word) => LABEL_WORDS.has(word)) && !holdsHeading(element);
  if (!isLabel && !words.some((word) => WORDS.has(word) || SIDEBAR.test(word))) return false;
  return !words.some((word) => CONTENT_WORDS.has(word)) && !holdsMain(element);
}

/** What other elements of a page say of its places. */
export interface Marks {
  /** Ids whose entries a link counts: `Reviews (31)`. They are by others. */
  readonly counted: ReadonlySet<string>;
  /** Around a field for somebody's address, with what is said to get it. */
  readonly boxes: ReadonlySet<Element>;
}

const COUNTED = /\(\p{Nd}[\p{Nd}.,\s]{0,9}\)\s*$/u;

/** That are looked at. */
const MAX_LINKS = 500;
const MAX_FIELDS = 20;

/** Letters of such a link, or of a box, at most; and elements from a field up to that box. */
const BOX = 400;
const BOX_DEPTH = 20;

const BOXES = setOf('div section');

export function marksOf(document: Document): Marks {
  const counted = new Set<string>();
  const boxes = new Set<Element>();
  let links = 0;
  let fields = 0;
  for (const element of elementsOf(document)) {
    const { attribs, name } = element;
    if (name === 'a' && attribs.href?.startsWith('#') && links++ < MAX_LINKS) {
      if (COUNTED.test(shortTextOf(element, BOX) ?? '')) counted.add(attribs.href.slice(1));
    }
    const isField = name === 'input' && attribs.type?.toLowerCase() === 'email';
    if (!isField || fields++ >= MAX_FIELDS) continue;
    let depth = 0;
    for (let around = element.parent; around && isTag(around); around = around.parent) {
      if (++depth > BOX_DEPTH || holdsMain(around)) break;
      if (shortTextOf(around, BOX) === undefined) break;
      if (BOXES.has(around.name)) boxes.add(around);
    }
  }
  return { counted, boxes };
}

/** Of a page's text; below an article, what is said about it is less. */
const ALMOST_ALL = 0.5;

/** Whether it is a discussion that makes up its page. */
export const isDiscussion = (element: Element, share: number): boolean =>
  share >= ALMOST_ALL &&
  wordsOf(element).some((word) => DISCUSSION.has(word)) &&
  element.name !== 'body';

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
  return count(element, isWritten, ENOUGH_PARAGRAPHS) >= ENOUGH_PARAGRAPHS;
}

/** A paragraph, but not one around what is filled in. */
const isWritten = ({ children, name }: Element): boolean =>
  name === 'p' && !children.some((child) => isTag(child) && FIELDS.has(child.name));

const FIELDS = setOf('input textarea select button label');

const holdsMain = (element: Element): boolean =>
  count(element, ({ name }) => MAIN.has(name), 1) > 0;

const holdsHeading = (element: Element): boolean =>
  count(element, ({ name }) => name in HEADINGS, 1) > 0;

const MAIN = setOf('main article h1');

/** How many there are of them, of as many as matter. Looks at 2,000 elements. */
function count(element: Element, wanted: (element: Element) => boolean, enough: number): number {
  let found = 0;
  let looked = 0;
  const ahead: ChildNode[] = [];
  // One after the other: there may be many more than are looked at.
  const go = (node: ChildNode | null) => void (node && ahead.push(node));
  go(element.lastChild);
  for (let node = ahead.pop(); node && found < enough && looked < 2_000; node = ahead.pop()) {
    go(node.prev);
    if (!isTag(node)) continue;
    looked++;
    if (wanted(node)) found++;
    go(node.lastChild);
  }
  return found;
}
