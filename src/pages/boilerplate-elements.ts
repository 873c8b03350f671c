import { type ChildNode, type Document, type Element, isTag } from 'domhandler';
import { elementsOf, HEADINGS, shortTextOf, type Weights } from './elements.js';

/** Tags and roles that mark parts other than the content. */
const TAGS = new Set(['nav', 'footer', 'aside', 'dialog', 'menu', 'figcaption']);

const ROLES = new Set([
  ...['navigation', 'banner', 'contentinfo', 'complementary', 'dialog', 'alertdialog', 'search'],
  ...['menu', 'menubar', 'toolbar', 'alert', 'tooltip'],
]);

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '));

/** Whole words of class names and ids that mark such parts. */
const WORDS = setOf(
  'nav navbar navigation menu submenu sidebar sidebars breadcrumb breadcrumbs popup modal overlay ' +
    'lightbox tags taglist catlinks printfooter toolbar pagination pager noprint print ' +
    'topics entryfooter widgets userinfo avatar reactions ' +
    'votecell reputation cart basket tocart quantity qty shipping delivery payment ' +
    'pickup sku swatches wishlist popular mostread disclaimer',
);

/** Words that mark a part only if it is short: `price`, but not a long text about prices. */
const SHORT_WORDS = setOf(
  'skip user users votes price prices stock availability compare tax rating ratings',
);

/** Words that mark a call to action if the part has no heading. */
const CALL_WORDS = setOf('cta banner promo');

/** Maximum number of letters outside of links in such a short part. */
const LITTLE = 300;

/** Words for bylines and picture captions; a part with a heading is more than these. */
const LABEL_WORDS = setOf('meta postmeta postmetadata caption captions');

/** Words that join "sidebar" with its side, like `leftsidebar`. */
const SIDEBAR = /^sidebar|sidebar$/;

/** Words that mark such a part, regardless of the words beside them. */
const PLAIN_WORDS = setOf(
  'footer relatedposts related recommended recommendations recommend upsell crosssell crossselling similar suggested share sharing social socials sharedaddy cookie cookies ' +
    'consent gdpr newsletter subscribe subscription signup login disqus ' +
    'ad advert advertisement ads sponsor sponsored promotion outbrain taboola author authors authorbox bio ' +
    'byline credits trending signature postprofile comhead',
);

/** Words for discussions below an article; on some pages they are the content. */
const REVIEWS = setOf('review reviews');
const DISCUSSION = new Set([...REVIEWS, 'comment', 'comments', 'replies', 'respond']);

const PROPERTIES = setOf('offers review reviews aggregaterating comment');

/** Words for parts that a reader expands. */
const OPENED_WORDS = setOf('accordion collapse collapsible expandable faq faqs');

/** Words for parts that hold the content, regardless of the words beside them. */
const CONTENT_WORDS = setOf('article content post entry main story body text code syntax');

/** The BEM modifier after two dashes: it describes a part's look, not its purpose. */
const VARIANT = /--[^\s]*/g;

/** Class names that hide only at times, such as `md:hidden` and `overflow-hidden`, not `visually-hidden`. */
const STATE =
  /(?:-[^\s-]{1,30}-|[^\s]{0,30}:|overflow-(?:[xy]-)?|backface-)hidden(?!\S)|(?<!\S)hidden-[^\s]*/g;

const WORD_ENDS = /[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])/;

/** Maximum number of words of an id; longer ids are generated from texts. */
const ID_WORDS = 4;

/** Returns class names and id as words in lower case, from 500 characters: some are a page long. */
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

/** Share of a page's text from which a part is content, regardless of its name. */
const MOST = 0.4;

/** Share of a page's text from which a hidden part is content that a script reveals. */
const MOSTLY = 0.5;

