import { type ChildNode, type Document, type Element, isDocument, isTag, isText } from 'domhandler';

const setOf = (names: string): ReadonlySet<string> => new Set(names.split(' '));

/** Block-level elements, which begin and end a line. */
export const BLOCKS = setOf(
  'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset ' +
    'figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol ' +
    'optgroup p pre section summary table tbody td tfoot th thead tr ul',
);

/** Elements whose content is not visible text. */
const UNREAD = setOf(
  'script style template noscript head title svg math iframe object embed canvas audio video select ' +
    'datalist textarea input button map meta link',
);

export const HEADINGS: Readonly<Record<string, number>> = {
  h1: 1,
  h2: 2,
  h3: 3,
  h4: 4,
  h5: 5,
  h6: 6,
};

/** Yields all elements in document order, without descendants of elements that `enter` rejects. */
export function* elementsOf(
  root: Document | Element,
  enter?: (element: Element) => boolean,
): Generator<Element> {
  let node: ChildNode | null = root.firstChild;
  while (node) {
    let below: ChildNode | null = null;
    if (isTag(node)) {
      yield node;
      if (enter === undefined || enter(node)) below = node.firstChild;
    }
    node = below ?? nextAfter(node, root);
  }
}

/** Returns the node that follows a node and its descendants in document order, within `root`. */
function nextAfter(node: ChildNode, root: Document | Element): ChildNode | null {
  let above: ChildNode = node;
  while (!above.next) {
    const { parent } = above;
    if (parent === null || parent === root || isDocument(parent)) return null;
    above = parent;
  }
  return above.next;
}

/** The start or end of a line; counts as a space. */
const LINE_END = '\u2028';

/** Yields an element's text node by node, with a sign at the start and end of each line. */
function* piecesOf(
  element: Element | Document,
  unread: (element: Element) => boolean,
): Generator<string> {
  const ahead: (ChildNode | string)[] = [];
  // Nodes are queued one at a time, because the reader may stop long before the end.
  const go = (node: ChildNode | null | undefined) => void (node && ahead.push(node));
  go(element.firstChild);
  for (let node = ahead.pop(); node !== undefined; node = ahead.pop()) {
    if (typeof node === 'string') {
      yield node;
      continue;
    }
    go(node.next);
    if (!isTag(node) || unread(node)) {
      yield isText(node) ? node.data : '';
      continue;
    }
    const end = node.name === 'br' || BLOCKS.has(node.name) ? LINE_END : '';
    yield end;
    if (end) ahead.push(end);
    go(node.firstChild);
  }
}

/** Returns an element's text, with spaces at line ends. */
export const textOf = (
  element: Element | Document,
  unread: (element: Element) => boolean = isUnread,
): string => [...piecesOf(element, unread)].join('');

/** Maximum number of nodes of a short text. */
const FEW_NODES = 2_000;

/** Returns an element's text; undefined if the element has too many nodes or more than `most` letters. */
export function shortTextOf(element: Element, most: number): string | undefined {
  let text = '';
  let nodes = 0;
  for (const piece of piecesOf(element, isUnread)) {
    text += piece;
    if (text.length > most || ++nodes > FEW_NODES) return undefined;
  }
  return text;
}

/** Returns the first line with text; undefined if the lines up to its end have more than `most` letters. */
export function firstLineOf(element: Element, most: number): string | undefined {
  let line = '';
  let nodes = 0;
  for (const piece of piecesOf(element, isUnread)) {
    if (piece === LINE_END && line.trim() !== '') return line;
    line += piece;
    if (line.length > most || ++nodes > FEW_NODES) return undefined;
  }
  return line;
}

/** Reports whether an element's text is numbers. */
export function isOfNumbers(element: Element): boolean {
  let isNumber = false;
  for (const piece of piecesOf(element, isUnread)) {
    if (/[^\s\d]/.test(piece)) return false;
    isNumber ||= /\d/.test(piece);
  }
  return isNumber;
}

/** Reports whether an element is no text: its kind is never shown, or it is a sign that links to its heading. */
export const isUnread = (element: Element): boolean =>
  UNREAD.has(element.name) || isPermalink(element);

/** Maximum number of letters of a sign, and of a link from a heading to itself. */
const SIGN = 2;
const SELF_LINK = 80;

/** Maximum elements from a link up to its heading, and maximum nodes examined in the heading. */
const NEAR = 3;
const NODES = 50;

/**
 * Reports whether an element links to its own heading or term by a sign, such as `#`, or beside the heading's
 * text, or to any place by `¶`.
 */
function isPermalink(element: Element): boolean {
  const { attribs, name } = element;
  const at = name === 'a' ? (attribs.href ?? '').indexOf('#') : -1;
  if (at < 0) return false;
  const heading = headingAround(element);
  // Links may be nested so deeply that reading the text of each would take seconds.
  if (!heading) return isOnly(element, '¶');
  const text = shortTextOf(element, SELF_LINK)?.trim();
  if (text === undefined) return false;
  if (text === '¶') return true;
  const isSign = text.length <= SIGN && !/[\p{L}\p{N}]/u.test(text);
  return isSign || (at === 0 && isBesideText(element, heading, attribs.href?.slice(1)));
}

/** Reports whether an element has one text and nothing else. */
function isOnly({ children: [first, second] }: Element, text: string): boolean {
  return first !== undefined && isText(first) && !second && first.data.trim() === text;
}

function headingAround(element: Element): Element | undefined {
  let above = element.parent;
  for (let left = NEAR; left > 0 && above && isTag(above) && !BLOCKS.has(above.name); left--) {
    above = above.parent;
  }
  if (!above || !isTag(above)) return undefined;
  return above.name in HEADINGS || above.name === 'dt' ? above : undefined;
}

/** Reports whether a heading has the id, or its section has, and a text beside the link. */
function isBesideText(link: Element, heading: Element, id: string | undefined): boolean {
  const { parent } = heading;
  let isOwn = heading.attribs.id === id || (parent && isTag(parent) && parent.attribs.id === id);
  let hasText = false;
  let nodes = 0;
  for (const each of elementsOf(heading)) {
    isOwn ||= each.attribs.id === id || each.attribs.name === id;
    if (isOwn || ++nodes > NODES) break;
  }
  if (!isOwn) return false;
  for (const piece of piecesOf(heading, (each) => each === link)) {
    hasText ||= piece.trim() !== '';
    if (hasText || ++nodes > 2 * NODES) break;
  }
  return hasText;
}

/** Letters of text outside links, for each block-level element and for the document. */
export type Weights = ReadonlyMap<Element | Document, number>;

/** Counts the letters of text outside links. @param unread matches elements whose content does not count. */
export function weighText(
  root: Document,
  unread: (element: Element) => boolean = isUnread,
): Weights {
  const weights = new Map<Element | Document, number>();
  /** Recursive, because the tree's depth is bounded. */
  const weigh = (node: Element | Document): number => {
    let sum = 0;
    for (const child of node.children) {
      if (isText(child)) sum += child.data.trim().length;
      else if (isTag(child) && child.name !== 'a' && !unread(child)) sum += weigh(child);
    }
    if (!isTag(node) || BLOCKS.has(node.name)) weights.set(node, sum);
    return sum;
  };
  weigh(root);
  return weights;
}

/** Reports whether an element's content is invisible without scripts, which `noscript` is not. */
export const isUnreadAtAll = (element: Element): boolean =>
  element.name !== 'noscript' && isUnread(element);
