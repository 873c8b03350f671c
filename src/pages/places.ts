import { type ChildNode, type Document, type Element, isTag } from 'domhandler';
import { elementsOf, HEADINGS, shortTextOf, type Weights } from './elements.js';

/** What a page names as something else than its content. */
const TAGS = new Set(['nav', 'footer', 'aside', 'dialog', 'menu', 'figcaption']);

const ROLES = new Set([
  ...['navigation', 'banner', 'contentinfo', 'complementary', 'dialog', 'alertdialog', 'search'],
  ...['menu', 'menubar', 'toolbar', 'alert', 'tooltip'],
]);

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '));

/** Whole words of class names and ids. */
const WORDS = setOf(
  'nav navbar navigation menu submenu sidebar sidebars breadcrumb breadcrumbs popup modal overlay ' +
    'lightbox tags taglist catlinks printfooter toolbar pagination pager noprint print ' +
    'topics entryfooter widgets userinfo avatar reactions ' +
    'votecell reputation cart basket tocart quantity qty shipping delivery payment ' +
    'pickup sku swatches wishlist popular mostread disclaimer',
);

/** The same, of what says little: `price`, but not all that a page tells of prices. */
const SHORT_WORDS = setOf(
  'skip user users votes price prices stock availability compare tax rating ratings',
);

/** The same, of what has no heading: calls to do something. */
const CALL_WORDS = setOf('cta banner promo');

/** Letters outside of links that such a place has at most. */
const LITTLE = 300;

/** Who wrote something and when, or what a picture shows: what has a heading in it is more than that. */
const LABEL_WORDS = setOf('meta postmeta postmetadata caption captions');

/** In one word with the side that it is on. */
const SIDEBAR = /^sidebar|sidebar$/;

/** Those that say the same beside any other word. */
const PLAIN_WORDS = setOf(
  'footer relatedposts related recommended recommendations recommend upsell crosssell crossselling similar suggested share sharing social socials sharedaddy cookie cookies ' +
    'consent gdpr newsletter subscribe subscription signup login disqus ' +
    'ad advert advertisement ads sponsor sponsored promotion outbrain taboola author authors authorbox bio ' +
    'byline credits trending signature postprofile comhead',
);

/** What people say to each other below an article; on some pages it is all there is. */
const REVIEWS = setOf('review reviews');
const DISCUSSION = new Set([...REVIEWS, 'comment', 'comments', 'replies', 'respond']);

/** Of a product: what it costs, and what others say of it. */
const PROPERTIES = setOf('offers review reviews aggregaterating comment');

/** What a reader opens. */
const OPENED_WORDS = setOf('accordion collapse collapsible expandable faq faqs');

/** Parts of a page that hold its content, whatever other words are with them. */
const CONTENT_WORDS = setOf('article content post entry main story body text');

/** What stands after two dashes says how a part looks, not what it is. */
const VARIANT = /--[^\s]*/g;

/**
 * Hidden only while something else goes on, `quick-add-hidden`, or on some screens, `md:hidden`, and what is too long,
 * `overflow-hidden`; but not `visually-hidden`.
 */
const STATE =
  /(?:-[^\s-]{1,30}-|[^\s]{0,30}:|overflow-(?:[xy]-)?|backface-)hidden(?!\S)|(?<!\S)hidden-[^\s]*/g;

const WORD_ENDS = /[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])/;

/** Ids with more words than these are made of texts. */
const ID_WORDS = 4;

/** Class names and ids as words, in lower case. At most so many: a class name can be a page long. */
export function wordsOf({ attribs }: Element): readonly string[] {
  const { class: classes = '', id = '' } = attribs;
  const named = `${classes} ${id.split('-', ID_WORDS + 1).length > ID_WORDS ? '' : id}`.slice(
    0,
    500,
  );
  if (named === ' ') return [];
  const plain = named.includes('--') ? named.replace(VARIANT, '') : named;
  return (plain.includes('hidden') ? plain.replace(STATE, '') : plain)
    .split(WORD_ENDS)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase());
}

