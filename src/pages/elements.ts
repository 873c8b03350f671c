import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';

const setOf = (names: string): ReadonlySet<string> => new Set(names.split(' '));

/** What begins and ends a line. */
export const BLOCKS = setOf(
  'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset ' +
    'figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol ' +
    'optgroup p pre section summary table tbody td tfoot th thead tr ul',
);

/** What is on no page that a person reads. */
export const UNREAD = setOf(
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

/** All elements in the order of the document, but those below ones that `enter` is against. */
export function* elementsOf(
  root: Document | Element,
  enter: (element: Element) => boolean = () => true,
): Generator<Element> {
  const ahead: ChildNode[] = root.children.toReversed();
  for (let node = ahead.pop(); node; node = ahead.pop()) {
    if (!isTag(node)) continue;
    yield node;
    if (!enter(node)) continue;
    for (let index = node.children.length - 1; index >= 0; index--) {
      const child = node.children[index];
      if (child) ahead.push(child);
    }
  }
}

/** The text of an element as it is, with a space where a line ends. */
export function textOf(
  element: Element | Document,
  unread: (element: Element) => boolean = isUnread,
): string {
  const pieces: string[] = [];
  const ahead: (ChildNode | string)[] = element.children.toReversed();
  for (let node = ahead.pop(); node !== undefined; node = ahead.pop()) {
    if (typeof node === 'string') pieces.push(node);
    else if (isText(node)) pieces.push(node.data);
    else if (isTag(node) && !unread(node)) {
      const ends = node.name === 'br' || BLOCKS.has(node.name) ? ' ' : '';
      if (ends) ahead.push(ends);
      for (let index = node.children.length - 1; index >= 0; index--) {
        const child = node.children[index];
        if (child) ahead.push(child);
      }
      if (ends) ahead.push(ends);
    }
  }
  return pieces.join('');
}

/** Nodes that a short text may have. */
const FEW_NODES = 2_000;

/** The same of an element that has few nodes; undefined of one that has many, or more letters than so. */
export function shortTextOf(element: Element, most: number): string | undefined {
  let text = '';
  let nodes = 0;
  const ahead: (ChildNode | string)[] = [];
  const [first] = element.children;
  if (first) ahead.push(first);
  for (let node = ahead.pop(); node !== undefined; node = ahead.pop()) {
    if (text.length > most || nodes > FEW_NODES) return undefined;
    if (typeof node === 'string') {
      text += node;
      continue;
    }
    nodes++;
    if (node.next) ahead.push(node.next);
    if (isText(node)) text += node.data;
    else if (isTag(node) && !isUnread(node)) {
      const ends = node.name === 'br' || BLOCKS.has(node.name) ? ' ' : '';
      text += ends;
      ahead.push(ends);
      const [inside] = node.children;
      if (inside) ahead.push(inside);
    }
  }
  return text.length > most ? undefined : text;
}

export const isUnread = ({ name }: Element): boolean => UNREAD.has(name);

/** Letters of text outside of links, for each element that begins and ends a line, and for the whole. */
export function weighText(root: Document): ReadonlyMap<Element | Document, number> {
  const weights = new Map<Element | Document, number>();
  /** As deep as the tree, which is bounded. */
  const weigh = (node: Element | Document): number => {
    let sum = 0;
    for (const child of node.children) {
      if (isText(child)) sum += child.data.trim().length;
      else if (isTag(child) && child.name !== 'a' && !isUnread(child)) sum += weigh(child);
    }
    if (!isTag(node) || BLOCKS.has(node.name)) weights.set(node, sum);
    return sum;
  };
  weigh(root);
  return weights;
}