/** Reports whether the markup names an element as no content; `letters` counts text outside links. */
export function isBoilerplate(element: Element, letters: number, marks: Marks): boolean {
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
  // Ids of headings are generated from their texts.
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

/** Facts about a page's parts that other elements reveal. */
export interface Marks {
  /** Letters of the page's text outside of links. */
  readonly letters: number;
  /** True if the discussion is the content of the page. */
  readonly isDiscussion: boolean;
  /** Ids whose entries a link counts, like `Reviews (31)`: contributions of other people. */
  readonly counted: ReadonlySet<string>;
  /** Ids of parts hidden until a reader opens them, or until the page has loaded. */
  readonly opened: ReadonlySet<string>;
  /** Boxes around an email field, with the text that promotes it. */
  readonly boxes: ReadonlySet<Element>;
}

const COUNTED = /\(\p{Nd}[\p{Nd}.,\s]{0,9}\)\s*$/u;

/** Maximum number of elements of each kind that are examined. */
const MAX_LINKS = 500;
const MAX_FIELDS = 20;
const MAX_NAMED = 5_000;

/**
 * Maximum letters of a link with a count or of an email box, and maximum elements from a field up to its box.
 */
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
    // React streams parts of a page hidden, each after an empty template whose id names its place.
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

/** Minimum share of a page's text for a discussion to be its content; comments on an article are less. */
const ALMOST_ALL = 0.5;

/** Letters outside a discussion from which the page is an article with comments. */
const ARTICLE = 2_000;

/** Types of structured data that mark a discussion. */
const FORUM = /\/(?:DiscussionForumPosting|QAPage)$/;

/** Reports whether a discussion makes up the page; an article with long comments is not a discussion. */
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

/** Reports whether an ancestor is in the set. The depth of the tree is limited. */
function isWithin({ parent }: Element, some: ReadonlySet<Element>): boolean {
  for (let above = parent; above && isTag(above); above = above.parent) {
    if (some.has(above)) return true;
  }
  return false;
}

/** Words for parts that show other texts than the page's. */
const OTHERS = new Set([
  ...DISCUSSION,
  ...[
    'related',
    'relatedposts',
    'recommended',
    'recommendations',
    'similar',
    'trending',
    'popular',
  ],
  'mostread',
]);

const MAY_BE_OF_OTHERS = new RegExp([...OTHERS, 'sidebar'].join('|'), 'i');

/** Reports whether a part holds comments, a sidebar or links to other pages, and not the page's main part. */
export function isOfOthers(element: Element): boolean {
  const { name } = element;
  if (name === 'html' || name === 'body' || name === 'main') return false;
  if (!isNamedForOthers(element)) return false;
  return count(element, (each) => each.name === 'h1' || each.name === 'main', 1) === 0;
}

function isNamedForOthers(element: Element): boolean {
  const { attribs, name } = element;
  if (name === 'aside' || name === 'nav') return true;
  if (name === 'article') return isWithinArticle(element, ARTICLES);
  if (name === 'footer') return !isWithinArticle(element);
  const property = attribs.itemprop?.trim().toLowerCase();
  if (property === 'comment' || property === 'review') return true;
  const { class: classes, id } = attribs;
  const mayBe = (text: string | undefined) => text !== undefined && MAY_BE_OF_OTHERS.test(text);
  if (!mayBe(classes) && !mayBe(id)) return false;
  return wordsOf(element).some((word) => OTHERS.has(word) || SIDEBAR.test(word));
}

const MAY_BE_OF_DISCUSSION = new RegExp([...DISCUSSION].join('|'), 'i');

function isOfDiscussion(element: Element): boolean {
  const { attribs, name } = element;
  if (name === 'body' || name === 'html') return false;
  if (attribs.itemprop?.trim().toLowerCase() === 'comment') return true;
  // A cheap test first: few elements match any of the words.
  if (
    !MAY_BE_OF_DISCUSSION.test(attribs.class ?? '') &&
    !MAY_BE_OF_DISCUSSION.test(attribs.id ?? '')
  )
    return false;
  return wordsOf(element).some((word) => DISCUSSION.has(word));
}

/** Reports whether a part is hidden only until a reader opens it or the page has loaded. */
const isOpened = (element: Element, { opened }: Marks): boolean =>
  element.attribs.role === 'tabpanel' ||
  (element.attribs.id !== undefined && opened.has(element.attribs.id)) ||
  wordsOf(element).some((word) => OPENED_WORDS.has(word));

export const isHidden = (element: Element): boolean =>
  element.attribs['aria-hidden'] === 'true' || isUndisplayed(element);

/** Reports whether the page's markup, without its styles, hides an element from everybody. */
export function isUndisplayed({ attribs }: Element): boolean {
  if ('hidden' in attribs) return true;
  const style = attribs.style;
  return (
    style !== undefined && /display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden/i.test(style)
  );
}

const ARTICLES = setOf('article');
const ARTICLES_AND_MAIN = setOf('article main');

function isWithinArticle(element: Element, names = ARTICLES_AND_MAIN): boolean {
  for (let above = element.parent; above && 'name' in above; above = above.parent) {
    if (names.has(above.name)) return true;
  }
  return false;
}

/** Paragraphs from which a form or a header is content: some pages are a single form or header. */
const ENOUGH_PARAGRAPHS = 3;

/** Letters from which a form with a paragraph holds more than field labels. */
const FORM = 200;

const holdsText = (element: Element): boolean => count(element, isWritten, 1) > 0;

function holdsMuch(element: Element): boolean {
  return count(element, isWritten, ENOUGH_PARAGRAPHS) >= ENOUGH_PARAGRAPHS;
}

/** Reports whether an element is a paragraph without form fields. */
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

/** Counts matching elements up to `enough`. Examines at most 2,000 elements. */
export function count(
  element: Element,
  wanted: (element: Element) => boolean,
  enough: number,
): number {
  let found = 0;
  let visited = 0;
  const ahead: ChildNode[] = [];
  // Siblings are queued one by one: there may be far more than the limit.
  const go = (node: ChildNode | null) => void (node && ahead.push(node));
  go(element.lastChild);
  for (let node = ahead.pop(); node && found < enough && visited < 2_000; node = ahead.pop()) {
    go(node.prev);
    if (!isTag(node)) continue;
    visited++;
    if (wanted(node)) found++;
    go(node.lastChild);
  }
  return found;
}