/** Of a page's text; what holds so much is not beside it, whatever it is called. */
const MOST = 0.4;

/** The same; what holds so much is hidden only until a script shows it. */
const MOSTLY = 0.5;

/**
 * Whether an element is something that no reader came for, by what the page calls it.
 *
 * @param letters of its text outside of links.
 */
export function isLeftOut(element: Element, letters: number, marks: Marks): boolean {
  const { attribs, name } = element;
  const share = letters / marks.letters;
  const isGone = share < MOSTLY && isHidden(element);
  if (name === 'html' || name === 'body' || name === 'main' || name === 'article') return isGone;
  if (name === 'aside' && holdsQuote(element)) return false;
  if (TAGS.has(name) || (isGone && !isOpened(element, marks))) return true;
  const role = attribs.role?.trim().toLowerCase();
  if (role !== undefined && (ROLES.has(role) || (role === 'tablist' && !holdsPanel(element))))
    return true;
  if (name === 'form' || name === 'fieldset')
    return share < MOST && !holdsMuch(element) && !(letters >= FORM && holdsText(element));
  if (marks.boxes.has(element)) return true;
  if (name === 'header' && !isWithinArticle(element)) return !holdsMuch(element);
  // Names of headings are made of their texts.
  if (share >= MOST || name in HEADINGS) return false;
  if (attribs.id !== undefined && marks.counted.has(attribs.id) && !holdsMain(element)) return true;
  const property = attribs.itemprop?.trim().toLowerCase();
  const isProperty = property !== undefined && PROPERTIES.has(property);
  if (isProperty && !(marks.isDiscussion && property === 'comment')) return !holdsMain(element);
  const words = wordsOf(element);
  if (!marks.isDiscussion && words.some((word) => DISCUSSION.has(word))) return !holdsMain(element);
  if (words.some((word) => PLAIN_WORDS.has(word))) return !holdsMain(element);
  const isLabel = words.some((word) => LABEL_WORDS.has(word)) && !holdsHeading(element);
  const isShort = letters < LITTLE && words.some((word) => SHORT_WORDS.has(word));
  const isCall =
    letters < LITTLE && words.some((word) => CALL_WORDS.has(word)) && !holdsHeading(element);
  const isPlace = words.some(
    (word) =>
      WORDS.has(word) || SIDEBAR.test(word) || (word === 'hidden' && !isOpened(element, marks)),
  );
  if (!isLabel && !isShort && !isCall && !isPlace) return false;
  return !words.some((word) => CONTENT_WORDS.has(word)) && !holdsMain(element);
}

/** What other elements of a page say of its places. */
export interface Marks {
  /** Letters of the page's text outside of links. */
  readonly letters: number;
  /** What people say to each other is what the page is for. */
  readonly isDiscussion: boolean;
  /** Ids whose entries a link counts: `Reviews (31)`. They are by others. */
  readonly counted: ReadonlySet<string>;
  /** Ids of what is hidden until a reader opens it, or until the page has come. */
  readonly opened: ReadonlySet<string>;
  /** Around a field for somebody's address, with what is said to get it. */
  readonly boxes: ReadonlySet<Element>;
}

const COUNTED = /\(\p{Nd}[\p{Nd}.,\s]{0,9}\)\s*$/u;

/** That are looked at. */
const MAX_LINKS = 500;
const MAX_FIELDS = 20;
const MAX_NAMED = 5_000;

/** Letters of such a link, or of a box, at most; and elements from a field up to that box. */
const BOX = 400;
const BOX_DEPTH = 20;

const BOXES = setOf('div section');

export function marksOf(document: Document, weights: Weights): Marks {
  const counted = new Set<string>();
  const opened = new Set<string>();
  const boxes = new Set<Element>();
  const named = new Set<Element>();
  let isForum = false;
  const letters = weights.get(document) || 1;
  let links = 0;
  let fields = 0;
  for (const element of elementsOf(document)) {
    const { attribs, name } = element;
    if (named.size < MAX_NAMED && weights.has(element) && isOfDiscussion(element))
      named.add(element);
    isForum ||= attribs.itemtype !== undefined && FORUM.test(attribs.itemtype);
    if (name === 'a' && attribs.href?.startsWith('#') && links++ < MAX_LINKS) {
      if (COUNTED.test(shortTextOf(element, BOX) ?? '')) counted.add(attribs.href.slice(1));
    }
    for (const id of [
      attribs['aria-controls'],
      attribs['data-target'],
      attribs['data-bs-target'],
    ]) {
      if (id !== undefined) opened.add(id.replace(/^#/, ''));
    }
    // React sends parts of a page hidden, after an empty template each that tells where they belong.
    if (name === 'template' && attribs.id !== undefined) {
      opened.add(attribs.id.replace(/^[BP]:/, 'S:'));
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
  return {
    letters,
    isDiscussion: isDiscussion(named, isForum, weights, letters),
    counted,
    opened,
    boxes,
  };
}

/** Of a page's text; below an article, what is said about it is less. */
const ALMOST_ALL = 0.5;

/** Letters beside a discussion that are an article, and what that is about. */
const ARTICLE = 2_000;

/** What the page's data call a discussion. */
const FORUM = /\/(?:DiscussionForumPosting|QAPage)$/;

/** Whether what people say to each other makes up a page; an article that has long comments is one. */
function isDiscussion(
  named: ReadonlySet<Element>,
  isForum: boolean,
  weights: Weights,
  all: number,
) {
  let said = 0;
  let reviews = 0;
  for (const element of named) {
    if (isWithin(element, named)) continue;
    const letters = weights.get(element) ?? 0;
    if (wordsOf(element).some((word) => REVIEWS.has(word))) reviews += letters;
    else said += letters;
  }
  const rest = all - said - reviews;
  return rest <= (1 - ALMOST_ALL) * all && (isForum || rest < ARTICLE || reviews > said);
}

/** As deep as the tree, which is bounded. */
function isWithin({ parent }: Element, some: ReadonlySet<Element>): boolean {
  for (let above = parent; above && isTag(above); above = above.parent) {
    if (some.has(above)) return true;
  }
  return false;
}

const MAY_BE_OF_DISCUSSION = new RegExp([...DISCUSSION].join('|'), 'i');

function isOfDiscussion(element: Element): boolean {
  const { attribs, name } = element;
  if (name === 'body' || name === 'html') return false;
  if (attribs.itemprop?.trim().toLowerCase() === 'comment') return true;
  // Few have any of the words in them.
  if (
    !MAY_BE_OF_DISCUSSION.test(attribs.class ?? '') &&
    !MAY_BE_OF_DISCUSSION.test(attribs.id ?? '')
  )
    return false;
  return wordsOf(element).some((word) => DISCUSSION.has(word));
}

/** Hidden, but not for long: a part that a reader opens, or one that has just come. */
const isOpened = (element: Element, { opened }: Marks): boolean =>
  element.attribs.role === 'tabpanel' ||
  (element.attribs.id !== undefined && opened.has(element.attribs.id)) ||
  wordsOf(element).some((word) => OPENED_WORDS.has(word));

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

/** Letters of a form with a paragraph in it that says more than what to fill in. */
const FORM = 200;

const holdsText = (element: Element): boolean => count(element, isWritten, 1) > 0;

function holdsMuch(element: Element): boolean {
  return count(element, isWritten, ENOUGH_PARAGRAPHS) >= ENOUGH_PARAGRAPHS;
}

/** A paragraph, but not one around what is filled in. */
const isWritten = ({ children, name }: Element): boolean =>
  name === 'p' && !children.some((child) => isTag(child) && FIELDS.has(child.name));

const FIELDS = setOf('input textarea select button label');

const holdsMain = (element: Element): boolean =>
  count(element, ({ name }) => MAIN.has(name), 1) > 0;

const holdsQuote = (element: Element): boolean =>
  count(element, ({ name }) => name === 'blockquote', 1) > 0;

const holdsPanel = (element: Element): boolean =>
  count(element, ({ attribs, name }) => name === 'p' || attribs.role === 'tabpanel', 1) > 0;

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
